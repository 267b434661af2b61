//! `annals record`: converts a transcript to a tape, with or without an archive.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use clap::Args;
use tempfile::SpooledTempFile;

use crate::cli::{Context, Outcome};
use crate::view::{Door, Recording, TapeEnd, TapeFormat, TapeOptions, record};
use annals_core::{Error, Framing, Result, ShownJson};
use annals_sources::{by_format, registry};

#[derive(Args)]
pub struct RecordArguments {
    /// Transcript as its client wrote it, optionally compressed (`.zst`); `-` for standard input
    #[arg(value_name = "FILE", required_unless_present = "stdin", conflicts_with = "stdin")]
    file: Option<PathBuf>,
    /// Read the transcript from standard input
    #[arg(long)]
    stdin: bool,
    /// Format of the transcript
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    format: String,
    /// Output format: `tape`, or `agent-trace` for Agent Trace records of the edits
    #[arg(long, value_name = "FORMAT", default_value = "tape", value_parser = ["tape", "agent-trace"])]
    to_format: String,
    /// Add the text of what was read, not only its hash
    #[arg(long)]
    read_text: bool,
    /// Fail on the first line that does not fit the format, with its number and exit code 2
    #[arg(long)]
    strict: bool,
}

/// Tape lines are held until the first one is known; more than this goes to a temporary file.
const IN_MEMORY: usize = 8 << 20;

pub fn run(context: &mut Context, options: &RecordArguments) -> Result<Outcome> {
    let source = by_format(&options.format)
        .ok_or_else(|| Error::bad_request(format!("unknown format {:?}", options.format)))?;
    let door = door(context)?;
    let tape_options = TapeOptions {
        strict: options.strict,
        format: written_format(&options.to_format),
        resolve: false,
        read_text: options.read_text,
    };
    let named = options.file.as_ref().filter(|file| file.as_os_str() != "-");
    let path = named.map(|path| path.to_string_lossy().replace('\\', "/"));
    let compressed = path.as_deref().is_some_and(|path| path.ends_with(".zst"));
    let plain = path.as_deref().map(|path| path.strip_suffix(".zst").unwrap_or(path));
    let is_document = plain.is_some_and(|path| path.ends_with(".json"));
    let mut input: Box<dyn Read> = match named {
        Some(file) => {
            let opened = File::open(file)
                .map_err(|error| Error::new(format!("cannot read {}: {error}", file.display())))
                .map_err(|error| error.hint("`annals tape SESSION` needs no file"))?;
            let plain = BufReader::with_capacity(256 << 10, opened);
            if compressed {
                Box::new(zstd::stream::read::Decoder::with_buffer(plain)?)
            } else {
                Box::new(plain)
            }
        }
        None => Box::new(io::stdin().lock()),
    };
    let framing = if is_document { Framing::Whole } else { Framing::Lines };
    let recording = Recording { source, path: path.as_deref(), framing };
    let mut spool = Spool::new();
    let end = record(&door, &recording, tape_options, &mut input, &mut |line: ShownJson| spool.keep(&line))?;
    report(context, &end);
    spool.print(context, end.first.as_ref())?;
    Ok(Outcome::Done)
}

/// The marks of the archive if there is one; `record` creates none.
fn door(context: &Context) -> Result<Door> {
    if context.reveal {
        return Ok(Door::revealing());
    }
    match context.archive()? {
        Some(store) => Door::masking(&store),
        None => Ok(Door::masking_alone()),
    }
}

fn formats() -> Vec<&'static str> {
    registry().iter().filter_map(|source| source.recorder()).map(|recorder| recorder.form().format).collect()
}

pub fn written_format(name: &str) -> TapeFormat {
    if name == "agent-trace" { TapeFormat::AgentTrace } else { TapeFormat::Tape }
}

/// Lines that do not fit the format, on stderr.
pub fn report(context: &mut Context, end: &TapeEnd) {
    if context.quiet || end.drift_count == 0 {
        return;
    }
    let shown = if context.verbose { end.drifts.len() } else { 10 };
    for drift in end.drifts.iter().take(shown) {
        context.output.note(format!("warning: line {}: {}", drift.line, drift.what));
    }
    let more = end.drift_count - end.drifts.len().min(shown) as u64;
    if more > 0 {
        context.output.note(format!("warning: {more} more"));
    }
    context.output.note("hint: use --strict to fail on the first of these");
}

/// Holds lines until the first one is known.
pub struct Spool {
    lines: SpooledTempFile,
}

impl Spool {
    pub fn new() -> Spool {
        Spool { lines: SpooledTempFile::new(IN_MEMORY) }
    }

    pub fn keep(&mut self, line: &ShownJson) -> Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.lines.write_all(&bytes)?;
        Ok(())
    }

    pub fn write(&mut self, out: &mut dyn Write, first: Option<&ShownJson>) -> io::Result<()> {
        if let Some(first) = first {
            let mut bytes = serde_json::to_vec(first)?;
            bytes.push(b'\n');
            out.write_all(&bytes)?;
        }
        self.lines.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.lines, out).map(|_| ())
    }

    pub fn print(&mut self, context: &mut Context, first: Option<&ShownJson>) -> Result<()> {
        let wrote = self.write(context.output.stream(), first);
        context.output.check_write(wrote)
    }
}
