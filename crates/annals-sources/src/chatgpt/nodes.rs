//! The nodes of a conversation in its bytes, for all generations of exports.

use crate::json::{Json, Object, Opened, unescape};
use annals_core::ContentKey;

/// How deep a conversation is opened: its nodes, their messages, and what these are made of.
pub const CONVERSATION: usize = 5;
const NODE: usize = 3;
const MESSAGE: usize = 2;

/// One node of the tree; `bytes` is its name and its value, so that a row of it knows both.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    pub bytes: &'a [u8],
    /// The name, escapes and all.
    pub key: &'a [u8],
    pub parent: Option<Json<'a>>,
    pub children: Option<Json<'a>>,
    pub message: Option<Opened<'a>>,
}

/// Nodes in the order of the file. A list of messages without a tree is a branch without siblings.
pub fn nodes(conversation: Opened<'_>) -> Vec<Node<'_>> {
    let whole = conversation.json.bytes();
    let listed = conversation.get_json("messages");
    let mut nodes = Vec::new();
    for (key, value) in conversation.take("mapping").into_iter().flat_map(Opened::into_fields) {
        let end = offset_in(whole, value.json.bytes()) + value.json.bytes().len();
        let bytes = whole.get(offset_in(whole, key).saturating_sub(1)..end);
        nodes.extend(bytes.map(|bytes| node(bytes, key, value)));
    }
    if nodes.is_empty() {
        let messages = listed.into_iter().flat_map(Json::items);
        for message in messages.filter_map(|message| Opened::parse(message.bytes(), MESSAGE)) {
            let key = message.get_json("id").and_then(Json::inner).unwrap_or_default();
            let parent = message.get("metadata").and_then(|metadata| metadata.get_json("parent_id"));
            if message.json.is_object() {
                let bytes = message.json.bytes();
                nodes.push(Node { bytes, key, parent, children: None, message: Some(message) });
            }
        }
    }
    nodes
}

/// The node whose row these bytes are.
pub fn node_of_row(bytes: &[u8]) -> Option<Node<'_>> {
    if bytes.first() == Some(&b'{') {
        let message = Opened::parse(bytes, MESSAGE)?;
        let key = message.get_json("id").and_then(Json::inner).unwrap_or_default();
        return Some(Node { bytes, key, parent: None, children: None, message: Some(message) });
    }
    let (key, value) = Opened::parse_pair(bytes, NODE)?;
    Some(node(bytes, key, value))
}

fn node<'a>(bytes: &'a [u8], key: &'a [u8], value: Opened<'a>) -> Node<'a> {
    Node {
        bytes,
        key,
        parent: value.get_json("parent"),
        children: value.get_json("children").filter(|children| children.is_array()),
        message: value.take("message").filter(|message| message.json.is_object()),
    }
}

/// The name of a node is its identity within the conversation.
pub fn node_key(session: &str, key: &[u8]) -> ContentKey {
    ContentKey::of(&[session.as_bytes(), unescape(key).as_bytes()])
}

/// The conversation's own id; without one, one derived from its content.
pub fn conversation_id(conversation: &Object<'_>, bytes: &[u8]) -> String {
    let named = ["conversation_id", "id"].iter().find_map(|name| conversation.get_text(name));
    match named.filter(|id| !id.is_empty()) {
        Some(id) => id.into_owned(),
        None => format!("no-id-{}", &blake3::hash(bytes).to_hex()[..16]),
    }
}

/// Where a part of some bytes is in them.
pub fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}
