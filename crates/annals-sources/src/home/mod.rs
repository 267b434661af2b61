//! What providers with files in a person's home share: authored files, front matter, titles.

pub(crate) mod authored;
pub(crate) mod folders;
pub(crate) mod front_matter;
pub(crate) mod kept;
pub(crate) mod title;
