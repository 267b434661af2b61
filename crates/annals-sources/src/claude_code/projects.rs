//! How the client names the folders of projects, and which files of its home belong to a session.

use super::authored::project_folder;
use crate::json::Scan;
use crate::{NamedFiles, SharedEntry, SharedFile};

/// Every prompt typed, in all projects; the text of long pastes is in separate files.
pub const HISTORY: SharedFile =
    SharedFile { path: "history.jsonl", content: "paste-cache", entries: history_entries };

fn history_entries(line: &[u8]) -> Vec<SharedEntry> {
    let scan = Scan::new(line);
    let entries = scan.line().objects().filter_map(|object| object.ok()).filter_map(|(_, entry)| {
        let pastes = entry.get("pastedContents");
        let hashes = pastes.iter().flat_map(|pastes| pastes.fields());
        let hashes = hashes.filter_map(|(_, paste)| paste.get_text("contentHash"));
        Some(SharedEntry {
            folder: project_folder(&entry.get_text("project")?),
            session: entry.get_text("sessionId").map(Into::into),
            content: hashes.map(|hash| format!("{}/{hash}.txt", HISTORY.content)).collect(),
        })
    });
    entries.collect()
}

/// Plans have a name that the lines of their session have.
pub const PLANS: NamedFiles = NamedFiles { in_path: plan_in_path, in_line: plan_in_line };

fn plan_in_path(path: &str) -> Option<&str> {
    let name = path.strip_prefix("plans/")?.strip_suffix(".md")?;
    name.split("-agent-").next()
}

fn plan_in_line(line: &[u8]) -> Option<String> {
    memchr::memmem::find(line, b"\"slug\"")?;
    let scan = Scan::new(line);
    scan.line().json()?.get_text("slug").map(|slug| slug.into_owned())
}

/// Turns a pattern for paths into one for folder names: `/home/ada/x` becomes `-home-ada-x`.
pub fn folder_pattern(pattern: &str) -> String {
    if !pattern.contains('/') {
        return pattern.to_owned();
    }
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "*?[]{},!-".contains(c);
    pattern.trim_end_matches('/').chars().map(|c| if is_kept(c) { c } else { '-' }).collect()
}

/// The session of a transcript, of a file next to it, or of a file that the client stores elsewhere.
pub fn session_of(path: &str) -> Option<&str> {
    let mut parts = path.split('/');
    let name = match parts.next()? {
        "projects" => parts.nth(1)?.trim_end_matches(".jsonl"),
        "tasks" | "file-history" | "image-cache" | "uploads" => parts.next()?,
        "todos" => parts.next()?.split("-agent-").next()?,
        _ => return None,
    };
    is_id(name).then_some(name)
}

/// Session ids are UUIDs; memories and indexes are next to them.
fn is_id(name: &str) -> bool {
    name.len() == 36 && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::{HISTORY, PLANS, folder_pattern, session_of};
    use crate::SharedEntry;

    #[test]
    fn paths_become_folder_names() {
        assert_eq!(folder_pattern("/home/ada/a_b.c/"), "-home-ada-a-b-c");
        assert_eq!(folder_pattern("/home/*/{x,y}"), "-home-*-{x,y}");
        assert_eq!(folder_pattern("*-work"), "*-work");
    }

    #[test]
    fn files_belong_to_sessions() {
        let id = "0c1a0000-0000-4000-8000-00000000000a";
        for path in [
            format!("projects/-w/{id}.jsonl"),
            format!("projects/-w/{id}/tool-results/x.txt"),
            format!("todos/{id}-agent-{id}.json"),
            format!("tasks/{id}/1.json"),
            format!("file-history/{id}/0011@v1"),
            format!("image-cache/{id}/1.png"),
            format!("uploads/{id}/plan.pdf"),
        ] {
            assert_eq!(session_of(&path), Some(id), "{path}");
        }
        for path in ["projects/-w/memory/a.md", "projects/-w/agent-a1.jsonl", "history.jsonl", "todos"] {
            assert_eq!(session_of(path), None, "{path}");
        }
    }

    #[test]
    fn plans_have_the_name_of_their_session() {
        assert_eq!((PLANS.in_path)("plans/quiet-deer.md"), Some("quiet-deer"));
        assert_eq!((PLANS.in_path)("plans/quiet-deer-agent-a1.md"), Some("quiet-deer"));
        assert_eq!((PLANS.in_path)("skills/quiet-deer.md"), None);
        assert_eq!((PLANS.in_line)(br#"{"slug":"quiet-deer"}"#).as_deref(), Some("quiet-deer"));
        assert_eq!((PLANS.in_line)(br#"{"text":"\"slug\""}"#), None);
    }

    #[test]
    fn entries_of_the_history_belong_to_projects() {
        let line =
            br#"{"display":"a","project":"/w/x.y","sessionId":"s","pastedContents":{"1":{"contentHash":"ab"},
            "2":{"content":"short"}}} {"display":"b","project":"/z"} {"display":"without a project"}"#;
        let entry = |folder: &str, session: Option<&str>, content: &[&str]| SharedEntry {
            folder: folder.into(),
            session: session.map(Into::into),
            content: content.iter().map(|path| (*path).to_owned()).collect(),
        };
        let expected = [entry("-w-x-y", Some("s"), &["paste-cache/ab.txt"]), entry("-z", None, &[])];
        assert_eq!((HISTORY.entries)(line), expected);
        assert_eq!((HISTORY.entries)(b"{\"project\":\"/w"), []);
    }
}
