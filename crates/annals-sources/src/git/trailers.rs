//! Trailers of a commit message that name an assistant or a checkpoint.

use super::Attribution;
use crate::registry;

/// Assistants without a source here, by the address that they use in trailers.
const OTHER_ASSISTANTS: &[(&str, &str)] = &[
    ("cursoragent@cursor.com", "cursor"),
    ("copilot@users.noreply.github.com", "copilot"),
    ("aider@aider.chat", "aider"),
    ("gemini-code-assist[bot]@users.noreply.github.com", "gemini"),
    ("devin-ai-integration[bot]@users.noreply.github.com", "devin"),
];

/// What a trailer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trailer {
    /// A checkpoint that has the transcripts of the commit.
    Checkpoint(String),
    /// An assistant that took part.
    Author(Attribution),
}

/// The trailers in the last paragraph of a message.
pub fn read_trailers(message: &str) -> Vec<Trailer> {
    let message = message.trim_end();
    let last = message.rsplit("\n\n").next().unwrap_or(message);
    let mut trailers = Vec::new();
    for line in last.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let trailer = match name.trim().to_ascii_lowercase().as_str() {
            "entire-checkpoint" if !value.is_empty() => Some(Trailer::Checkpoint(value.to_owned())),
            "entire-session" if !value.is_empty() => {
                let session = Some(value.to_owned());
                Some(Trailer::Author(Attribution { session, ..Attribution::default() }))
            }
            "co-authored-by" => co_author(value).map(Trailer::Author),
            _ => None,
        };
        trailers.extend(trailer);
    }
    trailers
}

/// `Name <address>`, if it is an assistant.
fn co_author(value: &str) -> Option<Attribution> {
    let (name, address) = value.split_once('<').map_or((value, ""), |(name, rest)| (name, rest));
    let (name, address) = (name.trim(), address.trim().trim_end_matches('>').to_ascii_lowercase());
    let own = registry().iter().find(|source| source.is_co_author(name, &address));
    let own = own.map(|source| source.manifest().source);
    let other = OTHER_ASSISTANTS.iter().find(|(known, _)| address.ends_with(known)).map(|(_, tool)| *tool);
    let tool = own.or(other)?;
    let has_version = name.bytes().any(|byte| byte.is_ascii_digit());
    let model = has_version.then(|| name.to_owned());
    Some(Attribution { tool: Some(tool.to_owned()), model, ..Attribution::default() })
}

#[cfg(test)]
mod tests {
    use super::{Trailer, read_trailers};

    #[test]
    fn trailers_are_in_the_last_paragraph() {
        let message = "Oil the gears\n\nCo-Authored-By: Cursor <cursoragent@cursor.com>\nis quoted here.\n\n\
                       Entire-Checkpoint: abcdef012345\nCo-authored-by: Mary <mary@example.invalid>\n\
                       Co-authored-by: Cursor <cursoragent@cursor.com>\n";
        let found = read_trailers(message);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0], Trailer::Checkpoint("abcdef012345".into()));
        let Trailer::Author(author) = &found[1] else { panic!("{found:?}") };
        assert_eq!((author.tool.as_deref(), author.model.as_deref()), (Some("cursor"), None));
        assert_eq!(read_trailers(""), []);
    }
}
