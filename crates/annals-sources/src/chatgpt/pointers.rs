//! What in a message points to a file: parts, screenshots, images that code made, links into the sandbox.

use std::borrow::Cow;

use crate::json::Json;

/// A pointer, and the object that has it.
pub struct Pointed<'a> {
    pub id: String,
    pub object: Json<'a>,
}

/// Pointers in the content of a message and in its metadata.
pub fn pointed<'a>(
    content: impl Fn(&str) -> Option<Json<'a>>,
    metadata: impl Fn(&str) -> Option<Json<'a>>,
) -> Vec<Pointed<'a>> {
    let parts = content("parts").into_iter().flat_map(Json::items);
    let objects = parts.filter(|part| part.is_object()).flat_map(pointers).chain(content("screenshot"));
    let mut found: Vec<Pointed<'a>> = objects
        .filter_map(|object| Some(Pointed { id: file_at(object, "asset_pointer")?, object }))
        .collect();
    let run = metadata("aggregate_result").and_then(|run| run.get("messages"));
    let images = run.into_iter().flat_map(Json::items);
    found.extend(images.filter_map(|object| Some(Pointed { id: image_of_code(object)?, object })));
    found
}

/// The file of an image that code made.
fn image_of_code(message: Json<'_>) -> Option<String> {
    let url = message.get_text("image_url")?;
    // Others are links to somewhere else, or the image itself.
    let is_file = url.starts_with("file-service://") || url.starts_with("sediment://");
    id_of_pointer(&url).filter(|_| is_file).map(str::to_owned)
}

fn file_at(object: Json<'_>, name: &str) -> Option<String> {
    object.get_text(name).and_then(|pointer| id_of_pointer(&pointer).map(str::to_owned))
}

/// A part of a message, and the parts nested in it: sound and video are nested.
fn pointers(part: Json<'_>) -> impl Iterator<Item = Json<'_>> {
    let nested = ["audio_asset_pointer", "video_container_asset_pointer"].iter();
    let nested = nested.filter_map(move |name| part.get(name)).filter(|inner| inner.is_object());
    let frames = part.get("frames_asset_pointers").into_iter().flat_map(Json::items);
    std::iter::once(part).chain(nested).chain(frames.filter(|frame| frame.is_object()))
}

/// `file-service://file-X`, `sediment://file_X`, `sediment://x#file_X#p_0.jpg`.
pub fn id_of_pointer(pointer: &str) -> Option<&str> {
    let rest = pointer.split_once("://").map_or(pointer, |(_, rest)| rest);
    let mut parts = rest.split('#');
    let id = parts.clone().find(|part| part.starts_with("file_") || part.starts_with("file-"));
    id.or_else(|| parts.next()).filter(|id| !id.is_empty())
}

const SANDBOX: &str = "sandbox:";

/// The paths that links into the sandbox lead to, each once.
pub fn sandbox_paths(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(SANDBOX) {
        let is_link = rest[..at].ends_with('(');
        let link = rest[at + SANDBOX.len()..].trim_start_matches("//");
        rest = link;
        if !link.starts_with('/') {
            continue;
        }
        // Within a link of Markdown a name may have spaces.
        let end = |letter: char| match is_link {
            true => letter == ')' || letter == '\n',
            false => letter.is_whitespace() || "()[]<>\"'`".contains(letter),
        };
        let link = &link[..link.find(end).unwrap_or(link.len())];
        let path = decoded(link.trim_end_matches(['.', ',', ';', ':', '*']));
        if path.len() > 1 && !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Files of a sandbox have no id: the message that links to one names it.
pub fn sandbox_id(conversation: &str, node: &str, path: &str) -> String {
    format!("{SANDBOX}{conversation}/{node}{path}")
}

/// A path without the escapes of addresses.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

/// The texts of a message in which links are.
pub fn texts<'a>(content: impl Fn(&str) -> Option<Json<'a>>) -> Vec<Cow<'a, str>> {
    let parts = content("parts").into_iter().flat_map(Json::items);
    parts.filter_map(Json::text).chain(content("text").and_then(Json::text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_into_the_sandbox_are_found_in_texts() {
        let text = "Here: [Chart](sandbox:/mnt/data/my chart.png), [again](sandbox:/mnt/data/my%20chart.png) \
                    and sandbox:/mnt/data/plain.csv. Not sandbox:x, not (sandbox:)";
        assert_eq!(sandbox_paths(text), ["/mnt/data/my chart.png", "/mnt/data/plain.csv"]);
        assert_eq!(sandbox_paths("[x](sandbox:///mnt/data/a.txt)"), ["/mnt/data/a.txt"]);
        assert_eq!(sandbox_paths("sandbox:/mnt/data/%zz%"), ["/mnt/data/%zz%"]);
        assert_eq!(sandbox_id("c1", "n1", "/mnt/data/a"), "sandbox:c1/n1/mnt/data/a");
    }

    #[test]
    fn every_pointer_of_a_message_is_found() {
        let message = br#"{"content":{"parts":["text",{"asset_pointer":"sediment://file_1"},
            {"audio_asset_pointer":{"asset_pointer":"sediment://file_2"},
             "frames_asset_pointers":[{"asset_pointer":"sediment://file_3"}]}],
            "screenshot":{"asset_pointer":"sediment://x#file_4#p_0.jpg"}},
            "metadata":{"aggregate_result":{"messages":[{"message_type":"image","image_url":"file-service://file-5"},
            {"message_type":"stream","text":"6"},{"image_url":"https://example.com/7.png"}]}}}"#;
        let json = Json::parse(message).unwrap();
        let (content, metadata) = (json.get("content").unwrap(), json.get("metadata").unwrap());
        let ids: Vec<String> = pointed(|name| content.get(name), |name| metadata.get(name))
            .into_iter()
            .map(|it| it.id)
            .collect();
        assert_eq!(ids, ["file_1", "file_2", "file_3", "file_4", "file-5"]);
    }
}
