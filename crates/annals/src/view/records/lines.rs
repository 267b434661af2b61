//! How the lines of a session refer to each other, so that a message names its parent whatever lies between.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use crate::view::context::View;
use annals_core::{ContentKey, Encoding, Framing, Result};
use annals_sources::Source;

/// Longer lines are no part of a thread.
const LONGEST: usize = 16 << 20;
/// A chain of lines between two messages ends here at the latest: files may refer in circles.
const LONGEST_CHAIN: usize = 100_000;

/// The lines of one session by id, loaded when the first of its messages is asked for.
#[derive(Default)]
pub(super) struct LineGraph {
    session: i64,
    parents: HashMap<ContentKey, ContentKey>,
    messages: HashMap<ContentKey, ContentKey>,
    /// File and start of each line that has an id, in order.
    lines: Vec<(i64, u64, String)>,
}

impl LineGraph {
    /// The id of the line that contains this offset.
    pub fn line_at(
        &mut self,
        view: &View<'_>,
        source: &'static dyn Source,
        session: i64,
        (file, offset): (i64, u64),
    ) -> Result<Option<&str>> {
        self.load(view, source, session)?;
        let behind = self.lines.partition_point(|(of, start, _)| (*of, *start) <= (file, offset));
        let line = behind.checked_sub(1).and_then(|at| self.lines.get(at));
        Ok(line.filter(|(of, ..)| *of == file).map(|(.., id)| id.as_str()))
    }

    /// The message before the one whose line has this id.
    pub fn parent(
        &mut self,
        view: &View<'_>,
        source: &'static dyn Source,
        session: i64,
        (message, id): (ContentKey, &str),
    ) -> Result<Option<ContentKey>> {
        self.load(view, source, session)?;
        let mut line = key_of(id);
        for _ in 0..LONGEST_CHAIN {
            let Some(parent) = self.parents.get(&line) else { return Ok(None) };
            match self.messages.get(parent) {
                Some(found) if *found != message => return Ok(Some(*found)),
                _ => line = *parent,
            }
        }
        Ok(None)
    }

    fn load(&mut self, view: &View<'_>, source: &'static dyn Source, session: i64) -> Result<()> {
        if self.session != session {
            *self = LineGraph::of(view, source, session)?;
        }
        Ok(())
    }

    fn of(view: &View<'_>, source: &'static dyn Source, session: i64) -> Result<LineGraph> {
        let mut graph = LineGraph { session, ..LineGraph::default() };
        for file in view.archive.transcript_sources(session)? {
            if file.framing != Framing::Lines {
                continue;
            }
            let mut owners = view.archive.line_owners(session, file.id)?.into_iter().peekable();
            let stored = view.archive.transcript_bytes(&file);
            let content: Box<dyn Read + '_> = match file.encoding {
                Encoding::Plain => Box::new(stored),
                Encoding::Zstd => Box::new(zstd::stream::read::Decoder::new(stored)?),
            };
            let mut content = BufReader::new(content);
            let (mut start, mut line) = (0_u64, Vec::new());
            loop {
                line.clear();
                let length = content.read_until(b'\n', &mut line)? as u64;
                if length == 0 {
                    break;
                }
                let end = start + length;
                let mut owner = None;
                while let Some((_, key)) = owners.next_if(|(offset, _)| *offset < end) {
                    owner = owner.or(Some(key));
                }
                let line_start = std::mem::replace(&mut start, end);
                let Some(ids) = (line.len() <= LONGEST).then(|| source.line_ids(&line)).flatten() else {
                    continue;
                };
                let id = key_of(&ids.id);
                if let Some(parent) = ids.parent {
                    graph.parents.insert(id, key_of(&parent));
                }
                if let Some(owner) = owner {
                    graph.messages.insert(id, owner);
                }
                graph.lines.push((file.id, line_start, ids.id));
            }
        }
        graph.lines.sort_unstable_by_key(|(file, start, _)| (*file, *start));
        Ok(graph)
    }
}

fn key_of(id: &str) -> ContentKey {
    ContentKey::of(&[id.as_bytes()])
}
