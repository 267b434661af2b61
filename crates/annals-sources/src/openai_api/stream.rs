//! Responses that arrived as a stream of events: `chat.completion.chunk` and `response.*`.

use std::collections::BTreeMap;

use crate::json::Json;

/// The first object of these bytes, and the rest.
pub fn first_object(text: &[u8]) -> Option<(Json<'_>, &[u8])> {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let object = Json::parse_first(&text[start..]).filter(|first| first.is_object())?;
    Some((object, &text[start + object.bytes().len()..]))
}

/// Recognises a stream of server-sent events.
pub fn is_stream(text: &[u8]) -> bool {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|word| text[start..].starts_with(word))
}

/// The data of each event, with everything from it to the end of the stream. Truncated events are skipped.
pub fn events(text: &[u8]) -> impl Iterator<Item = (Json<'_>, &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
            let (line, from) = (&rest[..end], rest);
            rest = &rest[end..];
            let data = line.strip_prefix(b"data:").and_then(Json::parse).filter(|data| data.is_object());
            if let Some(data) = data {
                return Some((data, from));
            }
        }
        None
    })
}

/// One assembled choice of a streamed completion.
#[derive(Debug, Default, PartialEq)]
pub struct StreamChoice<'t> {
    /// The bytes from its first piece to the end of the stream.
    pub bytes: &'t [u8],
    pub text: String,
    pub refusal: String,
    pub reasoning: String,
    pub calls: Vec<StreamedCall<'t>>,
    pub finished: bool,
}

/// A call whose arguments came in pieces.
#[derive(Debug, Default, PartialEq)]
pub struct StreamedCall<'t> {
    /// The bytes from its first piece to the end of the stream.
    pub bytes: &'t [u8],
    pub number: i64,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

/// The choices of a streamed completion, by number.
pub fn choices(text: &[u8]) -> BTreeMap<i64, StreamChoice<'_>> {
    let mut choices = BTreeMap::new();
    for (event, _) in events(text) {
        for part in event.get("choices").into_iter().flat_map(Json::items) {
            add_part(&mut choices, part, text);
        }
    }
    choices
}

/// The choice at the start of these bytes: its first piece, then the rest of the stream.
pub fn choice_from(bytes: &[u8]) -> Option<StreamChoice<'_>> {
    let (first, rest) = first_object(bytes).filter(|(first, _)| first.get("delta").is_some())?;
    let mut choices = BTreeMap::new();
    add_part(&mut choices, first, bytes);
    for (event, _) in events(after_line(rest)) {
        for part in event.get("choices").into_iter().flat_map(Json::items) {
            add_part(&mut choices, part, bytes);
        }
    }
    choices.remove(&number_of(first))
}

/// The call at the start of these bytes: its first piece, then the rest of the stream.
pub fn call_from(bytes: &[u8]) -> Option<StreamedCall<'_>> {
    let (first, rest) = first_object(bytes)?;
    let mut calls = Vec::new();
    add_piece(&mut calls, first, bytes);
    for (event, _) in events(after_line(rest)) {
        for part in event.get("choices").into_iter().flat_map(Json::items) {
            let pieces = part.get("delta").and_then(|delta| delta.get("tool_calls"));
            for piece in pieces.into_iter().flat_map(Json::items) {
                add_piece(&mut calls, piece, bytes);
            }
        }
    }
    calls.into_iter().next()
}

/// The content of a stream of `response.*` events: the whole response if it is complete, otherwise its parts.
#[derive(Debug, Default)]
pub struct Streamed<'t> {
    pub finished: bool,
    pub response: Option<Json<'t>>,
    /// Items that were complete when the stream broke off.
    pub items: Vec<Json<'t>>,
    /// The bytes from the first piece of an unfinished answer to the end of the stream.
    pub unfinished: Option<&'t [u8]>,
    pub error: Option<Json<'t>>,
}

pub fn response(text: &[u8]) -> Streamed<'_> {
    let mut streamed = Streamed::default();
    for (event, from) in events(text) {
        let kind = event.get_text("type").unwrap_or_default();
        match kind.as_ref() {
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.get("response");
                return Streamed { response, finished: true, ..Streamed::default() };
            }
            "response.output_item.done" => {
                streamed.items.extend(event.get("item"));
                streamed.unfinished = None;
            }
            "response.output_text.delta" => streamed.unfinished = streamed.unfinished.or(Some(from)),
            "error" => streamed.error = Some(event),
            _ if event.get("response").is_some() => streamed.response = event.get("response"),
            _ => {}
        }
    }
    streamed
}

/// The text of an unfinished answer.
pub fn unfinished_text(text: &[u8]) -> String {
    let mut words = String::new();
    for (event, _) in events(text) {
        if event.get_text("type").is_some_and(|kind| kind == "response.output_text.delta") {
            words.push_str(&event.get_text("delta").unwrap_or_default());
        }
    }
    words
}

fn add_part<'t>(choices: &mut BTreeMap<i64, StreamChoice<'t>>, part: Json<'t>, text: &'t [u8]) {
    let Some(delta) = part.get("delta") else { return };
    let choice = choices.entry(number_of(part)).or_default();
    if choice.bytes.is_empty() {
        choice.bytes = to_the_end(text, part);
    }
    let add = |text: &mut String, name: &str| text.push_str(&delta.get_text(name).unwrap_or_default());
    add(&mut choice.text, "content");
    add(&mut choice.refusal, "refusal");
    add(&mut choice.reasoning, "reasoning_content");
    choice.finished |= part.get("finish_reason").is_some();
    for piece in delta.get("tool_calls").into_iter().flat_map(Json::items) {
        add_piece(&mut choice.calls, piece, to_the_end(text, piece));
    }
}

fn number_of(part: Json<'_>) -> i64 {
    part.get_integer("index").unwrap_or(0)
}

fn add_piece<'t>(calls: &mut Vec<StreamedCall<'t>>, piece: Json<'_>, bytes: &'t [u8]) {
    let number = number_of(piece);
    let at = match calls.iter().position(|call| call.number == number) {
        Some(at) => at,
        None => {
            calls.push(StreamedCall { bytes, number, ..StreamedCall::default() });
            calls.len() - 1
        }
    };
    let Some(call) = calls.get_mut(at) else { return };
    if call.id.is_empty() {
        call.id = piece.get_text("id").unwrap_or_default().into_owned();
    }
    let Some(function) = piece.get("function") else { return };
    call.name.push_str(&function.get_text("name").unwrap_or_default());
    call.arguments.push_str(&function.get_text("arguments").unwrap_or_default());
}

fn to_the_end<'t>(text: &'t [u8], piece: Json<'t>) -> &'t [u8] {
    let from = (piece.bytes().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.get(from..).unwrap_or_default()
}

fn after_line(text: &[u8]) -> &[u8] {
    memchr::memchr(b'\n', text).map_or(&[], |end| &text[end + 1..])
}

#[cfg(test)]
mod tests {
    use super::{call_from, choice_from, choices, response, unfinished_text};

    #[test]
    fn pieces_of_words_and_calls_are_joined() {
        let text = concat!(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hel\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[",
            "{\"index\":0,\"id\":\"call_1\",\"function\":{\"name\":\"a\",\"arguments\":\"{\\\"x\\\"\"}},",
            "{\"index\":1,\"id\":\"call_2\",\"function\":{\"name\":\"b\",\"arguments\":\"{}\"}}]}}]}\n\n",
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[",
            "{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
            "data: [DONE]\n\n",
        );
        let choices = choices(text.as_bytes());
        let choice = &choices[&0];
        assert_eq!(choice.text, "Hello");
        assert_eq!(&choice_from(choice.bytes).unwrap(), choice);
        assert_eq!(choice.calls[0].arguments, "{\"x\":1}");
        let again = call_from(choice.calls[0].bytes).unwrap();
        assert_eq!((again.id.as_str(), again.arguments.as_str()), ("call_1", "{\"x\":1}"));
        let second = call_from(choice.calls[1].bytes).unwrap();
        assert_eq!((second.id.as_str(), second.name.as_str()), ("call_2", "b"));
    }

    #[test]
    fn a_broken_stream_keeps_what_it_has() {
        let text = "event: response.created\r\n\
            data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\r\n\r\n\
            data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"reasoning\"}}\n\n\
            data: {\"type\":\"response.output_text.delta\",\"delta\":\"Once \"}\n\n\
            data: {\"type\":\"response.output_text.delta\",\"delta\":\"upon\"}\n\n\
            data: {\"type\":\"response.output_text.del";
        let streamed = response(text.as_bytes());
        assert_eq!(streamed.response.unwrap().get_text("id").unwrap(), "resp_1");
        assert_eq!(streamed.items.len(), 1);
        assert_eq!(unfinished_text(streamed.unfinished.unwrap()), "Once upon");
    }
}
