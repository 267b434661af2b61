//! `annals export`: sessions as Markdown, HTML, JSON and tables, and records for other programs.

mod documents;
mod folder;
mod records;
mod report;
mod tables;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::sessions::absolute;
use crate::cli::source_name;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::{ExportOptions, ExportQuery, ExportedSession, View};
use annals_core::{Error, Result};
use annals_store::SessionFilter;
use documents::Destination;

#[derive(Args)]
#[command(
    after_help = "One session goes to stdout unless --to names a file or a directory. In a directory, every session is one file; \
                  exporting again writes only what changed, and files that an export did not write are never touched. \
                  Sub-agents are exported with the session that started them."
)]
pub struct ExportArguments {
    /// Sessions to export: ids, or their beginnings. With `--format records`: SOURCE or SOURCE/STREAM
    #[arg(value_name = "SESSION")]
    names: Vec<String>,
    /// Export all sessions
    #[arg(long, short)]
    all: bool,
    /// Export only sessions of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Export only sessions that ran in this directory or below it
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Export only sessions active since then (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Export only sessions that started before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Export only sessions that used this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Format to write [default: by the name of --to, else md]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<ExportFormat>,
    /// Write to this directory or file, or to stdout (`-`)
    #[arg(long, value_name = "DIR|FILE|-")]
    to: Option<PathBuf>,
    /// Include messages copied from another session
    #[arg(long)]
    copies: bool,
    /// List what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// With `--format records`: only what changed since the STATE messages in this file, which may be a previous export
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Markdown with diffs, one file per session
    Md,
    /// A web page that needs nothing else, one per session, and an index
    Html,
    /// One JSON document per session, in the shape of the HTTP API
    Json,
    /// One JSON line per session and per message
    Jsonl,
    /// One JSON message per line: SCHEMA, RECORD, STATE, DONE
    Records,
    /// Tables for DuckDB, Polars and Spark, by source and month
    Parquet,
}

impl ExportFormat {
    fn name(self) -> &'static str {
        match self {
            ExportFormat::Md => "md",
            ExportFormat::Html => "html",
            ExportFormat::Json => "json",
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Records => "records",
            ExportFormat::Parquet => "parquet",
        }
    }

    fn of_file(path: &Path) -> Option<ExportFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" => ExportFormat::Md,
            "html" | "htm" => ExportFormat::Html,
            "json" => ExportFormat::Json,
            "jsonl" | "ndjson" => ExportFormat::Jsonl,
            _ => return None,
        })
    }
}

pub fn run(context: &mut Context, options: &ExportArguments) -> Result<Outcome> {
    refuse_to_reveal(context)?;
    let format = options.chosen_format(context.json);
    if format == ExportFormat::Records {
        options.refuse_session_filters()?;
        return records::run(context, &options.names, options.state.as_deref());
    }
    if options.state.is_some() {
        return Err(Error::new("--state needs --format records"));
    }
    let query = options.query()?;
    let Some(store) = context.archive()? else {
        return match options.names.first() {
            Some(id) => Err(no_session(id)),
            None => nothing(context),
        };
    };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let web = super::serve::configured_url(&context.config);
    let export = ExportOptions { copies: options.copies, web };
    // One state of the archive: a sync may write meanwhile.
    view.at_once(|| {
        let sessions = view.sessions_to_export(&query)?;
        if sessions.is_empty() {
            return nothing(context);
        }
        let job = Job { view: &view, sessions, export, format, dry_run: options.dry_run };
        match (format, options.destination(format, &job.sessions)?) {
            (ExportFormat::Parquet, Destination::Folder(root)) => {
                tables::run(context, &job, &root, options.source.as_deref())
            }
            (ExportFormat::Parquet, _) => {
                Err(Error::new("Parquet is a directory of tables").hint("name one: --to DIR"))
            }
            (_, Destination::Folder(root)) => documents::to_folder(context, &job, &root),
            (_, Destination::File(path)) => documents::to_file(context, &job, &path),
            (_, Destination::Stdout) => documents::to_stdout(context, &job),
        }
    })
}

/// What every kind of export needs.
struct Job<'j> {
    view: &'j View<'j>,
    sessions: Vec<ExportedSession>,
    export: ExportOptions,
    format: ExportFormat,
    dry_run: bool,
}

/// Exports outlive the moment: secrets are written only for someone who sees what they ask for.
fn refuse_to_reveal(context: &Context) -> Result<()> {
    if context.reveals() && !context.output.is_terminal() {
        return Err(Error::new("--reveal exports secrets only from a terminal")
            .hint("run it without a pipe or redirection, with --to DIR, or leave --reveal out"));
    }
    Ok(())
}

fn no_session(id: &str) -> Error {
    Error::new(format!("no session found with id {id:?}"))
        .hint("`annals sessions --all` lists all sessions; `annals sync` captures new ones")
}

fn nothing(context: &mut Context) -> Result<Outcome> {
    if context.json {
        context.output.json(&serde_json::json!({ "sessions": 0 }))?;
    } else if !context.quiet {
        context.output.note("no sessions match");
    }
    Ok(Outcome::Nothing)
}

impl ExportArguments {
    fn chosen_format(&self, json: bool) -> ExportFormat {
        let by_name = self.to.as_deref().filter(|to| !to.is_dir()).and_then(ExportFormat::of_file);
        let to_stdout = self.to.as_deref().is_none_or(|to| to == Path::new("-"));
        let usual = if json && to_stdout { ExportFormat::Json } else { ExportFormat::Md };
        self.format.or(by_name).unwrap_or(usual)
    }

    fn refuse_session_filters(&self) -> Result<()> {
        let filters = [&self.source, &self.project, &self.since, &self.until, &self.model];
        if self.all || self.to.is_some() || self.dry_run || filters.iter().any(|filter| filter.is_some()) {
            return Err(Error::new("--format records exports streams to stdout")
                .hint("name streams as SOURCE or SOURCE/STREAM; `annals records --since` filters one"));
        }
        Ok(())
    }

    fn query(&self) -> Result<ExportQuery> {
        if let Some(source) = &self.source {
            super::sync::parse_source(source)?;
        }
        let moment = |text: &Option<String>| text.as_deref().map(|text| time::parse(text, now())).transpose();
        let filters = [&self.source, &self.project, &self.since, &self.until, &self.model];
        let has_filter = filters.iter().any(|filter| filter.is_some());
        match (self.names.is_empty(), self.all || has_filter) {
            (true, false) => {
                return Err(Error::new("no sessions to export")
                    .hint("name them, or use --all, --project DIR, --since WHEN or --source SOURCE"));
            }
            (false, true) => {
                return Err(Error::new("session ids and filters cannot be combined")
                    .hint("use ids, or --all and filters"));
            }
            _ => {}
        }
        Ok(ExportQuery {
            ids: self.names.clone(),
            filter: SessionFilter {
                source: self.source.clone(),
                project: self.project.as_deref().map(absolute),
                since: moment(&self.since)?,
                until: moment(&self.until)?,
                model: self.model.clone(),
                ..SessionFilter::default()
            },
        })
    }

    fn destination(&self, format: ExportFormat, sessions: &[ExportedSession]) -> Result<Destination> {
        let several = self.names.len() != 1;
        let is_document = matches!(format, ExportFormat::Md | ExportFormat::Html);
        match self.to.as_deref() {
            Some(to) if to != Path::new("-") => {
                let is_file = !to.is_dir()
                    && !to.as_os_str().to_string_lossy().ends_with('/')
                    && ExportFormat::of_file(to).is_some();
                match is_file {
                    true if several && is_document => {
                        Err(Error::new(format!("{} sessions need a directory", sessions.len()))
                            .hint("name one: --to DIR"))
                    }
                    true => Ok(Destination::File(to.to_owned())),
                    false => Ok(Destination::Folder(to.to_owned())),
                }
            }
            _ if format == ExportFormat::Parquet || several && is_document => {
                Err(Error::new("this export needs a directory").hint("name one: --to DIR"))
            }
            _ => Ok(Destination::Stdout),
        }
    }
}
