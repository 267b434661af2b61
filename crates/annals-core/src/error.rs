//! The error type: what failed and why, a hint, and its source.

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

pub type Result<T> = std::result::Result<T, Error>;

/// Who is responsible for an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid.
    BadRequest,
    /// The archive, the machine or the network failed.
    Failed,
}

/// Lower case, says what failed; the hint is the next step.
#[derive(Debug)]
pub struct Error {
    pub kind: ErrorKind,
    pub what: String,
    pub hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(what: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Failed, what: what.into(), hint: None, source: None }
    }

    pub fn bad_request(what: impl Into<String>) -> Error {
        Error { kind: ErrorKind::BadRequest, ..Error::new(what) }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    pub fn source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.source = Some(source.into());
        self
    }

    /// What failed, naming the archive's file where only the archive is named.
    pub fn what_of_archive(&self, path: &Path) -> String {
        match self.what.strip_prefix("archive: ") {
            Some(cause) => format!("archive {}: {cause}", path.display()),
            None => self.what.clone(),
        }
    }

    /// The same error, caused by the request.
    pub fn into_bad_request(self) -> Error {
        Error { kind: ErrorKind::BadRequest, ..self }
    }

    pub fn is_bad_request(&self) -> bool {
        self.kind == ErrorKind::BadRequest
    }

    /// The error and everything that caused it, for a log.
    pub fn chain(&self) -> String {
        let mut text = self.what.clone();
        let mut cause = StdError::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.ends_with(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.what)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        // One of our errors that passed through a reader comes back unchanged.
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::new(error.to_string()).source(error),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Error {
        Error::new(format!("json: {error}")).source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn a_chain_names_every_cause_once() {
        let disk = std::io::Error::other("disk full");
        let error = Error::new("cannot write a.db").source(Error::from(disk));
        assert_eq!(error.chain(), "cannot write a.db: disk full");
        let through: Error = std::io::Error::other(Error::bad_request("no such stream")).into();
        assert!(through.is_bad_request() && through.what == "no such stream");
    }
}
