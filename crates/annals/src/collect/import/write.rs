//! Writes what an import adds: captures, unrecognised elements, gaps, and the account of each container.

use serde_json::{Map, Value, json};

use super::containers::Container;
use super::report::{ContainerReport, MemberReport};
use super::triage::SourceIntake;
use super::{COMMIT_BATCHES, COMMIT_BYTES, Importer, instance_of};
use crate::collect::ingest::target::Target;
use annals_core::{FailureKind, GapStream, InstanceId, Result, SourceStatus, Time};
use annals_sources::{Capture, ElementBody, Source};
use annals_store::Batch;

impl Importer<'_, '_> {
    /// Consecutive captures of one file are appended together.
    pub fn captures(
        &mut self,
        source: &'static dyn Source,
        header: &Map<String, Value>,
        captures: Vec<Capture<'_>>,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let instance = self.instance(source)?;
        let mut captures = captures.into_iter().peekable();
        while let Some(first) = captures.next() {
            let (path, store, reader, counts) = (first.path.clone(), first.store, first.reader, first.counts);
            let (mut group, mut bytes) = (vec![first], 0);
            while let Some(next) = captures.next_if(|next| next.path == path && bytes < COMMIT_BYTES) {
                bytes += match &next.body {
                    ElementBody::Text(body) => body.len() as u64,
                    ElementBody::Member => 0,
                };
                group.push(next);
            }
            let mut texts = Vec::new();
            for capture in &mut group {
                let ElementBody::Text(body) = &capture.body else { continue };
                let mut full_header = self.container.clone();
                full_header.extend(header.clone());
                full_header.append(&mut capture.header);
                texts.push((full_header, body.as_ref()));
            }
            self.make_room(instance, &path)?;
            let target = Target::archived(instance, source, &path, store, reader);
            let (added, batch) = self.appender.append_texts(&target, &texts)?;
            let totals = report.totals.entry(source.manifest().source).or_default();
            if counts {
                added.into_iter().for_each(|added| totals.count(added));
            }
            if let Some(batch) = batch {
                totals.captured_bytes += batch.new_bytes;
                self.hold(batch)?;
            }
        }
        Ok(())
    }

    /// Keeps an unreadable element as it is.
    pub fn aside(
        &mut self,
        source: &'static dyn Source,
        header: &Map<String, Value>,
        what: &str,
        bytes: &[u8],
        report: &mut ContainerReport,
    ) -> Result<()> {
        let instance = self.instance(source)?;
        let hash = &blake3::hash(bytes).to_hex()[..32];
        let base = header.get("member").and_then(Value::as_str).unwrap_or_default();
        let base = annals_sources::path_part(base.rsplit('/').next().unwrap_or_default());
        let path = format!("aside/{base}/{what}-{hash}");
        self.make_room(instance, &path)?;
        let target = Target::archived(instance, source, &path, "elements nobody knows", "aside");
        let added = self.appender.write_whole(&target, bytes)?;
        let totals = report.totals.entry(source.manifest().source).or_default();
        totals.aside += 1;
        if let Some((_, batch)) = added {
            totals.captured_bytes += batch.new_bytes;
            self.hold(batch)?;
        }
        Ok(())
    }

    /// Missing parts stay gaps until an import has them.
    pub fn gaps(
        &mut self,
        intake: &SourceIntake,
        container: &str,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let missing = intake.intake.missing();
        if !missing.is_empty() {
            let names = missing.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if missing.len() > 10 { " and more" } else { "" };
            report.warnings.push(format!(
                "{container} lists {} files that it does not contain: {names}{more}; request the export again to get them",
                missing.len()
            ));
        }
        let instance = self.instance(intake.source)?;
        let open = self.store.open_gaps(instance, GapStream::Imports)?;
        if missing.is_empty() && open.is_empty() {
            return Ok(());
        }
        self.flush()?;
        let now = (self.environment.now)();
        let mut writer = self.store.writer(now)?;
        for member in report.members.iter().filter(|member| member.verdict == "taken") {
            let base = member.name.rsplit('/').next().unwrap_or_default();
            if open.iter().any(|name| name == base) {
                writer.close_gap(instance, GapStream::Imports, base, now)?;
            }
        }
        for name in &missing {
            let reason = format!("listed in {container} but not contained");
            writer.open_gap(instance, GapStream::Imports, name, (FailureKind::Unreadable, &reason), now)?;
        }
        Ok(writer.commit()?)
    }

    /// Records the account of the import, so that the audit can report what was in the container and what happened to
    /// it.
    pub fn account(
        &mut self,
        source: &'static dyn Source,
        container: &Container,
        name: &str,
        report: &mut ContainerReport,
    ) -> Result<()> {
        let own = source.manifest().source;
        let mine = |member: &&MemberReport| member.source.is_none_or(|source| source == own);
        let members: Vec<Value> = report
            .members
            .iter()
            .filter(mine)
            .map(|member| {
                json!({
                    "name": member.name, "bytes": member.bytes, "verdict": member.verdict,
                    "what": member.what, "elements": member.elements, "aside": member.aside,
                })
            })
            .collect();
        let account = json!({
            "id": container.hash, "name": name, "kind": container.kind.name(), "members": members,
            "problems": report.warnings,
        });
        let capture = Capture {
            path: format!("imports/{}.json-seq", container.hash),
            store: "accounts of imports",
            reader: "import",
            header: Map::new(),
            body: ElementBody::Text(serde_json::to_vec(&account)?.into()),
            counts: false,
        };
        self.captures(source, &Map::new(), vec![capture], report)
    }

    pub fn instance(&mut self, source: &'static dyn Source) -> Result<InstanceId> {
        let name = source.manifest().source;
        if let Some(known) = self.instances.get(name) {
            return Ok(*known);
        }
        self.flush()?;
        let instance = instance_of(self.store, source, self.environment, self.member)?;
        self.instances.insert(name, instance);
        Ok(instance)
    }

    /// Commits pending batches for a file before the appender reads it.
    pub fn make_room(&mut self, instance: InstanceId, path: &str) -> Result<()> {
        let full = self.held_bytes >= COMMIT_BYTES || self.batches.len() >= COMMIT_BATCHES;
        if full || self.held.contains(&(instance, path.to_owned())) { self.flush() } else { Ok(()) }
    }

    pub fn hold(&mut self, batch: Batch) -> Result<()> {
        self.held.insert((batch.instance, batch.part.path.clone()));
        self.held_bytes += batch.new_bytes;
        self.batches.push(batch);
        Ok(())
    }

    pub fn flush(&mut self) -> Result<()> {
        if self.batches.is_empty() {
            return Ok(());
        }
        let mut writer = self.store.writer((self.environment.now)())?;
        for batch in self.batches.drain(..) {
            writer.apply(batch)?;
        }
        writer.commit()?;
        self.held.clear();
        self.held_bytes = 0;
        Ok(())
    }

    pub fn mark_available(&mut self, now: Time) -> Result<()> {
        let mut writer = self.store.writer(now)?;
        writer.resolve()?;
        for instance in self.instances.values() {
            writer.set_instance_status(*instance, SourceStatus::Available, "", now)?;
        }
        Ok(writer.commit()?)
    }
}
