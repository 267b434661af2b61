//! Writes the tree of a branching conversation, and removes rows that another capture replaces.

use std::sync::Arc;

use rusqlite::params;

use super::Writer;
use crate::error::Result;
use crate::sql;
use annals_core::{ContentKey, FileId, InstanceId, Tally, Tree};

impl Writer<'_> {
    pub(crate) fn write_tree(&mut self, instance: InstanceId, file: FileId, tree: &Tree) -> Result<()> {
        let session = self.session_id(instance, &tree.session)?;
        let mut statement =
            self.transaction.prepare_cached(sql!("delete from node where session = $1 and file = $2"))?;
        statement.execute(params![session, file])?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into node (session, file, position, byte_offset, key, parent, current, shown)
             values ($1, $2, $3, $4, $5, $6, $7, $8)"
        ))?;
        for (position, node) in tree.nodes.iter().enumerate() {
            statement.execute(params![
                session,
                file,
                position as i64,
                node.offset as i64,
                node.key.stored(),
                node.parent.map(ContentKey::stored),
                node.current,
                node.shown,
            ])?;
        }
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into node_name (key, name) values ($1, $2) on conflict (key) do nothing"
        ))?;
        for node in &tree.nodes {
            statement.execute(params![node.key.stored(), node.name])?;
        }
        drop(statement);
        let mut statement = self
            .transaction
            .prepare_cached(sql!("update message set changed = $3 where session = $1 and file = $2"))?;
        statement.execute(params![session, file, self.commit])?;
        Ok(())
    }

    /// Removes the row of a message and of the call in it.
    pub(crate) fn forget_message(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        offset: u64,
    ) -> Result<()> {
        let session = self.session_id(instance, session)?;
        let offset = offset as i64;
        for table in ["message", "tool_call"] {
            self.forget_row(table, session, file, offset)?;
        }
        for table in ["message_line", "file_touch"] {
            let text = format!("delete from {table} where session = ?1 and file = ?2 and byte_offset = ?3");
            self.transaction.prepare_cached(&text)?.execute(params![session, file, offset])?;
        }
        self.touched.insert(session);
        Ok(())
    }

    pub(crate) fn recount_message(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        offset: u64,
        tally: Tally,
    ) -> Result<()> {
        let session = self.session_id(instance, session)?;
        let counted = self.counted_message(session, file, offset)?;
        let Some((role, before, copied)) = counted else { return Ok(()) };
        let mut statement = self.transaction.prepare_cached(sql!(
            "update message set tally = $4 where session = $1 and file = $2 and byte_offset = $3"
        ))?;
        statement.execute(params![session, file, offset as i64, tally.stored()])?;
        drop(statement);
        // For a copy, only what counts everywhere was counted.
        let counted = |tally: Tally| if copied { tally.parts().1 } else { tally };
        self.count_message(session, role, counted(before), -1);
        self.count_message(session, role, counted(tally), 1);
        Ok(())
    }
}
