//! The nodes of a conversation as they stand in its bytes, whatever generation of export wrote them.

use super::super::json::{Json, unescape};
use crate::model::Key;

/// One node of the tree; `bytes` is its name and its value, so that a row of it knows both.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    pub bytes: &'a [u8],
    /// The name, escapes and all.
    pub key: &'a [u8],
    pub parent: Option<Json<'a>>,
    pub children: Option<Json<'a>>,
    pub message: Option<Json<'a>>,
}

/// Nodes in the order of the file. A list of messages without a tree is a branch without siblings.
pub fn nodes(conversation: Json<'_>) -> Vec<Node<'_>> {
    let whole = conversation.bytes();
    let mut nodes = Vec::new();
    for (key, value) in conversation.get("mapping").into_iter().flat_map(Json::fields) {
        let (start, end) = (offset_in(whole, key) - 1, offset_in(whole, value.bytes()) + value.bytes().len());
        nodes.extend(whole.get(start..end).map(|bytes| node(bytes, key, value)));
    }
    if nodes.is_empty() {
        for message in conversation.get("messages").into_iter().flat_map(Json::items) {
            let key = message.get("id").and_then(Json::inner).unwrap_or_default();
            let parent = message.get("metadata").and_then(|metadata| metadata.get("parent_id"));
            let message = Some(message).filter(|message| message.is_object());
            nodes.extend(message.map(|message| Node {
                bytes: message.bytes(),
                key,
                parent,
                children: None,
                message: Some(message),
            }));
        }
    }
    nodes
}

/// The node whose row these bytes are.
pub fn node_of_row(bytes: &[u8]) -> Option<Node<'_>> {
    if bytes.first() == Some(&b'{') {
        let message = Json::parse(bytes)?;
        let key = message.get("id").and_then(Json::inner).unwrap_or_default();
        return Some(Node { bytes, key, parent: None, children: None, message: Some(message) });
    }
    let (key, value) = Json::pair(bytes)?;
    Some(node(bytes, key, value))
}

fn node<'a>(bytes: &'a [u8], key: &'a [u8], value: Json<'a>) -> Node<'a> {
    let (mut parent, mut children, mut message) = (None, None, None);
    for (name, field) in value.fields() {
        match name {
            b"parent" => parent = Some(field).filter(|field| !field.is_null()),
            b"children" => children = Some(field).filter(|field| field.is_array()),
            b"message" => message = Some(field).filter(|field| field.is_object()),
            _ => {}
        }
    }
    Node { bytes, key, parent, children, message }
}

/// The name of a node is its identity within the conversation.
pub fn node_key(session: &str, key: &[u8]) -> Key {
    Key::of(&[session.as_bytes(), unescape(key).as_bytes()])
}

/// The conversation's own id; without one, its content stands in.
pub fn conversation_id(conversation: Json<'_>, bytes: &[u8]) -> String {
    let named = ["conversation_id", "id"].iter().find_map(|name| conversation.get_text(name));
    match named.filter(|id| !id.is_empty()) {
        Some(id) => id.into_owned(),
        None => format!("no-id-{}", &blake3::hash(bytes).to_hex()[..16]),
    }
}

/// Where a part of some bytes stands in them.
pub fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize)
}
