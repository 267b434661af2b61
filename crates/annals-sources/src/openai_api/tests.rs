//! Whatever a file holds: no panic, every row within its element, and no credential left.

use proptest::prelude::*;
use proptest::sample::Index;

use super::OpenAiApi;
use super::clean::clean;
use super::reader::TraceReader;
use crate::json::{Json, Scan};
use crate::{FileContext, Reader, Source};
use annals_core::{Item, MessageKind, Span};

/// The elements of all fixtures.
fn elements() -> Vec<Vec<u8>> {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/openai_api/fixtures");
    let mut elements = Vec::new();
    for case in std::fs::read_dir(fixtures).unwrap() {
        for file in std::fs::read_dir(case.unwrap().path().join("exports/1")).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            match Json::parse(&bytes) {
                Some(json) if json.is_array() => {
                    elements.extend(json.items().map(|item| item.bytes().to_vec()))
                }
                Some(json) => {
                    let inside = json.get("data").or_else(|| json.get("log")?.get("entries"));
                    elements
                        .extend(inside.into_iter().flat_map(Json::items).map(|item| item.bytes().to_vec()));
                    elements.push(bytes);
                }
                None => elements.extend(bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)),
            }
        }
    }
    assert!(elements.len() > 30);
    elements
}

/// Reads elements as captures of one session, and shows every row.
fn read(elements: &[Vec<u8>]) -> Vec<Item> {
    let mut reader = TraceReader::new();
    let (mut items, mut offset) = (Vec::new(), 0);
    for element in elements {
        let header = br#"{"member":"conv_1.json","session":"one"}"#;
        reader.read(offset, Scan::new(header).line(), &mut items);
        offset += header.len() as u64 + 1;
        let before = items.len();
        reader.read(offset, Scan::new(element).line(), &mut items);
        for item in &items[before..] {
            let span = match item {
                Item::Message(message) => message.span,
                Item::Call(call) => call.span,
                Item::Result(result) => result.output.unwrap(),
                Item::Document(document) => document.span,
                _ => continue,
            };
            show(element, offset, span);
        }
        offset += element.len() as u64 + 1;
    }
    assert!(reader.facts().len() <= 1);
    assert_one_row_a_place(&items);
    items
}

/// Two rows of a kind at one place would be one row.
fn assert_one_row_a_place(items: &[Item]) {
    let [mut messages, mut calls, mut usages] = [Vec::new(), Vec::new(), Vec::new()];
    for item in items {
        match item {
            Item::Message(message) => messages.push(message.span.offset),
            Item::Call(call) => calls.push(call.span.offset),
            Item::Usage(usage) if !usage.again => usages.push(usage.span.offset),
            _ => {}
        }
    }
    for mut places in [messages, calls, usages] {
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), count);
    }
}

fn show(element: &[u8], offset: u64, span: Span) {
    let start = (span.offset - offset) as usize;
    let bytes = &element[start..start + span.length as usize];
    OpenAiApi.blocks(&[bytes]);
    OpenAiApi.native(bytes);
    OpenAiApi.record("references", "x", bytes);
}

#[test]
fn repeated_elements_add_nothing() {
    let elements: Vec<Vec<u8>> = elements().iter().map(|element| clean(element).into_owned()).collect();
    let once = read(&elements);
    let twice = read(&[elements.clone(), elements].concat());
    let calls = |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Call(_))).count();
    let prompts = |items: &[Item]| {
        let prompt =
            |item: &&Item| matches!(item, Item::Message(message) if message.kind == MessageKind::Prompt);
        items.iter().filter(prompt).count()
    };
    assert!(calls(&once) > 10 && prompts(&once) > 5);
    assert_eq!((calls(&twice), prompts(&twice)), (calls(&once), prompts(&once)));
}

#[test]
fn readers_of_other_names_keep_the_bytes() {
    let file = FileContext { path: "imports/x.json-seq".into(), modified: None };
    for name in ["import", "aside", "nobody"] {
        let mut out = Vec::new();
        OpenAiApi.reader(name, &file, None).read(0, Scan::new(b"{}").line(), &mut out);
        assert!(out.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn mutated_elements_do_no_harm(
        picks in proptest::collection::vec(any::<Index>(), 1..4),
        edits in proptest::collection::vec((any::<Index>(), any::<u8>(), 0..4u8, 0..40usize), 0..12),
    ) {
        let all = elements();
        let mut chosen: Vec<Vec<u8>> = picks.iter().map(|pick| pick.get(&all).clone()).collect();
        for (number, (place, byte, how, length)) in edits.iter().enumerate() {
            let which = number % chosen.len();
            let element = &mut chosen[which];
            if element.is_empty() {
                continue;
            }
            let at = place.index(element.len());
            let end = (at + length).min(element.len());
            match how {
                0 => element[at] = *byte,
                1 => drop(element.drain(at..end)),
                2 => {
                    let piece = element[at..end].to_vec();
                    element.splice(at..at, piece);
                }
                _ => element.truncate(end),
            }
        }
        for element in &chosen {
            let once = clean(element).into_owned();
            prop_assert_eq!(clean(&once).into_owned(), once.clone());
            prop_assert_eq!(Json::parse(&once).is_some(), Json::parse(element).is_some());
        }
        read(&chosen);
    }
}
