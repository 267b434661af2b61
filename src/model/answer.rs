//! An error as a person sees it: what went wrong, and the next step on a hint line.

use std::fmt;

pub type Result<T> = std::result::Result<T, Problem>;

/// Lower case, names the thing; the hint says what to do about it.
#[derive(Debug)]
pub struct Problem {
    pub what: String,
    pub hint: Option<String>,
    /// The asker's doing, not the archive's.
    pub asked_wrongly: bool,
}

impl Problem {
    pub fn new(what: impl Into<String>) -> Problem {
        Problem { what: what.into(), hint: None, asked_wrongly: false }
    }

    /// About a question that can not be answered as it was put.
    pub fn asked(what: impl Into<String>) -> Problem {
        Problem { asked_wrongly: true, ..Problem::new(what) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl std::error::Error for Problem {}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        Problem::new(error.to_string())
    }
}

impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Problem {
        Problem::new(format!("json: {error}"))
    }
}
