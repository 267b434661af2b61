//! Notes of git-ai (`authorship/3.0.0`): for each file of a commit, which lines which session wrote.
//!
//! ```text
//! src/main.rs
//!   s_c9883b05a2487d::t_9f8e7d6c5b4a32 1-10,15
//! ---
//! {"schema_version": "authorship/3.0.0", "prompts": {}, "sessions": {}, "humans": {}}
//! ```

use std::collections::HashMap;

use serde_json::Value;

use super::Attribution;

/// Each note is named by its commit.
pub const AUTHORSHIP_NOTES: &str = "refs/notes/ai";

/// What one note says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorshipNote {
    /// By path from the root of the repository: ranges of lines, and who wrote them.
    pub files: HashMap<String, Vec<([u32; 2], Attribution)>>,
}

impl AuthorshipNote {
    /// Who wrote a line of a file, as it was in the commit.
    pub fn line(&self, file: &str, line: u32) -> Option<&Attribution> {
        let ranges = self.files.get(file)?;
        ranges.iter().find(|(range, _)| (range[0]..=range[1]).contains(&line)).map(|(_, who)| who)
    }
}

/// `None` for a note of another kind.
pub fn read_note(text: &str) -> Option<AuthorshipNote> {
    let (attested, metadata) = match text.strip_prefix("---\n") {
        Some(metadata) => ("", metadata),
        None => text.split_once("\n---\n")?,
    };
    let metadata: Value = serde_json::from_str(metadata.trim()).ok()?;
    if !metadata["schema_version"].as_str()?.starts_with("authorship/") {
        return None;
    }
    let mut note = AuthorshipNote::default();
    let mut file: Option<String> = None;
    for line in attested.lines().filter(|line| !line.trim().is_empty()) {
        let Some(entry) = line.strip_prefix("  ") else {
            file = Some(unquoted(line));
            continue;
        };
        let (Some(file), Some((key, ranges))) = (&file, entry.trim_end().rsplit_once(' ')) else { continue };
        let Some(who) = attribution(&metadata, key) else { continue };
        let of_file = note.files.entry(file.clone()).or_default();
        of_file.extend(ranges.split(',').filter_map(range).map(|range| (range, who.clone())));
    }
    Some(note)
}

/// Paths with spaces are quoted.
fn unquoted(line: &str) -> String {
    let inner = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    inner.unwrap_or(line).to_owned()
}

fn range(text: &str) -> Option<[u32; 2]> {
    let (start, end) = text.split_once('-').unwrap_or((text, text));
    Some([start.trim().parse().ok()?, end.trim().parse().ok()?])
}

fn attribution(metadata: &Value, key: &str) -> Option<Attribution> {
    let id = key.split("::").next().unwrap_or(key);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if id.starts_with("h_") {
        let person = text(&metadata["humans"][id]["author"]);
        return Some(Attribution { person, ..Attribution::default() });
    }
    let list = if id.starts_with("s_") { "sessions" } else { "prompts" };
    let record = metadata[list].get(id)?;
    let agent = &record["agent_id"];
    Some(Attribution {
        tool: text(&agent["tool"]),
        session: text(&agent["id"]),
        model: text(&agent["model"]),
        person: text(&record["human_author"]),
    })
}

#[cfg(test)]
mod tests {
    use super::read_note;

    #[test]
    fn old_and_new_keys_are_read() {
        let note = concat!(
            "src/main.rs\n  c9883b05a2487d6d 1-3,7\n  s_c9883b05a2487d::t_9f8e7d6c5b4a32 4-6\n",
            "\"a file.txt\"\n  h_dca485b1adf836 1\n  gone 2\n---\n",
            r#"{"schema_version":"authorship/3.0.0","prompts":{"c9883b05a2487d6d":{"agent_id":{"tool":"gears","#,
            r#""id":"one","model":"m-1"},"human_author":"ada"}},"sessions":{"s_c9883b05a2487d":{"agent_id":"#,
            r#"{"tool":"gears","id":"two","model":"m-2"}}},"humans":{"h_dca485b1adf836":{"author":"mary"}}}"#
        );
        let note = read_note(note).unwrap();
        let session = |line| note.line("src/main.rs", line).and_then(|who| who.session.clone());
        assert_eq!((session(3).as_deref(), session(7).as_deref()), (Some("one"), Some("one")));
        assert_eq!((session(5).as_deref(), session(8)), (Some("two"), None));
        let human = note.line("a file.txt", 1).unwrap();
        assert_eq!((human.person.as_deref(), human.is_assistant()), (Some("mary"), false));
        assert_eq!(note.line("a file.txt", 2), None);
    }

    #[test]
    fn other_notes_are_none() {
        for text in ["", "---\n{}", "a review", "a\n---\nnot json", "---\n{\"schema_version\":3}"] {
            assert_eq!(read_note(text), None, "{text}");
        }
    }
}
