//! Documents that wait to be written: a home may have more of them than fit in memory.

use annals_core::{InstanceId, Result, Time};
use annals_store::{Batch, Store};

/// Bytes of documents that are written at once.
const COMMIT_BYTES: u64 = 16 << 20;
const COMMIT_DOCUMENTS: usize = 500;

/// A document, and the cursor that is only true once it is written.
type Waiting = (Option<Batch>, Option<(String, String)>);

pub struct PendingDocuments<'s> {
    store: &'s mut Store,
    instance: InstanceId,
    now: Time,
    waiting: Vec<Waiting>,
    bytes: u64,
    count: &'s mut dyn FnMut(&Batch),
}

impl<'s> PendingDocuments<'s> {
    pub fn new(
        store: &'s mut Store,
        instance: InstanceId,
        now: Time,
        count: &'s mut dyn FnMut(&Batch),
    ) -> PendingDocuments<'s> {
        PendingDocuments { store, instance, now, waiting: Vec::new(), bytes: 0, count }
    }

    pub fn add(&mut self, batch: Option<Batch>, cursor: Option<(String, String)>) -> Result<()> {
        self.bytes += batch.as_ref().map_or(0, |batch| batch.new_bytes);
        self.waiting.push((batch, cursor));
        if self.bytes >= COMMIT_BYTES || self.waiting.len() >= COMMIT_DOCUMENTS {
            self.write()?;
        }
        Ok(())
    }

    /// Writes what waits, in one transaction.
    pub fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut writer = self.store.writer(self.now)?;
        for (batch, cursor) in self.waiting.drain(..) {
            if let Some(batch) = batch {
                (self.count)(&batch);
                writer.apply(batch)?;
            }
            if let Some((name, value)) = cursor {
                writer.set_cursor(self.instance, &name, &value)?;
            }
        }
        self.bytes = 0;
        Ok(writer.commit()?)
    }
}
