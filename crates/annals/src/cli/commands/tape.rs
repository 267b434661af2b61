//! `annals tape`: exports sessions as tapes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::record::{Spool, report, written_format};
use crate::cli::{Context, Outcome};
use crate::view::format::counted;
use crate::view::{Paging, SessionQuery, SessionView, TapeEnd, TapeOptions, View, has_tape};
use annals_core::{Error, Result, ShownJson};
use annals_store::SessionFilter;

#[derive(Args)]
pub struct TapeArguments {
    /// Session id, or the beginning of one
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    session: Option<String>,
    /// Export every session, one file each
    #[arg(long, requires = "to", conflicts_with = "session")]
    all: bool,
    /// Directory for the files of --all; existing files are overwritten
    #[arg(long, value_name = "DIR", requires = "all")]
    to: Option<PathBuf>,
    /// Output format: `tape`, or `agent-trace` for Agent Trace records of the edits
    #[arg(long, value_name = "FORMAT", default_value = "tape", value_parser = ["tape", "agent-trace"])]
    format: String,
    /// Add complete outputs and earlier file contents that are archived outside the transcripts
    #[arg(long)]
    resolve: bool,
    /// Add the text of what was read, not only its hash
    #[arg(long)]
    read_text: bool,
    /// Fail on the first line that does not fit the format
    #[arg(long)]
    strict: bool,
}

pub fn run(context: &mut Context, options: &TapeArguments) -> Result<Outcome> {
    let tape_options = TapeOptions {
        strict: options.strict,
        format: written_format(&options.format),
        resolve: options.resolve,
        read_text: options.read_text,
    };
    let id = options.session.as_deref().unwrap_or_default();
    let unknown = || {
        Error::new(format!("no session found with id {id:?}"))
            .hint("`annals sessions --all` lists all sessions; `annals sync` captures new ones")
    };
    let Some(store) = context.archive()? else {
        return if options.all { Ok(Outcome::Nothing) } else { Err(unknown()) };
    };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    if let Some(folder) = &options.to {
        return write_all(context, &view, tape_options, folder);
    }
    let session = view.find_session(id)?.ok_or_else(unknown)?;
    let mut spool = Spool::new();
    let end = of_session(&view, &session, tape_options, &mut spool)?;
    report(context, &end);
    spool.print(context, end.first.as_ref())?;
    Ok(Outcome::Done)
}

fn of_session(
    view: &View<'_>,
    session: &SessionView,
    tape_options: TapeOptions,
    spool: &mut Spool,
) -> Result<TapeEnd> {
    view.tape(session, tape_options, &mut |line: ShownJson| spool.keep(&line))
}

fn write_all(
    context: &mut Context,
    view: &View<'_>,
    tape_options: TapeOptions,
    folder: &Path,
) -> Result<Outcome> {
    annals_store::make_private_folder(folder)?;
    let filter = SessionFilter { with_agents: true, ..SessionFilter::default() };
    let mut page = SessionQuery { filter, page: Paging { limit: 200, cursor: None }, brief: true };
    let (mut written, mut drifts) = (0_u64, 0_u64);
    loop {
        let list = view.sessions(&page)?;
        for session in list.sessions.iter().filter(|session| has_tape(session)) {
            let mut spool = Spool::new();
            let end = of_session(view, session, tape_options, &mut spool)
                .map_err(|error| Error::new(format!("{}: {error}", session.session_id)))?;
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
    if context.json {
        context.output.json(&json!({"tapes": written, "problems": drifts, "to": folder}))?;
    } else if !context.quiet {
        let (tapes, drifts) = (counted(written, "tape"), counted(drifts, "problem"));
        context.output.note(format!("{tapes} written to {}, {drifts}", folder.display()));
    }
    Ok(if written > 0 { Outcome::Done } else { Outcome::Nothing })
}

/// Ids come from the client: anything but letters, digits and dashes is replaced so that it cannot form a path.
fn file_name(session: &SessionView) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let id: String =
        session.session_id.chars().map(|letter| if plain(letter) { letter } else { '_' }).take(200).collect();
    format!("{}-{id}.jsonl", session.source)
}
