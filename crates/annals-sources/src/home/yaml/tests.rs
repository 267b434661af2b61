//! Front matter as people write it, and broken.

use super::fields;
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str) -> Value {
    Value::Object(fields(text))
}

#[test]
fn lists_and_maps_stay_what_they_are() {
    let text = "name: shout\ntools:\n- Read\n- \"Bash(ls:*)\"\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        \
        - type: command\n          command: ./check.sh # why\n    - matcher: Edit\nmetadata:\n  author: ada\n  tags: [loud, 'a, b', 3]\n  \
        nested: {a: 1, b: {c: [x]}}\npaths: [\n  src/**,\n  docs/**,\n]\nempty:\nlast: ~\n";
    assert_eq!(
        read(text),
        json!({
            "name": "shout",
            "tools": ["Read", "Bash(ls:*)"],
            "hooks": {"PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]},
                {"matcher": "Edit"},
            ]},
            "metadata": {"author": "ada", "tags": ["loud", "a, b", 3], "nested": {"a": 1, "b": {"c": ["x"]}}},
            "paths": ["src/**", "docs/**"],
            "empty": null,
            "last": null,
        })
    );
    assert_eq!(
        read("a:\n  - - x\n    - y\n  -\n    b: c\n  - d\n"),
        json!({"a": [["x", "y"], {"b": "c"}, "d"]})
    );
}

#[test]
fn scalars_are_read_in_every_style() {
    let text = "folded: >\n  one\n  two\n\n  three\nkept: |\n  a\n    b\n\n  c\nstripped: >-\n  x\nend: |+\n  y\n\n\
        double: \"a\\tb\\u00e9 \\\"q\\\" \\d\"\nsingle: 'it''s'\nlong: \"one\n  two\"\nplain: one\n  two\n\n  three\n\"key: x\": 1\n";
    assert_eq!(
        read(text),
        json!({
            "folded": "one two\nthree", "kept": "a\n  b\n\nc", "stripped": "x", "end": "y\n\n",
            "double": "a\tb\u{e9} \"q\" \\d", "single": "it's", "long": "one two", "plain": "one two\nthree",
            "key: x": 1,
        })
    );
}

#[test]
fn numbers_are_distinguished_from_versions() {
    assert_eq!(
        read("a: 3\nb: -2\nc: 1.5\nd: 1.10\ne: 007\nf: 2026-03-02\ng: true\nh: yes\ni: 1e3\nj: '3'\nk: -\n"),
        json!({"a": 3, "b": -2, "c": 1.5, "d": "1.10", "e": "007", "f": "2026-03-02", "g": true, "h": "yes",
            "i": "1e3", "j": "3", "k": "-"})
    );
}

#[test]
fn what_is_not_valid_stays_as_text() {
    let text = "argument-hint: [file] [mode]\ndescription: Use when: the bell rings\nopen: [a, b\nquote: \"x\" and \"y\"\n\
        unclosed: 'x\nurl: https://example.org/a:b\nsentence: begins here\nand goes on\n- stray\nlater: here\n";
    assert_eq!(
        read(text),
        json!({
            "argument-hint": "[file] [mode]", "description": "Use when: the bell rings", "open": "[a, b",
            "quote": "\"x\" and \"y\"", "unclosed": "'x", "url": "https://example.org/a:b",
            "sentence": "begins here and goes on - stray", "later": "here",
        })
    );
    assert_eq!(read("stray\n  # only this\nname: x\n    odd: y\n  z: 1\n"), json!({"name": "x odd: y z: 1"}));
    assert_eq!(read("  name: x\nother: y\n"), json!({"name": "x", "other": "y"}));
    assert_eq!(read(""), json!({}));
}

#[test]
fn depth_has_an_end() {
    let deep: String = (0..200).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert!(read(&deep)["a"].is_object());
    assert!(read(&format!("a: {}{}", "[".repeat(200), "]".repeat(200)))["a"].is_string());
    assert!(read(&format!("a: \n  {}x", "- ".repeat(200)))["a"].is_array());
}

proptest! {
    #[test]
    fn any_text_is_taken(text in "[a-z:#\\-\\[\\]{},'\"|> \n\té\\\\0-9]{0,120}") {
        let _ = fields(&text);
    }

    #[test]
    fn flow_values_are_read_as_json_writes_them(
        names in proptest::collection::vec("[a-z]{1,6}", 1..5), texts in proptest::collection::vec("[ -~é]{0,12}", 1..5),
    ) {
        let value = json!({"names": names, "texts": texts, "deep": {"list": [texts, {"a": names}]}});
        prop_assert_eq!(&read(&format!("value: {value}"))["value"], &value);
    }
}
