//! Clients change every week: whatever a reader distinguishes, a kind that it does not know is named by the audit.
//!
//! Every line of the fixtures is written again, once for each place where a kind could be new or a field could be added.
//! A fixture with a new shape is covered by itself. Every exit of a reader that reports something unknown must be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use annals_testkit::corpora::chatgpt::{
    Conversation, Generation, export, message, text_message, write_folder,
};
use annals_testkit::files::files_below;
use annals_testkit::{Bench, ROOT, fixtures};

/// Fields that say what kind of thing an object is.
const NAMES: [&str; 7] = ["type", "subtype", "operation", "role", "kind", "commandMode", "reason"];

/// A line with something new in it.
struct Novelty {
    /// Where it is: the fields that lead to it, with the kinds of the objects on the way.
    place: String,
    name: String,
    line: Value,
}

/// Collects one novelty per place.
#[derive(Default)]
struct Inventor {
    known: BTreeSet<String>,
    novelties: Vec<Novelty>,
}

impl Inventor {
    /// Changes `line`, at every place below the one that `pointer` names.
    fn invent(&mut self, line: &Value, pointer: &str, place: &str) {
        match line.pointer(pointer).unwrap() {
            Value::Object(fields) => {
                let kind = NAMES.iter().find_map(|name| fields.get(*name)?.as_str()).unwrap_or_default();
                let kinds = if kind.is_empty() { String::new() } else { format!("<{kind}>") };
                let here = format!("{place}{kinds}");
                self.add(line, &format!("{here}.new"), &format!("{pointer}/"), true);
                for (name, value) in fields {
                    let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    if NAMES.contains(&name.as_str()) && value.is_string() {
                        self.add(line, &format!("{place}.{name}"), &below, false);
                    }
                    self.invent(line, &below, &format!("{here}.{name}"));
                }
            }
            Value::Array(items) => {
                for number in 0..items.len() {
                    self.invent(line, &format!("{pointer}/{number}"), &format!("{place}[]"));
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, line: &Value, place: &str, pointer: &str, field: bool) {
        if !self.known.insert(place.to_owned()) {
            return;
        }
        let name = format!("invented{:05}", self.novelties.len());
        let mut line = line.clone();
        if field {
            let object = line.pointer_mut(pointer.strip_suffix('/').unwrap()).unwrap();
            object[&name] = json!(1);
        } else {
            *line.pointer_mut(pointer).unwrap() = json!(name);
        }
        self.novelties.push(Novelty { place: place.to_owned(), name, line });
    }
}

/// What the audit of a source names.
fn named(bench: &Bench, source: &str) -> Vec<String> {
    let audit = bench.json(&["audit"]);
    let sources = audit["sources"].as_array().unwrap();
    let audit = sources.iter().find(|audit| audit["source"] == source).unwrap();
    let unknown = audit["unknown"].as_array().unwrap().iter();
    unknown.map(|unknown| unknown["kind"].as_str().unwrap().to_owned()).collect()
}

/// The transcripts of all fixtures of a source, line by line.
fn lines_of(source: &str, is_transcript: impl Fn(&Path) -> bool) -> Vec<Value> {
    let cases = fixtures::with_home().into_iter().filter(|(of, _)| *of == source);
    let files = cases.flat_map(|(_, case)| files_below(&case.join("home")));
    let mut lines = Vec::new();
    for file in files.filter(|file| is_transcript(file)) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        lines.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    lines.retain(Value::is_object);
    assert!(!lines.is_empty(), "{source} has no transcripts");
    lines
}

/// Plants everything that is new in `lines`, and checks that the audit names what a reader should distinguish. Returns all
/// that it names, also of the lines that lack what they should have.
fn check(
    source: &str,
    root: &str,
    lines: &[Value],
    lacking: &[Value],
    write: impl Fn(&Bench, &str),
    opaque: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut inventor = Inventor::default();
    lines.iter().for_each(|line| inventor.invent(line, "", root));
    let (opaque, open): (Vec<Novelty>, Vec<Novelty>) =
        inventor.novelties.into_iter().partition(|novelty| opaque(&novelty.place));
    println!("{source}: {} novelties, {} places that no reader looks at", open.len(), opaque.len());
    assert!(open.len() >= 30, "{source} distinguishes more than that");
    let bench = Bench::new();
    let lines = open.iter().map(|novelty| &novelty.line).chain(lacking);
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    write(&bench, &text);
    bench.sync();
    let named = named(&bench, source);
    let all = named.join("\n");
    let missing: Vec<&str> = open
        .iter()
        .filter(|novelty| !all.contains(&novelty.name))
        .map(|novelty| novelty.place.as_str())
        .collect();
    assert!(missing.is_empty(), "{} are not named:\n{}", missing.len(), missing.join("\n"));
    named
}

/// No kind is distinguished here: lines that are unknown themselves, and what is shown or passed on as it is.
const CLAUDE_OPAQUE: &[&str] = &[
    "<valve-state>",
    "<brand-new-row>",
    // Plumbing: kept, and never conversation.
    "<api-request",
    "<cost-state>",
    "<tools-used>",
    // The shape of a result depends on its tool.
    ".toolUseResult",
    "<image>.source",
];

const CODEX_OPAQUE: &[&str] = &[
    "<weather",
    "<hologram>.",
    "<telepathy>.",
    "<valve_turned>.",
    "<dream>.",
    "<Dream>.",
    "<Postcard>.",
    ".git.",
    ".sandbox_policy",
    ".parsed_cmd[]",
    ".replacement_history[]",
    "<web_search_call>.action",
    "<McpToolCall>.result",
    "<EnteredReviewMode>.target",
    "<event_msg>.payload.reason",
];

fn is_below(place: &str, roots: &[&str]) -> bool {
    roots.iter().any(|root| place.contains(root))
}

#[test]
fn whatever_is_new_in_claude_code_is_named() {
    let is_transcript = |path: &Path| {
        path.extension().is_some_and(|end| end == "jsonl")
            && path.components().any(|part| part.as_os_str() == "projects")
            && path.file_name().is_some_and(|name| name != "resume-head.jsonl")
    };
    let lines = lines_of("claude_code", is_transcript);
    let write = |bench: &Bench, text: &str| {
        let folder = bench.claude().join("projects/-home-ada-engine");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("70aa0000-0000-4000-8000-000000000001.jsonl"), text).unwrap();
    };
    let opaque = |place: &str| {
        let field = place.ends_with(".new");
        let judged = depth(place) == 1 || depth(place) == 2 && place.contains(".message");
        field && !judged || is_below(place, CLAUDE_OPAQUE)
    };
    let lacking = [json!({ "type": "assistant", "uuid": "u1" }), json!({ "uuid": "u2" })];
    let named = check("claude_code", "row", &lines, &lacking, write, opaque);
    every_exit_is_reached("claude_code", &["transcript.rs", "queue.rs", "drift.rs"], &named);
}

/// How many objects are around the place.
fn depth(place: &str) -> usize {
    place.matches('.').count()
}

#[test]
fn whatever_is_new_in_codex_is_named() {
    let is_transcript = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("rollout-") && name.ends_with(".jsonl")
    };
    let lines = lines_of("codex_cli", is_transcript);
    let write = |bench: &Bench, text: &str| {
        // Lines without an envelope are in separate files, whose first line has no type.
        let (wrapped, mut bare): (Vec<String>, Vec<String>) =
            text.lines().map(str::to_owned).partition(|line| line.contains(r#""payload""#));
        bare.sort_by_key(|line| line.contains(r#""type""#));
        let [first, second] = [1, 2].map(|number| format!("0199ab00-0000-7000-8000-{number:012}"));
        let meta = annals_testkit::codex::meta(&first);
        bench.transcript(&annals_testkit::codex::rollout(&first), &[&[meta], wrapped.as_slice()].concat());
        bench.transcript(&annals_testkit::codex::rollout(&second), &bare);
    };
    let opaque = |place: &str| {
        let field = place.ends_with(".new");
        let judged = depth(place) == 1
            || depth(place) == 2 && place.contains(".payload")
            || depth(place) == 3 && place.contains(".item<");
        field && !judged || is_below(place, CODEX_OPAQUE)
    };
    let lacking = [
        json!({ "timestamp": "2026-11-15T10:00:03.000Z", "type": "event_msg", "payload": { "type": "item_completed" } }),
        json!({ "timestamp": "2026-11-15T10:00:03.000Z", "payload": {} }),
    ];
    let named = check("codex_cli", "line", &lines, &lacking, write, opaque);
    every_exit_is_reached("codex_cli", &["rollout.rs", "drift.rs", "meta.rs"], &named);
}

/// Reads the sources of a reader: each text that it reports something unknown with must be among what was named.
fn every_exit_is_reached(source: &str, files: &[&str], named: &[String]) {
    let call = regex::Regex::new(
        r#"(?:Verdict::Unknown|self\.unknown|Item::Drift|visit|each_unknown_field)\(\s*(?:[a-z_.&]+, [A-Z_]+, )?(?:format!\()?"([^"]+)""#,
    )
    .unwrap();
    let mut exits: BTreeMap<String, String> = BTreeMap::new();
    for file in files {
        let path = Path::new(ROOT).join("crates/annals-sources/src").join(source).join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap();
        exits.extend(call.captures_iter(text).map(|exit| (exit[1].to_owned(), (*file).to_owned())));
    }
    assert!(exits.len() >= 5, "{source}: only {exits:?}");
    let hole = regex::Regex::new(r"\\\{[a-z_]*\\\}").unwrap();
    for (exit, file) in exits {
        let shape = hole.replace_all(&regex::escape(&exit), ".*").into_owned();
        let shape = regex::Regex::new(&format!("^{shape}")).unwrap();
        assert!(
            named.iter().any(|kind| shape.is_match(kind)),
            "nothing reaches {exit:?} of {file}: {named:#?}"
        );
    }
}

#[test]
fn whatever_is_new_in_chatgpt_is_named() {
    let bench = Bench::new();
    let mut talk = Conversation::new("0199ab00-0000-4000-8000-000000000001", "New kinds");
    let root = "client-created-root";
    talk.node(
        "kind",
        root,
        message("kind", "user", json!({ "content_type": "invented-content", "beam": 1 })),
    );
    let part = json!([{ "content_type": "invented-part", "beam": 1 }, "words"]);
    talk.node("part", "kind", text_message("part", "user", part));
    talk.node("role", "part", text_message("role", "invented-role", json!(["words"])));
    let folder = bench.folder.path().join("export");
    write_folder(&export(Generation::Second, &[talk]), &folder);
    bench.import(&[&folder]);
    let named = named(&bench, "chatgpt");
    for kind in ["content invented-content", "part invented-part", "role invented-role"] {
        assert!(named.contains(&kind.to_owned()), "{kind} is not among {named:?}");
    }
}

#[test]
fn whatever_is_new_in_traces_is_named() {
    let bench = Bench::new();
    let item = |kind: &str| json!({ "type": kind, "id": format!("{kind}_1"), "status": "completed" });
    let message = |role: &str, part: &str| json!({ "type": "message", "role": role, "content": [{ "type": part, "text": "words" }] });
    let request = |url: &str, name: &str, body: Value| json!({ "custom_id": name, "method": "POST", "url": url, "body": body });
    let response = |name: &str, body: Value| {
        json!({ "id": format!("batch_req_{name}"), "custom_id": name, "error": null,
            "response": { "status_code": 200, "request_id": format!("req_{name}"), "body": body } })
    };
    let input = json!([
        message("user", "input_text"),
        message("invented-role", "input_text"),
        message("user", "invented-part"),
        item("invented-item")
    ]);
    let output = json!([item("invented_call"), message("assistant", "invented-answer")]);
    let choice = json!({ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": [{ "type": "invented-choice", "text": "words" }] } });
    let requests = [
        request("/v1/responses", "one", json!({ "model": "gpt-5", "input": input })),
        request(
            "/v1/chat/completions",
            "two",
            json!({ "model": "gpt-5", "messages": [{ "role": "invented-speaker", "content": "words" }] }),
        ),
    ];
    let responses = [
        response(
            "one",
            json!({ "id": "resp_1", "object": "response", "created_at": 1_772_442_000,
            "model": "gpt-5", "status": "completed", "output": output }),
        ),
        response(
            "two",
            json!({ "id": "chatcmpl-1", "object": "chat.completion", "created": 1_772_442_000,
            "model": "gpt-5", "choices": [choice] }),
        ),
    ];
    let folder = bench.folder.path().join("traces");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, lines) in [("requests.jsonl", &requests), ("batch_1_output.jsonl", &responses)] {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(folder.join(name), text).unwrap();
    }
    bench.import(&[&folder]);
    let named = named(&bench, "openai_api");
    for kind in [
        "item/invented-item",
        "item/invented_call",
        "role/invented-role",
        "role/invented-speaker",
        "part/invented-part",
        "part/invented-answer",
        "part/invented-choice",
    ] {
        assert!(named.contains(&kind.to_owned()), "{kind} is not among {named:?}");
    }
}
