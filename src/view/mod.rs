//! The questions annals answers: kept facts turned into answers, every text through the door.

mod accounts;
mod audit;
mod cards;
mod doctor;
mod door;
mod library;
mod records;
mod sessions;
mod transcript;

pub use accounts::accounts;
pub use audit::{Audit, OnDisk, audit};
pub use cards::{SourceCard, cards};
pub use doctor::{Finding, examine};
pub use door::Door;
pub use library::{LibraryAsk, LibraryItem, history, library};
pub use records::{RecordsAsk, records};
pub use sessions::{SessionAsk, SessionList, SessionView, find_session, session_ties, sessions};
pub use transcript::{BlockView, Entry, TranscriptAsk, transcript};
