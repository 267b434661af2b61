//! `rules/*.rules`: every call of `prefix_rule` and its like is a record.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::starlark::{RuleCall, calls};
use crate::home::authored::in_repository;
use crate::json::Line;
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Document, Item, Span, Time, Verdict};

/// A text that is a key by itself is not longer than this.
const LONGEST_KEY: usize = 200;

const PREFIX: &str = "prefix_rule";

/// Functions that rules are made with, and the arguments that the client declares, in its order.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (PREFIX, &["pattern", "decision", "match", "not_match", "justification"]),
    ("network_rule", &["host", "protocol", "decision", "justification"]),
    ("host_executable", &["name", "paths"]),
];

/// Functions of the language, which make no rule.
const LANGUAGE: &[&str] =
    &["load", "print", "range", "len", "fail", "list", "str", "sorted", "enumerate", "zip"];

pub struct RulesReader {
    file: String,
    at: Option<Time>,
}

impl RulesReader {
    pub fn new(file: &FileContext) -> RulesReader {
        RulesReader { file: name_of(&file.path), at: file.modified }
    }
}

/// `rules/default.rules` is `default`; that of a repository has its folder before a `#`.
fn name_of(path: &str) -> String {
    if let Some((repository, inner)) = in_repository(path, &["/.codex/"]) {
        return format!("{repository}#{}", name_of(inner));
    }
    let name = path.strip_prefix("rules/").unwrap_or(path);
    name.strip_suffix(".rules").unwrap_or(name).to_owned()
}

impl Reader for RulesReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let bytes = line.bytes();
        let mut seen: HashMap<String, u32> = HashMap::new();
        let opens = |word: &[u8]| FUNCTIONS.iter().any(|(name, _)| name.as_bytes() == word);
        for (start, end) in calls(bytes, opens) {
            let text = &bytes[start..end];
            if LANGUAGE.contains(&function(text).as_str()) {
                continue;
            }
            let mut key = format!("{}:{}", self.file, rule_key(text));
            // Nothing forbids the same rule twice, with another decision.
            let times = seen.entry(key.clone()).or_default();
            *times += 1;
            if *times > 1 {
                key = format!("{key} #{times}");
            }
            out.push(Item::Document(Document {
                stream: "approval_rules",
                key,
                session: None,
                at: self.at,
                span: Span { offset: offset + start as u64, length: text.len() as u64 },
                content: ContentKey::of(&[text]),
            }));
        }
        Verdict::Kept("approval_rules".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        Vec::new()
    }
}

/// The call, when it can be read: its arguments are literals, and those that the function has.
fn read(text: &[u8]) -> Option<(RuleCall, &'static [&'static str])> {
    let call = RuleCall::parse(text)?;
    let (_, declared) = FUNCTIONS.iter().find(|(name, _)| *name == call.function)?;
    let required = call.argument(declared, declared[0]);
    let is_rule = match call.function.as_str() {
        PREFIX => required.is_some_and(is_pattern),
        _ => required.is_some_and(Value::is_string),
    };
    let says = |name: &str| call.argument(declared, name);
    let is_said = ["decision", "justification", "protocol"]
        .into_iter()
        .all(|name| says(name).is_none_or(Value::is_string));
    (is_rule && is_said && call.fits(declared)).then_some((call, declared))
}

/// Words, or lists of alternatives to one.
fn is_pattern(value: &Value) -> bool {
    let is_words = |words: &Vec<Value>| !words.is_empty() && words.iter().all(Value::is_string);
    let is_token = |token: &Value| token.is_string() || token.as_array().is_some_and(is_words);
    value.as_array().is_some_and(|tokens| !tokens.is_empty() && tokens.iter().all(is_token))
}

/// What a rule is about; the text of one that cannot be read.
fn rule_key(text: &[u8]) -> String {
    let Some((call, declared)) = read(text) else {
        let words = String::from_utf8_lossy(text).split_whitespace().collect::<Vec<_>>().join(" ");
        return match words.char_indices().nth(LONGEST_KEY) {
            Some((cut, _)) => format!("{}… {}", &words[..cut], ContentKey::of(&[text]).hex()),
            None => words,
        };
    };
    let about = call.argument(declared, declared[0]).unwrap_or(&Value::Null);
    match (call.function.as_str(), call.argument(declared, "protocol")) {
        (PREFIX, _) => about.to_string(),
        (function, Some(protocol)) => format!("{function} {about} {protocol}"),
        (function, None) => format!("{function} {about}"),
    }
}

fn function(text: &[u8]) -> String {
    let name = text.split(|byte| *byte == b'(').next().unwrap_or_default();
    String::from_utf8_lossy(name).trim().to_owned()
}

/// Function, pattern, decision and the reason given.
pub fn record(key: &str, text: &[u8]) -> Value {
    let Some((call, declared)) = read(text) else {
        return json!({
            "id": key,
            "function": function(text),
            "pattern": null,
            "decision": null,
            "justification": null,
            "text": String::from_utf8_lossy(text),
            "unreadable": "not a call with literal arguments",
        });
    };
    let argument = |name: &str| call.argument(declared, name).cloned();
    // Without a decision, a prefix is allowed; a path of a program decides nothing.
    let default = (call.function == PREFIX).then(|| Value::from("allow"));
    json!({
        "id": key,
        "function": call.function,
        "pattern": argument(declared[0]),
        "decision": argument("decision").or(default),
        "justification": argument("justification"),
        "match": argument("match"),
        "not_match": argument("not_match"),
        "protocol": argument("protocol"),
        "paths": argument("paths"),
        "text": String::from_utf8_lossy(text),
        "unreadable": null,
    })
}

#[cfg(test)]
mod tests {
    use super::{RulesReader, name_of, record};
    use crate::json::Scan;
    use crate::{FileContext, Reader};
    use annals_core::Item;
    use serde_json::{Value, json};

    fn rules(text: &str) -> Vec<Value> {
        let file = FileContext { path: "rules/default.rules".into(), modified: None };
        let mut items = Vec::new();
        RulesReader::new(&file).read(0, Scan::new(text.as_bytes()).line(), &mut items);
        let documents = items.iter().filter_map(|item| match item {
            Item::Document(document) => Some(document),
            _ => None,
        });
        let bytes = |start: u64, length: u64| &text.as_bytes()[start as usize..(start + length) as usize];
        documents.map(|found| record(&found.key, bytes(found.span.offset, found.span.length))).collect()
    }

    fn rule(text: &str) -> Value {
        let mut rules = rules(text);
        assert_eq!(rules.len(), 1, "{text}: {rules:?}");
        rules.remove(0)
    }

    #[test]
    fn rules_are_read_however_they_are_written() {
        for text in [
            r#"prefix_rule(pattern=["rm", "-rf"], decision="forbidden")"#,
            r#"prefix_rule(pattern = ["rm", "-rf"], decision = "forbidden")"#,
            "prefix_rule (\n    # careful, (this) bites\n    pattern = [\n        'rm',  # why: \"gone\"\n        '-rf',\n    ],\n    decision = 'forbidden',\n)",
            r#"prefix_rule(decision="forbidden",pattern=["rm"]+["-rf"],)"#,
            r#"prefix_rule(["rm", "-rf"], "forbidden")"#,
            r#"prefix_rule(pattern=("rm", '-rf'), decision=("forbidden"))"#,
        ] {
            let rule = rule(text);
            assert_eq!(rule["pattern"], json!(["rm", "-rf"]), "{text}");
            assert_eq!(rule["decision"], "forbidden", "{text}");
            assert_eq!(rule["id"], r#"default:["rm","-rf"]"#, "{text}");
            assert_eq!(rule["unreadable"], Value::Null, "{text}");
        }
    }

    #[test]
    fn alternatives_reasons_and_examples_are_kept() {
        let rule = rule(
            "prefix_rule(pattern=['git', ['status', 'log']], decision='prompt',\n  justification='look, (then) go = on',\n  \
             match=['git status', ['git', 'log']], not_match=[\"git push\"])",
        );
        assert_eq!(rule["pattern"], json!(["git", ["status", "log"]]));
        assert_eq!(rule["decision"], "prompt");
        assert_eq!(rule["justification"], "look, (then) go = on");
        assert_eq!(rule["match"], json!(["git status", ["git", "log"]]));
        assert_eq!(rule["not_match"], json!(["git push"]));
    }

    #[test]
    fn only_a_prefix_is_allowed_by_default() {
        assert_eq!(rule("prefix_rule(pattern=['ls'])")["decision"], "allow");
        assert_eq!(rule("prefix_rule(pattern=['ls'], decision=None)")["decision"], "allow");
        let program = rule("host_executable(name = 'git', paths = ['/usr/bin/git'])");
        assert_eq!(program["decision"], Value::Null);
        assert_eq!(program["pattern"], "git");
        assert_eq!(program["paths"], json!(["/usr/bin/git"]));
        let host = rule("network_rule(host='example.org', protocol='https', decision='deny')");
        assert_eq!((&host["pattern"], &host["decision"]), (&json!("example.org"), &json!("deny")));
        assert_eq!(host["protocol"], "https");
    }

    #[test]
    fn what_cannot_be_read_has_its_text_and_no_decision() {
        for text in [
            "prefix_rule(pattern = SAFE, decision = 'allow')",
            "prefix_rule(pattern = [tool for tool in SAFE])",
            "prefix_rule(pattern = ['ls'], decision = choose())",
            "prefix_rule(pattern = 'ls')",
            "prefix_rule(pattern = [])",
            "prefix_rule(pattern = ['ls', 3])",
            "prefix_rule(decision = 'allow')",
            "prefix_rule(pattern = ['ls'], mood = 'good')",
            "prefix_rule(pattern = ['ls'], decision = 1)",
            "prefix_rule(pattern = ['never closed'",
            "later_rule(pattern = ['ls'], decision = 'allow')",
        ] {
            let rule = rule(text);
            assert_eq!(rule["id"], format!("default:{text}"));
            assert_eq!(rule["text"], text);
            assert_eq!((&rule["pattern"], &rule["decision"]), (&Value::Null, &Value::Null), "{text}");
            assert!(rule["unreadable"].is_string(), "{text}");
        }
        let long = format!("prefix_rule(pattern = [{}])", "x, ".repeat(500));
        assert!(rule(&long)["id"].as_str().is_some_and(|id| id.len() < 300));
    }

    #[test]
    fn no_rule_takes_the_place_of_another() {
        let text = "load('//x')\nprefix_rule(pattern = ['a'])\nprefix_rule(pattern = ['a'], decision = 'prompt')\n\
            prefix_rule(pattern = X)\nprefix_rule(pattern = Y)\nfor tool in ['b']:\n    prefix_rule(pattern = [tool])\n\
            network_rule(host = 'a', protocol = 'http', decision = 'allow')\n\
            network_rule(host = 'a', protocol = 'https', decision = 'allow')\nhost_executable(name = 'a', paths = [])\n\
            prefix_rule(pattern = ['open'\nprefix_rule(pattern = ['c'])\n";
        let rules = rules(text);
        let mut ids: Vec<&str> = rules.iter().filter_map(|rule| rule["id"].as_str()).collect();
        assert_eq!(ids.len(), 10);
        assert_eq!(ids[1], r#"default:["a"] #2"#);
        assert_eq!(rules[9]["pattern"], json!(["c"]), "behind one that was never closed");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 10, "{ids:?}");
    }

    #[test]
    fn files_of_repositories_are_told_apart() {
        assert_eq!(name_of("rules/default.rules"), "default");
        assert_eq!(name_of("rules/rules/a.rules"), "rules/a");
        assert_eq!(name_of("repositories/home/ada/gauge/.codex/rules/a.rules"), "/home/ada/gauge#a");
    }
}
