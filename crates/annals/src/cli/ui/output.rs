//! The only place that prints: data on stdout, everything else on stderr, control bytes made visible.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ChildStdin;

use serde::Serialize;

use super::pager::Pager;
use super::table::{Column, table};
use crate::config::{Colour, PagerSettings};
use annals_core::{Error, Result, is_hidden, visible_json};

pub struct Output {
    stdout: BufWriter<Sink>,
    terminal: bool,
    colour: bool,
    closed: bool,
    /// Columns of the terminal; none if lines may have any length.
    width: Option<usize>,
    /// A pager that starts with the first line.
    pager: Option<PagerSettings>,
}

/// Where data goes.
enum Sink {
    Stdout(io::Stdout),
    /// Until the output ends; the pager is then waited for.
    Pager(Option<(Pager, ChildStdin)>),
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Stdout(stdout) => stdout.write(bytes),
            Sink::Pager(Some((_, input))) => input.write(bytes),
            Sink::Pager(None) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::Stdout(stdout) => stdout.flush(),
            Sink::Pager(Some((_, input))) => input.flush(),
            Sink::Pager(None) => Ok(()),
        }
    }
}

/// Prints a line to stderr from a thread that has no `Output`.
pub fn log_line(text: &str) {
    // If stderr is closed, there is nobody to report to.
    let _ = writeln!(io::stderr(), "{}", visible(text, false));
}

impl Output {
    pub fn new() -> Output {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        Output {
            stdout: BufWriter::with_capacity(64 << 10, Sink::Stdout(stdout)),
            terminal,
            colour: terminal,
            closed: false,
            width: None,
            pager: None,
        }
    }

    /// Sets colours and the width of lines: `columns`, or the width of the terminal. Without a terminal, lines are not
    /// shortened.
    pub fn configure(&mut self, colour: Colour, columns: Option<usize>) {
        self.colour = match colour {
            Colour::Never => false,
            Colour::Auto => self.terminal,
            Colour::Always => true,
        };
        self.width = columns.or_else(|| terminal_width().filter(|_| self.terminal));
    }

    /// From the first line on, data is read in a pager, on a terminal.
    pub fn page(&mut self, pager: Option<PagerSettings>) {
        self.pager = pager.filter(|_| self.terminal);
    }

    /// Columns of the terminal; none if lines may have any length.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// A table that fits the terminal, each line after an indentation.
    pub fn table(&mut self, indent: &str, columns: &[Column<'_>], rows: &[Vec<String>]) -> Result<()> {
        let room = self.width.map(|width| width.saturating_sub(indent.len()));
        table(columns, rows, room).iter().try_for_each(|line| self.line(format!("{indent}{line}")))
    }

    /// The pager starts only when there is something to read; where it does not start, there is none.
    fn start_pager(&mut self) {
        if let Some((pager, input)) = self.pager.take().and_then(|pager| Pager::start(&pager)) {
            let sink = Sink::Pager(Some((pager, input)));
            self.stdout = BufWriter::with_capacity(64 << 10, sink);
        }
    }

    /// Writes what is left, and waits until a pager has been read.
    pub fn finish(&mut self) {
        let _ = self.stdout.flush();
        if let Sink::Pager(running) = self.stdout.get_mut()
            && let Some((pager, input)) = running.take()
        {
            drop(input);
            pager.wait();
        }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The other end of the pipe was closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn line(&mut self, text: impl AsRef<str>) -> Result<()> {
        self.start_pager();
        let text = visible(text.as_ref(), self.colour);
        let wrote = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.write_all(b"\n"));
        self.check_write(wrote)
    }

    pub fn has_colour(&self) -> bool {
        self.colour
    }

    /// Text of the program itself, with the styles it has.
    pub fn own(&mut self, text: &str) -> Result<()> {
        self.start_pager();
        let wrote = self.stdout.write_all(text.as_bytes());
        self.check_write(wrote)
    }

    /// Bold text, on a terminal.
    pub fn strong(&self, text: &str) -> String {
        self.styled(BOLD, text)
    }

    pub fn faint(&self, text: &str) -> String {
        self.styled(FAINT, text)
    }

    /// A line that a diff adds.
    pub fn added(&self, text: &str) -> String {
        self.styled(GREEN, text)
    }

    /// A line that a diff removes.
    pub fn removed(&self, text: &str) -> String {
        self.styled(RED, text)
    }

    fn styled(&self, style: &str, text: &str) -> String {
        if self.colour { format!("{style}{}{PLAIN}", visible(text, false)) } else { text.to_owned() }
    }

    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let written =
            if self.terminal { serde_json::to_vec_pretty(value)? } else { serde_json::to_vec(value)? };
        self.raw_line(&visible_json(written))
    }

    /// One JSON value on one line.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<()> {
        let written = serde_json::to_vec(value)?;
        self.raw_line(&visible_json(written))
    }

    /// Part of a JSON document that is written incrementally.
    pub fn fragment(&mut self, text: &str) -> Result<()> {
        let wrote = self.stdout.write_all(&visible_json(text.as_bytes().to_vec()));
        self.check_write(wrote)
    }

    /// For data that is written by others; pass the result to `check_write`.
    pub fn stream(&mut self) -> &mut dyn Write {
        &mut self.stdout
    }

    pub fn note(&mut self, text: impl AsRef<str>) {
        // If stderr is closed, there is nobody to report to.
        // One note, one line: a file name must not forge another.
        let text = visible(text.as_ref(), false).replace('\n', "\u{240a}");
        // A pager has the screen for itself.
        if let Sink::Pager(Some(_)) = self.stdout.get_ref() {
            let text = self.faint(&text);
            let wrote = writeln!(self.stdout, "{text}");
            let _ = self.check_write(wrote);
            return;
        }
        // Keeps the order of stdout and stderr.
        let _ = self.stdout.flush();
        let _ = writeln!(io::stderr(), "{text}");
    }

    pub fn error(&mut self, error: &Error, json: bool) {
        self.finish();
        if json {
            let hint = error.hint.as_deref();
            let document = serde_json::json!({"error": {"message": error.what, "hint": hint}});
            let document = visible_json(document.to_string().into_bytes());
            let _ = writeln!(io::stderr(), "{}", String::from_utf8_lossy(&document));
            return;
        }
        self.note(format!("error: {}", error.what));
        if let Some(hint) = &error.hint {
            self.note(format!("hint: {hint}"));
        }
    }

    pub fn flush(&mut self) -> Result<()> {
        let flushed = self.stdout.flush();
        self.check_write(flushed)
    }

    fn raw_line(&mut self, bytes: &[u8]) -> Result<()> {
        let wrote = self.stdout.write_all(bytes).and_then(|()| self.stdout.write_all(b"\n"));
        self.check_write(wrote)
    }

    /// Notes if the other end of the pipe was closed.
    pub fn check_write(&mut self, wrote: io::Result<()>) -> Result<()> {
        if let Err(error) = wrote {
            self.closed = error.kind() == io::ErrorKind::BrokenPipe;
            return Err(error.into());
        }
        Ok(())
    }
}

/// For data in which control characters are already visible.
impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.stdout.write(bytes);
        self.closed |= wrote.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe);
        wrote
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.finish();
    }
}

/// How many columns the terminal of stdout has.
#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    None
}

const BOLD: &str = "\u{1b}[1m";
const FAINT: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";

/// Escape sequences in foreign text must not reach the terminal; our own styles may.
fn visible(text: &str, styled: bool) -> Cow<'_, str> {
    let control = |c: char| is_hidden(c) && c != '\n' && c != '\t';
    if !text.contains(control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let style =
            [BOLD, FAINT, RED, GREEN, PLAIN].into_iter().find(|style| styled && rest.starts_with(style));
        if let Some(style) = style {
            out.push_str(style);
            rest = &rest[style.len()..];
            continue;
        }
        match c {
            '\r' => {}
            c if control(c) => match u32::from(c) {
                code @ 0..0x20 => out.push(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
                0x7f => out.push('\u{2421}'),
                code => out.push_str(&format!("⟨U+{code:04X}⟩")),
            },
            c => out.push(c),
        }
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_bytes_do_not_reach_the_terminal() {
        assert_eq!(visible("plain\ttext\n", false), "plain\ttext\n");
        assert_eq!(visible("a\u{1b}[35mred\u{0}", true), "a\u{241b}[35mred\u{2400}");
        assert_eq!(visible("a\r\nb\u{9b}x", true), "a\nb⟨U+009B⟩x");
        assert_eq!(visible("a\u{7f}\u{202e}b\u{2066}\u{200f}", true), "a\u{2421}⟨U+202E⟩b⟨U+2066⟩⟨U+200F⟩");
        assert_eq!(visible("\u{1b}[1mbold", true), "\u{1b}[1mbold");
        assert_eq!(visible("\u{1b}[1mbold", false), "\u{241b}[1mbold");
    }
}
