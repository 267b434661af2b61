//! Queries about branching conversations: their nodes, parents before children.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, params};

use crate::error::Result;
use crate::{Archive, sql};
use annals_core::{ContentKey, FileId, SessionId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRow {
    pub file: FileId,
    pub offset: u64,
    pub key: ContentKey,
    pub parent: Option<ContentKey>,
    /// Whether it is on the branch that the client shows.
    pub current: bool,
    /// Whether it is a separate step; the result of a call is shown with the call.
    pub is_step: bool,
}

impl Archive<'_> {
    /// All nodes of a session; empty if it does not branch.
    pub fn tree(&self, session: SessionId) -> Result<Vec<NodeRow>> {
        let mut statement = self.prepare(sql!(
            "select file, byte_offset, key, parent, current, shown from node
             where session = $1 and {visible_session} order by file, position"
        ))?;
        let rows = statement.query_map(params![session], node_row)?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The client's own ids of the nodes of a session.
    pub fn node_names(&self, session: SessionId) -> Result<HashMap<ContentKey, String>> {
        let mut statement = self.prepare(sql!(
            "select node.key, node_name.name from node join node_name on node_name.key = node.key
             where session = $1 and {visible_session}"
        ))?;
        let rows = statement
            .query_map(params![session], |row| Ok((ContentKey::from_stored(row.get(0)?), row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The node of the row at a place.
    pub fn node_at(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<NodeRow>> {
        let mut statement = self.prepare(sql!(
            "select file, byte_offset, key, parent, current, shown from node
             where session = $1 and file = $2 and byte_offset = $3 and {visible_session}"
        ))?;
        Ok(statement.query_row(params![session, file, offset as i64], node_row).optional()?)
    }

    /// The number of steps before a node on the branch that is shown; `None` if the node is on another one.
    pub fn steps_on_branch(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<i64>> {
        let mut statement = self.prepare(sql!(
            "select (select count(*) from node before
                     where before.session = node.session and before.file = node.file
                     and before.position < node.position and before.current and before.shown)
             from node where session = $1 and file = $2 and byte_offset = $3 and current and {visible_session}"
        ))?;
        Ok(statement.query_row(params![session, file, offset as i64], |row| row.get(0)).optional()?)
    }
}

fn node_row(row: &Row<'_>) -> rusqlite::Result<NodeRow> {
    Ok(NodeRow {
        file: row.get(0)?,
        offset: row.get::<_, i64>(1)? as u64,
        key: ContentKey::from_stored(row.get(2)?),
        parent: row.get::<_, Option<i64>>(3)?.map(ContentKey::from_stored),
        current: row.get(4)?,
        is_step: row.get(5)?,
    })
}
