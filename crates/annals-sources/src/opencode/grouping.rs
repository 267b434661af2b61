//! Conversations of clients without a database: a file for the session, for each message and for each part.
//!
//! The document of a conversation has the lines that the database has for it, so that one reader reads both.

use std::collections::BTreeMap;

use crate::json::Json;
use crate::{FileGroup, Grouping};

pub struct OpenCodeFiles;

/// The message that a file belongs to, if it is one, and its path.
type GroupedFile<'p> = (Option<&'p str>, &'p str);

/// What a file of a conversation is.
#[derive(Debug, PartialEq, Eq)]
enum Place<'p> {
    Session { session: &'p str },
    Todo { session: &'p str },
    Message { session: &'p str, message: &'p str },
    Part { message: &'p str },
}

impl Grouping for OpenCodeFiles {
    fn groups(&self, paths: &[&str]) -> Vec<FileGroup> {
        // Parts are in folders named after their message, which is in a folder named after its session.
        let mut parts: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        let mut sessions: BTreeMap<(&str, &str), Vec<GroupedFile<'_>>> = BTreeMap::new();
        for path in paths {
            match place(path) {
                Some((store, Place::Part { message })) => {
                    parts.entry((store, message)).or_default().push(path)
                }
                Some((store, Place::Message { session, message })) => {
                    sessions.entry((store, session)).or_default().push((Some(message), path));
                }
                Some((store, Place::Session { session } | Place::Todo { session })) => {
                    sessions.entry((store, session)).or_default().push((None, path));
                }
                None => {}
            }
        }
        let groups = sessions.into_iter().map(|((store, session), mut files)| {
            // The session and its list come first, then messages in the order of their ids, which rise in time.
            files.sort_unstable();
            let mut group = FileGroup { name: format!("{store}/{session}"), files: Vec::new() };
            for (message, path) in files {
                group.files.push(path.to_owned());
                let parts = message.and_then(|message| parts.get(&(store, message)));
                group.files.extend(parts.into_iter().flatten().map(|path| (*path).to_owned()));
            }
            group
        });
        groups.collect()
    }

    fn document(&self, files: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut head: Vec<(&str, Vec<u8>)> = Vec::new();
        let mut lines: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
        let mut unreadable = Vec::new();
        for (path, bytes) in files {
            let Some(text) = compact(bytes) else {
                unreadable.push(serde_json::json!({"unreadable": path}).to_string().into_bytes());
                continue;
            };
            match place(path) {
                Some((_, Place::Session { .. })) => head.insert(0, ("session", text)),
                Some((_, Place::Todo { .. })) => head.push(("todo", text)),
                Some((_, Place::Message { .. })) => lines.push((text, Vec::new())),
                Some((_, Place::Part { .. })) => match lines.last_mut() {
                    Some((_, parts)) => parts.push(text),
                    None => lines.push((b"null".to_vec(), vec![text])),
                },
                None => {}
            }
        }
        let mut out = Vec::new();
        if !head.is_empty() {
            let fields =
                head.into_iter().map(|(name, text)| [format!("\"{name}\":").into_bytes(), text].concat());
            out.push([b"{".to_vec(), fields.collect::<Vec<_>>().join(&b','), b"}".to_vec()].concat());
        }
        for (message, parts) in lines {
            let (message, parts) = ([b"{\"message\":".to_vec(), message].concat(), parts.join(&b','));
            out.push(match parts.is_empty() {
                true => [message, b"}".to_vec()].concat(),
                false => [message, b",\"part\":[".to_vec(), parts, b"]}".to_vec()].concat(),
            });
        }
        out.extend(unreadable);
        out.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect()
    }

    fn reader(&self) -> &'static str {
        "conversation"
    }
}

/// The store that a file is in, and what it is there. The oldest clients have a store for each project, in which parts
/// are below their session.
fn place(path: &str) -> Option<(&str, Place<'_>)> {
    let path = path.strip_suffix(".json")?;
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["storage", "session", _, session] => Some(("storage", Place::Session { session })),
        ["storage", "todo", session] => Some(("storage", Place::Todo { session })),
        ["storage", "message", session, message] => Some(("storage", Place::Message { session, message })),
        ["storage", "part", message, _] => Some(("storage", Place::Part { message })),
        ["project", project, "storage", inner @ ..] => {
            let store = &path[.."project/".len() + project.len()];
            let place = match inner {
                ["session", "info", session] => Place::Session { session },
                ["todo", session] => Place::Todo { session },
                ["session", "message", session, message] => Place::Message { session, message },
                ["session", "part", _, message, _] => Place::Part { message },
                _ => return None,
            };
            Some((store, place))
        }
        _ => None,
    }
}

/// The same JSON on one line; `None` if it is not JSON.
fn compact(bytes: &[u8]) -> Option<Vec<u8>> {
    Json::parse(bytes)?;
    let mut out = Vec::with_capacity(bytes.len());
    let (mut inside, mut escaped) = (false, false);
    for byte in bytes {
        match byte {
            b'\n' if inside => out.extend(b"\\n"),
            b' ' | b'\n' | b'\r' | b'\t' if !inside => {}
            _ => out.push(*byte),
        }
        if !escaped && *byte == b'"' {
            inside = !inside;
        }
        escaped = inside && !escaped && *byte == b'\\';
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{OpenCodeFiles, compact};
    use crate::Grouping;

    #[test]
    fn a_conversation_is_all_files_that_lead_to_its_session() {
        let paths = [
            "storage/message/ses_a/msg_1.json",
            "storage/message/ses_a/msg_2.json",
            "storage/part/msg_1/prt_1.json",
            "storage/part/msg_9/prt_9.json",
            "storage/session/global/ses_a.json",
            "storage/todo/ses_a.json",
            "project/home-ada/storage/session/info/ses_b.json",
            "project/home-ada/storage/session/part/ses_b/msg_3/prt_3.json",
            "project/home-ada/storage/session/message/ses_b/msg_3.json",
        ];
        let groups = OpenCodeFiles.groups(&paths);
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["project/home-ada/ses_b", "storage/ses_a"]);
        assert_eq!(groups[0].files, [paths[6], paths[8], paths[7]]);
        assert_eq!(groups[1].files, [paths[4], paths[5], paths[0], paths[2], paths[1]]);
    }

    #[test]
    fn the_document_has_a_line_for_each_message() {
        let file = |path: &'static str, text: &str| (path, text.as_bytes().to_vec());
        let document = OpenCodeFiles.document(&[
            file("storage/session/global/ses_a.json", "{\n  \"id\": \"ses_a\"\n}"),
            file("storage/message/ses_a/msg_1.json", "{\"id\":\"msg_1\"}"),
            file("storage/part/msg_1/prt_1.json", "{\"text\": \"a \\\"b\\\" c\"}"),
            file("storage/part/msg_1/prt_2.json", "{\"text\": \"cut"),
        ]);
        let expected = "{\"session\":{\"id\":\"ses_a\"}}\n{\"message\":{\"id\":\"msg_1\"},\"part\":[{\"text\":\"a \\\"b\\\" c\"}]}\n\
            {\"unreadable\":\"storage/part/msg_1/prt_2.json\"}\n";
        assert_eq!(String::from_utf8(document).unwrap(), expected);
    }

    #[test]
    fn texts_keep_their_spaces() {
        assert_eq!(compact(b"{ \"a b\" :\t[ 1,\r\n \"\\\\\" ] }").unwrap(), b"{\"a b\":[1,\"\\\\\"]}");
        assert_eq!(compact(b"{"), None);
    }
}
