//! Follows a live session: prints its last turn, then every new step until the process is stopped.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::ui::transcript::Printing;
use super::{Context, Outcome};
use crate::cli::settings::Declared;
use crate::collect::{Lock, Nobody, SyncOptions, sync};
use crate::view::{BlockView, Door, Entry, Narrowing, Paging, SessionView, TranscriptQuery, View};
use annals_core::{Result, Shown};
use annals_sources::{Source, by_name};
use annals_store::Store;

/// How often the files of the session are looked at.
const PAUSE: Duration = Duration::from_millis(250);
/// Steps that are read again after a change: a call among them may have got its result.
const STRETCH: i64 = 50;

/// What to follow, and how it is printed.
pub struct Followed<'a> {
    pub session: &'a SessionView,
    pub query: TranscriptQuery,
    pub printing: Printing,
    pub narrowing: Narrowing,
}

/// Prints the last turn, then new steps as they arrive.
pub fn follow(context: &mut Context, store: &Store, door: &Door, followed: &Followed<'_>) -> Result<Outcome> {
    let source = by_name(&followed.session.source);
    let files = transcript_files(context, &context.view(store, door), followed.session, source)?;
    let mut seen = states(&files);
    capture(context, source)?;
    let mut position = Position::at_last_prompt(&context.view(store, door), followed)?;
    let mut commit = None;
    loop {
        let view = context.view(store, door);
        let now = view.last_commit()?;
        if commit.replace(now) != Some(now) {
            position.print_new(context, &view, followed)?;
            context.output.flush()?;
        }
        std::thread::sleep(PAUSE);
        let changed = states(&files);
        if changed != seen {
            seen = changed;
            capture(context, source)?;
        }
    }
}

/// Where a session was read to, and what was printed since.
struct Position {
    /// Of the steps that are read again.
    cursor: Option<String>,
    first: usize,
    printed: HashSet<(String, String)>,
}

impl Position {
    fn at_last_prompt(view: &View<'_>, followed: &Followed<'_>) -> Result<Position> {
        let mut first = 0;
        let query = TranscriptQuery { changes: false, full: false, ..followed.query.clone() };
        view.transcript(followed.session, query, &mut |entry| {
            if entry.kind == "prompt" {
                first = entry.seq;
            }
            Ok(())
        })?;
        Ok(Position { cursor: None, first, printed: HashSet::new() })
    }

    fn print_new(&mut self, context: &mut Context, view: &View<'_>, followed: &Followed<'_>) -> Result<()> {
        loop {
            let page = Paging { limit: STRETCH, cursor: self.cursor.clone() };
            let page = view.transcript_page(followed.session, followed.query.clone(), &page)?;
            for mut entry in page.messages {
                if entry.seq < self.first || !entry.is_conversation() {
                    continue;
                }
                self.leave_new_blocks(&mut entry);
                if entry.blocks.is_empty() {
                    continue;
                }
                if let Some(entry) = followed.narrowing.narrow(entry) {
                    followed.printing.entry(context, &entry)?;
                }
            }
            match page.next_cursor {
                Some(next) => self.cursor = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Removes what was printed. A result may follow its call much later.
    fn leave_new_blocks(&mut self, entry: &mut Entry) {
        let mut number = 0;
        let id = entry.id.clone();
        entry.blocks.retain(|block| {
            let name = match block {
                BlockView::ToolCall { call_id, .. } => format!("call {}", Shown::as_str(call_id)),
                BlockView::ToolResult { call_id, .. } => format!("result {}", Shown::as_str(call_id)),
                _ => {
                    number += 1;
                    number.to_string()
                }
            };
            self.printed.insert((id.clone(), name))
        });
    }
}

/// The client's files with rows of the session, as far as their names are known.
fn transcript_files(
    context: &Context,
    view: &View<'_>,
    session: &SessionView,
    source: Option<&'static dyn Source>,
) -> Result<Vec<PathBuf>> {
    let parts = view.session_ties(session)?.parts;
    let homes = source.map(|source| source.homes(&Declared(&context.config))).unwrap_or_default();
    Ok(homes.iter().flat_map(|home| parts.iter().map(|part| home.root.join(part.path.as_str()))).collect())
}

fn states(files: &[PathBuf]) -> Vec<Option<(u64, Option<SystemTime>)>> {
    files.iter().map(|file| file.metadata().ok().map(|found| (found.len(), found.modified().ok()))).collect()
}

/// Captures what is new. If another process is writing, such as `annals serve`, it does the same.
fn capture(context: &Context, source: Option<&'static dyn Source>) -> Result<()> {
    let Some(source) = source else { return Ok(()) };
    let Ok(_lock) = Lock::take(&context.config.data_dir, "show") else { return Ok(()) };
    let options = SyncOptions { sources: vec![source], opportunistic: true, ..SyncOptions::default() };
    sync(&options, &Declared(&context.config).environment(), &mut Nobody)?;
    Ok(())
}
