//! How the client names the folders of projects, and which files of its home belong to a session.

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
        "tasks" | "file-history" => parts.next()?,
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
    use super::{folder_pattern, session_of};

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
        ] {
            assert_eq!(session_of(&path), Some(id), "{path}");
        }
        for path in ["projects/-w/memory/a.md", "projects/-w/agent-a1.jsonl", "history.jsonl", "todos"] {
            assert_eq!(session_of(path), None, "{path}");
        }
    }
}
