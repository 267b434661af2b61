//! Checks that a conversation is complete: trees may be truncated, and lists of messages come in pages.

use std::borrow::Cow;
use std::collections::HashSet;

use super::nodes::{nodes, offset_in};
use crate::json::{Json, Opened, unescape};
use crate::live::Assembled;

/// How deep a conversation is opened: its nodes are enough here.
const TREE: usize = 3;
const EMPTY: &str = "no messages";

/// Pages of one conversation as they were answered: a tree is one, a list of messages comes newest first.
pub fn assemble(id: &str, pages: &[String]) -> Assembled {
    let parsed: Option<Vec<Json<'_>>> = pages.iter().map(|page| Json::parse(page.as_bytes())).collect();
    let Some((first, last)) = parsed.as_deref().and_then(|pages| Some((*pages.first()?, *pages.last()?)))
    else {
        return Assembled::Torn("not JSON");
    };
    let named = ["conversation_id", "id"].iter().find_map(|name| first.get_text(name));
    if named.as_deref().is_some_and(|named| named != id) {
        return Assembled::Torn("another conversation");
    }
    if first.get("mapping").is_some() {
        let body = if named.is_some() { first.bytes().to_vec() } else { joined(id, &[first], false) };
        return match torn(first) {
            Some(EMPTY) => Assembled::Torn(EMPTY),
            Some(why) => Assembled::Part(body, why),
            None => Assembled::Whole(body),
        };
    }
    if parsed.iter().flatten().any(|page| !page.get("messages").is_some_and(Json::is_array)) {
        return Assembled::Torn("neither a message tree nor messages");
    }
    let before = last.get("page_info").and_then(|info| info.get("has_previous_page"));
    if before.and_then(Json::boolean) == Some(true) {
        let next = place(last).map(|place| place.into_owned());
        // A page that leads to itself would be requested forever.
        let again =
            parsed.iter().flatten().rev().skip(1).any(|page| place(*page).as_deref() == next.as_deref());
        return match next.filter(|_| !again) {
            Some(next) => Assembled::More(next),
            None => Assembled::Torn("too many pages"),
        };
    }
    Assembled::Whole(joined(id, &parsed.unwrap_or_default(), named.is_some()))
}

fn place(page: Json<'_>) -> Option<Cow<'_, str>> {
    page.get("page_info")?.get_text("start_cursor")
}

/// Why a tree is not whole, if it is not.
fn torn(conversation: Json<'_>) -> Option<&'static str> {
    let nodes = Opened::parse(conversation.bytes(), TREE).map(nodes).unwrap_or_default();
    let keys: HashSet<String> = nodes.iter().map(|node| unescape(node.key)).collect();
    let has = |name: Json<'_>| name.text().is_some_and(|name| keys.contains(&*name));
    if keys.is_empty() {
        return Some(EMPTY);
    }
    if conversation.get("current_node").is_some_and(|current| !has(current)) {
        return Some("its last message is missing");
    }
    nodes.iter().any(|node| node.parent.is_some_and(|parent| !has(parent))).then_some("messages are missing")
}

/// The newest page as it is, with the messages of all pages in it, oldest first.
fn joined(id: &str, pages: &[Json<'_>], named: bool) -> Vec<u8> {
    let Some(first) = pages.first() else { return Vec::new() };
    let whole = first.bytes();
    let mut pieces: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    let mut put = |old: Option<Json<'_>>, new: Vec<u8>| {
        if let Some(old) = old {
            let start = offset_in(whole, old.bytes());
            pieces.push((start, start + old.bytes().len(), new));
        }
    };
    let messages = pages.iter().rev().flat_map(|page| page.get("messages")).flat_map(Json::items);
    let messages: Vec<&[u8]> = messages.map(Json::bytes).collect();
    put(first.get("messages"), [b"[".as_slice(), &messages.join(b",".as_slice()), b"]"].concat());
    let info = pages.last().and_then(|page| page.get("page_info"));
    put(first.get("page_info"), info.map_or_else(|| b"null".to_vec(), |info| info.bytes().to_vec()));
    if !named {
        let name = serde_json::Value::from(id).to_string();
        let more = if first.fields().next().is_some() { "," } else { "" };
        pieces.push((1, 1, format!("\"conversation_id\":{name}{more}").into_bytes()));
    }
    pieces.sort();
    let (mut body, mut at) = (Vec::new(), 0);
    for (start, end, new) in pieces {
        body.extend_from_slice(&whole[at..start]);
        body.extend(new);
        at = end;
    }
    body.extend_from_slice(&whole[at..]);
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(pages: &[&str]) -> Assembled {
        assemble("c1", &pages.iter().map(|page| (*page).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_tree_is_whole_when_every_parent_is_there() {
        let whole = r#"{"id":"c1","mapping":{"r":{"parent":null},"a":{"parent":"r"}},"current_node":"a"}"#;
        assert_eq!(assembled(&[whole]), Assembled::Whole(whole.as_bytes().to_vec()));
        // Whoever requested it knows what it is.
        let nameless = r#"{"mapping":{"r":{"parent":null}},"current_node":"r"}"#;
        let expected = r#"{"conversation_id":"c1","mapping":{"r":{"parent":null}},"current_node":"r"}"#;
        assert_eq!(assembled(&[nameless]), Assembled::Whole(expected.into()));
        // What is there of a tree is kept.
        let parts = [
            (
                r#"{"id":"c1","mapping":{"r":{"parent":null}},"current_node":"a"}"#,
                "its last message is missing",
            ),
            (r#"{"id":"c1","mapping":{"a":{"parent":"r"}},"current_node":"a"}"#, "messages are missing"),
        ];
        for (page, why) in parts {
            assert_eq!(assembled(&[page]), Assembled::Part(page.into(), why), "{page}");
        }
        let table = [
            (r#"{"id":"c1","mapping":{}}"#, "no messages"),
            (r#"{"id":"c2","mapping":{"r":{}}}"#, "another conversation"),
            (r#"{"detail":"no"}"#, "neither a message tree nor messages"),
            (r#"{"mapping":"#, "not JSON"),
        ];
        for (page, why) in table {
            assert_eq!(assembled(&[page]), Assembled::Torn(why), "{page}");
        }
    }

    #[test]
    fn pages_of_messages_become_one_list() {
        let new = r#"{"title":"T","messages":[{"id":"3"},{"id":"4"}],"page_info":{"has_previous_page":true,"start_cursor":"x"},"current_node":"4"}"#;
        let old = r#"{"messages":[{"id":"1"},{"id":"2"}],"page_info":{"has_previous_page":false,"start_cursor":null}}"#;
        assert_eq!(assembled(&[new]), Assembled::More("x".into()));
        let expected = r#"{"conversation_id":"c1","title":"T","messages":[{"id":"1"},{"id":"2"},{"id":"3"},{"id":"4"}],"page_info":{"has_previous_page":false,"start_cursor":null},"current_node":"4"}"#;
        assert_eq!(assembled(&[new, old]), Assembled::Whole(expected.into()));
        assert_eq!(assembled(&[new, new]), Assembled::Torn("too many pages"));
        let expected = r#"{"conversation_id":"c1","title":"T","messages":[{"id":"2"},{"id":"3"},{"id":"4"}],"page_info":null,"current_node":"4"}"#;
        assert_eq!(assembled(&[new, r#"{"messages":[{"id":"2"}]}"#]), Assembled::Whole(expected.into()));
    }
}
