//! `annals tape`: sessions of the archive as tapes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::record::{Spool, report, written_format};
use crate::cli::{Answer, Desk, now};
use crate::view::sessions;
use crate::view::{Door, Paging, SessionAsk, SessionView, TapeAsk, TapeEnd, find_session, has_tape, tape};
use annals_core::{Error, Result, ShownJson};
use annals_store::{SessionFilter, Store};

#[derive(Args)]
pub struct Options {
    /// A session's id, or the start of it
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    session: Option<String>,
    /// Every session, one file each
    #[arg(long, requires = "to", conflicts_with = "session")]
    all: bool,
    /// The folder that the files of --all go into; files that are there are written anew
    #[arg(long, value_name = "DIR", requires = "all")]
    to: Option<PathBuf>,
    /// What to write: `tape`, or `agent-trace` for Agent Trace records of the edits
    #[arg(long, value_name = "FORMAT", default_value = "tape", value_parser = ["tape", "agent-trace"])]
    format: String,
    /// Whole outputs and earlier texts of files, from what the archive keeps beside transcripts
    #[arg(long)]
    resolve: bool,
    /// A line that is not as it should be is an error
    #[arg(long)]
    strict: bool,
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    let ask =
        TapeAsk { strict: options.strict, format: written_format(&options.format), resolve: options.resolve };
    let id = options.session.as_deref().unwrap_or_default();
    let unknown = || {
        Error::new(format!("no session begins with {id:?}"))
            .hint("`annals sessions --all` lists them; `annals sync` captures new ones")
    };
    let Some(store) = desk.archive()? else {
        return if options.all { Ok(Answer::Nothing) } else { Err(unknown()) };
    };
    let door = desk.door(&store)?;
    if let Some(folder) = &options.to {
        return write_all(desk, &store, &door, ask, folder);
    }
    let session = find_session(&desk.scope, &store, &door, id, now())?.ok_or_else(unknown)?;
    let mut spool = Spool::new();
    let end = of_session(desk, &store, &door, &session, ask, &mut spool)?;
    report(desk, &end);
    spool.print(desk, end.first.as_ref())?;
    Ok(Answer::Done)
}

fn of_session(
    desk: &Desk,
    store: &Store,
    door: &Door,
    session: &SessionView,
    ask: TapeAsk,
    spool: &mut Spool,
) -> Result<TapeEnd> {
    tape(&desk.scope, store, door, session, ask, &mut |line: ShownJson| spool.keep(&line))
}

fn write_all(desk: &mut Desk, store: &Store, door: &Door, ask: TapeAsk, folder: &Path) -> Result<Answer> {
    annals_store::make_private_folder(folder)?;
    let filter = SessionFilter { with_agents: true, ..SessionFilter::default() };
    let mut page = SessionAsk { filter, page: Paging { limit: 200, cursor: None }, brief: true };
    let (mut written, mut drifts) = (0_u64, 0_u64);
    loop {
        let list = sessions(&desk.scope, store, door, &page, now())?;
        for session in list.sessions.iter().filter(|session| has_tape(&desk.scope, &session.source)) {
            let mut spool = Spool::new();
            let end = of_session(desk, store, door, session, ask, &mut spool)
                .map_err(|problem| Error::new(format!("{}: {problem}", session.session_id)))?;
            drifts += end.drift_count;
            let path = folder.join(file_name(session));
            let failed = |error: std::io::Error| Error::new(format!("{}: {error}", path.display()));
            let mut file = BufWriter::new(File::create(&path).map_err(failed)?);
            spool.write(&mut file, end.first.as_ref()).map_err(failed)?;
            file.flush().map_err(failed)?;
            written += 1;
        }
        page.page.cursor = list.next_cursor;
        if page.page.cursor.is_none() {
            break;
        }
    }
    if desk.json {
        desk.output.json(&json!({"tapes": written, "problems": drifts, "to": folder}))?;
    } else if !desk.quiet {
        desk.output.note(format!("{written} tapes in {}, {drifts} problems", folder.display()));
    }
    Ok(if written > 0 { Answer::Done } else { Answer::Nothing })
}

/// Ids are the client's words: what is no letter, digit or dash of them does not become a path.
fn file_name(session: &SessionView) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let id: String =
        session.session_id.chars().map(|letter| if plain(letter) { letter } else { '_' }).take(200).collect();
    format!("{}-{id}.jsonl", session.source)
}
