//! Shared by providers with files in a home: authored files, front matter, prompt histories, titles, calls that wait.

pub(crate) mod authored;
pub(crate) mod calls;
pub(crate) mod drift;
pub(crate) mod folders;
pub(crate) mod front_matter;
pub(crate) mod history;
pub(crate) mod kept;
pub(crate) mod places;
pub(crate) mod rules;
pub(crate) mod streams;
pub(crate) mod title;
pub mod yaml;
