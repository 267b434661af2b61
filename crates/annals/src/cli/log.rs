//! The log: events of the program on stderr, without secrets. Warnings and errors by default; `-v` and `ANNALS_LOG`
//! show more.

use std::io::{self, Write};
use std::sync::Arc;

use annals_core::{Error, Result, is_hidden};
use annals_redact::Redactor;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;

/// Starts the log of this process. `filter` is the setting `log`: a level, or levels by module
/// (`warn,annals::serve=debug`).
pub fn start(filter: Option<&str>, verbose: bool) -> Result<()> {
    let default = if verbose { "info" } else { "warn" };
    let filter = filter.unwrap_or(default);
    let targets: Targets = filter.parse().map_err(|error| {
        Error::bad_request(format!("cannot log {filter:?}: {error}"))
            .hint("ANNALS_LOG=debug, or ANNALS_LOG=warn,annals::serve=debug")
    })?;
    let mut key = [0; 32];
    // Equal secrets have equal masks within one run. Without randomness the masks are guessable, but reveal nothing.
    let _ = getrandom::fill(&mut key);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .without_time()
        .with_target(false)
        .with_writer(Masked(Arc::new(Redactor::new(key))));
    // A second start, as in tests, keeps the first log.
    let _ = tracing_subscriber::registry().with(targets).with(lines).try_init();
    Ok(())
}

/// Writes lines to stderr with secrets masked and control characters made visible.
struct Masked(Arc<Redactor>);

impl<'w> MakeWriter<'w> for Masked {
    type Writer = MaskedLine;

    fn make_writer(&'w self) -> MaskedLine {
        MaskedLine { redactor: self.0.clone(), line: Vec::new() }
    }
}

struct MaskedLine {
    redactor: Arc<Redactor>,
    line: Vec<u8>,
}

impl Write for MaskedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for MaskedLine {
    /// Events are written in one piece: only then are the secrets in them recognised.
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        if !text.is_empty() {
            super::ui::output::log_line(&visible(&self.redactor.mask(text.trim_end())));
        }
    }
}

/// Statements span lines; a log has one line per event.
fn visible(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().map(|letter| if is_hidden(letter) { '\u{fffd}' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_makes_no_sense_is_an_error() {
        assert!(start(Some("annals=loud"), false).is_err_and(|error| error.hint.is_some()));
    }

    #[test]
    fn an_event_is_one_line_of_visible_text() {
        assert_eq!(visible("select a\n     from b\u{1b}[31m"), "select a from b\u{fffd}[31m");
        for hidden in ['\u{7f}', '\u{9b}', '\u{200f}', '\u{202e}', '\u{2066}'] {
            assert_eq!(visible(&format!("a{hidden}b")), "a\u{fffd}b");
        }
    }
}
