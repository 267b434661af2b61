//! Where search is easily wrong: words across lines, rare queries, crowded pages, long secrets, other members' data.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::claude;
use crate::search::{assert_pages, id, names, passages, run_search, talk};
use annals_testkit::codex::{line, meta, prompt, rollout, text_of};
use annals_testkit::server::{Server, escaped};
use annals_testkit::{Bench, Ran};

const ONE: &str = claude::ONE;

fn claude_talk(lines: &[String]) -> Bench {
    let bench = Bench::new();
    claude::write(&bench, claude::FOLDER, ONE, &text_of(lines));
    bench.sync();
    bench
}

/// Older clients write the text for the model first, and only then that it was typed.
#[test]
fn a_prompt_that_is_confirmed_later_is_found() {
    let bench = Bench::new();
    let mut lines = vec![meta(&id(1))];
    lines.extend(prompt("Session one."));
    lines.extend(prompt("where is the walrus"));
    let [item, event] = prompt("the seal comes later");
    lines.push(item);
    let path = bench.transcript(&rollout(&id(1)), &lines);
    bench.sync();
    assert_eq!(names(&run_search(&bench, "walrus role:user", &[])), [id(1)]);
    assert!(names(&run_search(&bench, "seal", &[])).is_empty(), "nobody said so yet");
    annals_testkit::files::append(&path, &text_of(&[event]));
    bench.sync();
    for query in ["seal role:user", "\"seal comes later\"", "since:2026-11-15 walrus"] {
        assert_eq!(names(&run_search(&bench, query, &[])), [id(1)], "{query}");
        assert_eq!(passages(&run_search(&bench, query, &[])).len(), 1, "{query}");
    }
}

/// Inputs and outputs are JSON inside a text: an escaped line break is not part of the next word.
#[test]
fn words_at_the_start_of_a_line_are_found_in_inputs_and_outputs() {
    let bench = Bench::new();
    let arguments = json!({"command": ["bash", "-lc", "echo one\nneedle two"], "workdir": "/w"}).to_string();
    let output = json!({"output": "total\nhaystack\n\tstraw\n", "metadata": {"exit_code": 0}}).to_string();
    let call = json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": "c"});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": output});
    let mut lines = vec![meta(&id(1))];
    lines.extend(prompt("Session one."));
    lines
        .extend([line(3, "response_item", &call.to_string()), line(4, "response_item", &result.to_string())]);
    bench.transcript(&rollout(&id(1)), &lines);
    bench.sync();
    for query in ["needle", "\"one needle\"", "haystack", "straw", "\"total haystack straw\""] {
        let found = passages(&run_search(&bench, query, &[]));
        assert_eq!(found.len(), 1, "{query}: {found:#?}");
        assert!(!found[0]["highlights"].as_array().unwrap().is_empty(), "{query}: {found:#?}");
    }
    for field in ["workdir", "metadata"] {
        assert!(names(&run_search(&bench, field, &[])).is_empty(), "{field} is the name of a field");
    }
}

/// The word is everywhere and the flag once, in the oldest message: the index alone cannot tell them apart.
#[test]
fn exact_matches_are_found_however_common_their_words_are() {
    let bench = Bench::new();
    let mut lines = vec![meta(&id(1))];
    lines.extend(prompt("Run it with --dry-run, then gauge:needle in dials/needle.toml and water-level"));
    bench.transcript(&rollout(&id(1)), &lines);
    let mut lines = vec![meta(&id(2))];
    for number in 0..3_000 {
        lines.extend(prompt(&format!("dry run {number}: gauge and needle, dials needle toml, water level")));
    }
    bench.transcript(&rollout(&id(2)), &lines);
    bench.sync();
    let server = Server::start(&bench);
    for query in
        ["--dry-run", "\"--dry-run\"", "gauge:needle", "dials/needle.toml", "water-level", "dry-run then"]
    {
        let found = run_search(&bench, query, &[]);
        assert_eq!(names(&found), [id(1)], "{query}");
        assert_eq!(found["complete"], true, "{query}");
        let answer = server.get(&format!("/api/v1/search?q={}", escaped(query))).json();
        assert_eq!(names(&answer), [id(1)], "{query}");
    }
    let found = run_search(&bench, "\"dry run 2999\"", &[]);
    assert_eq!((names(&found), passages(&found).len()), (vec![id(2)], 1));
    assert!(names(&run_search(&bench, "--dry-walk", &[])).is_empty());
}

/// Colours, escaped line breaks and line numbers are not part of words; emoji are words.
#[test]
fn texts_are_found_by_their_visible_words() {
    let bench = Bench::new();
    let output = "\u{1b}[31mwalrus\u{1b}[0m\n  12\tlet seal = 1;\nlog {\"text\":\"a\\nheron\\tosprey\"}";
    let call = json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"});
    let result = json!({"type": "function_call_output", "call_id": "c", "output": output});
    let mut lines = vec![meta(&id(1))];
    lines.extend(prompt("All green 🎉 now"));
    lines
        .extend([line(3, "response_item", &call.to_string()), line(4, "response_item", &result.to_string())]);
    bench.transcript(&rollout(&id(1)), &lines);
    bench.sync();
    for query in ["walrus", "seal", "heron", "osprey", "🎉", "\"green 🎉\""] {
        let found = passages(&run_search(&bench, query, &[]));
        assert_eq!(found.len(), 1, "{query}: {found:#?}");
        assert!(!found[0]["highlights"].as_array().unwrap().is_empty(), "{query}: {found:#?}");
    }
}

/// What the client stores next to an output is not shown, and is not found.
#[test]
fn an_output_is_found_by_what_is_shown_of_it() {
    let block = json!({"tool_use_id": "t", "type": "tool_result", "content": "file changed"});
    let detail = json!({"filePath": "/w/a.rs", "originalFile": "fn walrus() {}", "structuredPatch": []});
    let message = json!({"role": "user", "content": [block]});
    let bench = claude_talk(&[
        claude::prompt_row(ONE, 1, "Change it."),
        claude::answer_row(ONE, 2, "m1", claude::call("t", "sed -i s/a/b/"), 1),
        claude::row(ONE, 3, "user", json!({"message": message, "toolUseResult": detail})),
    ]);
    assert_eq!(names(&run_search(&bench, "changed kind:result", &[])), [ONE]);
    assert!(names(&run_search(&bench, "walrus", &[])).is_empty());
}

#[test]
fn an_answer_in_several_lines_is_one_message_of_its_time() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": ""});
    let bench = claude_talk(&[
        claude::prompt_row(ONE, 1, "Tell me."),
        claude::answer_row(ONE, 2, "m1", thinking, 1),
        claude::answer_row(ONE, 3, "m1", claude::text("the walrus swims"), 2),
        claude::answer_row(ONE, 4, "m1", claude::text("a walrus sleeps while many words follow it here"), 3),
    ]);
    for query in ["walrus", "walrus since:2026-03-02T10:00:00Z", "walrus until:2026-03-03", "walrus swims"] {
        let found = passages(&run_search(&bench, query, &[]));
        assert_eq!(found.len(), 1, "{query}: {found:#?}");
    }
}

#[test]
fn stop_words_alone_find_nothing() {
    let bench = Bench::new();
    talk(&bench, 1, &["walrus"]);
    bench.sync();
    let answer = run_search(&bench, "how would they have been", &[]);
    assert!(names(&answer).is_empty(), "{answer:#}");
}

#[test]
fn queries_may_be_long() {
    let bench = Bench::new();
    let words: Vec<String> = (0..120).map(|number| format!("word{number}")).collect();
    talk(&bench, 1, &[&words.join(" ")]);
    bench.sync();
    let phrases: Vec<String> = words.chunks(30).map(|part| format!("\"{}\"", part.join(" "))).collect();
    let answer = run_search(&bench, &phrases.join(" "), &[]);
    assert_eq!((names(&answer), &answer["mode"]), (vec![id(1)], &"all".into()), "{answer:#}");
    for query in ["-\"a".repeat(30_000), "a.".repeat(45_000), format!("\"{}\"", "gears oil ".repeat(200))] {
        run_search(&bench, &query, &[]);
    }
    let ran = bench.run(&["search", "--", &"gears ".repeat(5_000)]);
    assert!(ran.code == 2 && ran.stderr.contains("too many words"), "{}", ran.code);
    for options in [&["--limit", "9223372036854775807"][..], &["--cursor", "ffffffffffffffff"]] {
        let ran = bench.run(&[&["search", "\"word1 word2\""], options].concat());
        assert!(ran.code <= 2 && !ran.stderr.contains("panicked"), "{options:?}: {}", ran.stderr);
    }
}

#[test]
fn code_and_repeated_words_mean_what_they_say() {
    let bench = Bench::new();
    for (text, number) in [
        ("parse_line is here", 1),
        ("one line to parse", 2),
        ("he had had enough", 3),
        ("he had enough", 4),
        ("use crate::model::terms and file::read", 5),
        ("terms of a model, read a file", 6),
        ("c++ is not c", 7),
        ("plain c alone", 8),
        ("github and javascript", 9),
        ("看记录", 10),
    ]
    .iter()
    {
        talk(&bench, *number, &[text]);
    }
    bench.sync();
    for (query, expected) in [
        ("line -parse_line", vec![2]),
        ("\"had had\"", vec![3]),
        ("model::terms", vec![5]),
        ("file::read", vec![5]),
        ("\"c++\"", vec![7]),
        ("GitHub", vec![9]),
        ("\"GitHub and JavaScript\"", vec![9]),
        ("录", vec![10]),
        ("记录", vec![10]),
    ] {
        let expected: Vec<String> = expected.into_iter().map(id).collect();
        assert_eq!(names(&run_search(&bench, query, &[])), expected, "{query}");
    }
}

#[test]
fn contradictory_filters_leave_nothing() {
    let bench = claude_talk(&claude::talk(ONE));
    for query in ["gears role:user kind:call", "gears kind:library role:tool"] {
        assert!(names(&run_search(&bench, query, &[])).is_empty(), "{query}");
    }
    for query in ["gears -role:user", "gears -tool:Bash", "gears -since:2026-01-01"] {
        let ran = bench.run(&["search", query]);
        assert!(ran.code == 2 && ran.stderr.contains("hint: "), "{query}: {} {}", ran.code, ran.stdout);
    }
}

#[test]
fn library_items_have_a_source_and_are_found_by_name() {
    let bench = Bench::new();
    for (home, word) in [(bench.codex(), "codex"), (bench.claude(), "claude")] {
        std::fs::create_dir_all(home.join("skills/sea-life")).unwrap();
        let text = format!("---\nname: sealife\ndescription: Knows a walrus\n---\nFor {word}.\n");
        std::fs::write(home.join("skills/sea-life/SKILL.md"), text).unwrap();
    }
    bench.sync();
    for source in ["codex_cli", "claude_code"] {
        let found = run_search(&bench, &format!("walrus source:{source}"), &[]);
        let sources: Vec<&Value> =
            found["results"].as_array().unwrap().iter().map(|one| &one["source"]).collect();
        assert_eq!(sources, [source], "{found:#}");
        assert_eq!((&found["total"], &found["mode"]), (&1.into(), &"all".into()));
    }
    assert_eq!(names(&run_search(&bench, "sea-life kind:library", &[])).len(), 2);
}

/// An output stored separately belongs to the session, and filters apply to its call.
#[test]
fn a_session_with_a_separate_output_is_one_result() {
    let bench = Bench::new();
    let folder = claude::path_of(&bench, claude::FOLDER, ONE).with_extension("").join("tool-results");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("big.txt"), "a walrus\nand a rare narwhal\n").unwrap();
    let note = format!(
        "<persisted-output>\nOutput too large (30KB). Full output saved to: {}\n\nPreview (first 2KB):\na walrus\n</persisted-output>",
        folder.join("big.txt").display()
    );
    let lines = [
        claude::prompt_row(ONE, 1, "Is there a walrus?"),
        claude::answer_row(ONE, 2, "m1", claude::call("t", "list"), 1),
        claude::result(ONE, 3, "t", &note),
    ];
    claude::write(&bench, claude::FOLDER, ONE, &text_of(&lines));
    bench.sync();
    for query in ["walrus", "narwhal", "narwhal tool:Bash", "narwhal project:engine", "narwhal branch:main"] {
        let answer = run_search(&bench, query, &[]);
        assert_eq!(
            (names(&answer), &answer["total"]),
            (vec![ONE.to_owned()], &1.into()),
            "{query}: {answer:#}"
        );
    }
}

#[test]
fn crowded_sessions_leave_room_and_pages_stay_in_order() {
    let bench = Bench::new();
    let many: Vec<String> = (0..60).map(|number| format!("red fox {number}")).collect();
    talk(&bench, 1, &many.iter().map(String::as_str).collect::<Vec<_>>());
    for number in 2..=90 {
        let space = "very ".repeat(number % 9);
        let end = "and so on ".repeat(number * 5 % 13);
        talk(&bench, number, &[&format!("red {space}fox {end}"), &format!("a red fox {end}")]);
    }
    bench.sync();
    for query in ["red fox", "\"red fox\"", "fox"] {
        assert_eq!(assert_pages(&bench, query, &[], "10").len(), 90, "{query}");
    }
}

/// A key or a token is often longer than a snippet.
#[test]
fn no_snippet_shows_a_part_of_a_long_secret() {
    let mut random = annals_testkit::corpora::generator::Random(7);
    let rows: Vec<String> = (0..50).map(|_| random.base64(64)).collect();
    let (label, token) = ("RSA PRIVATE KEY", random.base64(2_400).replace(['+', '/'], "-"));
    let key = format!("-----{} {label}-----\n{}\n-----{} {label}-----", "BEGIN", rows.join("\n"), "END");
    let token = format!("eyJ{}.eyJ{}.{}", &token[..40], &token[40..2_000], &token[2_000..]);
    let bench = Bench::new();
    let mut texts = Vec::new();
    for secret in [&key, &token] {
        for space in ["", "a few words between ", &"word ".repeat(30)] {
            texts.push(format!("{secret}\n{space}needle"));
            texts.push(format!("needle {space}{secret} after"));
        }
    }
    texts.iter().zip(1..).for_each(|(text, number)| drop(talk(&bench, number, &[text])));
    bench.sync();
    let parts: BTreeSet<&[u8]> =
        rows.iter().chain([&token]).flat_map(|row| row.as_bytes().windows(10)).collect();
    let found = passages(&run_search(&bench, "needle", &[]));
    assert_eq!(found.len(), texts.len());
    for passage in found {
        let snippet = passage["snippet"].as_str().unwrap();
        assert!(!snippet.as_bytes().windows(10).any(|part| parts.contains(part)), "{snippet}");
    }
}

#[test]
fn an_unknown_message_is_refused_as_json_too() {
    let bench = claude_talk(&claude::talk(ONE));
    for at in ["ffffffffffff", "999", ""] {
        let ran = bench.run(&["show", ONE, "--at", at, "--json"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{at:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("\"hint\""), "{at:?}: {}", ran.stderr);
    }
}

/// Other members' data is not even counted.
#[test]
fn totals_and_modes_reveal_nothing_about_others() {
    let bench = Bench::new();
    let mut tokens = Vec::new();
    for (name, number) in [("ada", 1), ("mary", 2)] {
        tokens.push(bench.json(&["members", "add", name])["token"].as_str().unwrap().to_owned());
        let own = Bench::new();
        talk(&own, number, &[&format!("the walrus of {name}")]);
        std::fs::create_dir_all(own.codex().join("prompts")).unwrap();
        std::fs::write(own.codex().join("prompts/sea.md"), format!("a walrus prompt of {name}")).unwrap();
        let mut command = bench.command(&["sync", "--member", name]);
        assert_eq!(Ran::of(command.env("CODEX_HOME", own.codex()).output().unwrap()).code, 0);
    }
    let server = Server::without_refresh(&bench);
    let search = |query: &str| server.json_as(&tokens[0], &format!("/api/v1/search?q={}", escaped(query)));
    assert_eq!(search("walrus")["total"], 2);
    assert_eq!(search("mary")["total"], 0);
    let any = search("walrus mary");
    assert_eq!((&any["mode"], &any["total"]), (&"any".into(), &2.into()), "{any:#}");
}

#[test]
fn an_item_changed_before_its_deletion_is_gone() {
    let bench = Bench::new();
    let path = bench.codex().join("prompts/tame.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for text in ["Tame the lynx.", "Tame the owl."] {
        std::fs::write(&path, text).unwrap();
        bench.sync();
    }
    std::fs::remove_file(&path).unwrap();
    bench.sync();
    for query in ["lynx", "owl", "tame"] {
        assert!(names(&run_search(&bench, query, &[])).is_empty(), "{query}");
    }
}

/// A session that repeats another one has copies of its messages: it is no result, and none is counted.
#[test]
fn the_total_is_what_the_pages_have() {
    let bench = Bench::new();
    let rows = claude::talk(ONE);
    claude::write(&bench, claude::FOLDER, ONE, &text_of(&rows));
    let again: Vec<String> = rows.iter().map(|row| row.replace(ONE, claude::TWO)).collect();
    claude::write(&bench, claude::FOLDER, claude::TWO, &text_of(&again));
    bench.sync();
    let server = Server::without_refresh(&bench);
    for query in ["oiled", "gears", "gears oiled", "oil*", "\"gears oiled\"", "12 gears"] {
        let path = format!("/api/v1/search?q={}", escaped(query));
        let total = server.json(&path)["total"].as_u64().unwrap();
        let paged = server.list(&format!("{path}&limit=1"), "results");
        assert_eq!(total, paged.len() as u64, "{query}");
        assert!(total > 0, "{query}");
    }
}
