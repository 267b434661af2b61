//! One session: what its documents contain, where they go, and who may see its secrets.

use serde_json::{Value, json};

use super::{export, html};
use annals_testkit::Bench;
use annals_testkit::codex::{ID, answer, line, meta, prompt, rollout};

/// The smallest PNG: one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn secret() -> String {
    format!("ghp_{}", "aB3dE6gH9".repeat(4))
}

/// A session with thinking, a command whose output has fences, an edit, an image, markup and a secret.
fn bench() -> Bench {
    let bench = Bench::new();
    let item = |second: u32, payload: Value| line(second, "response_item", &payload.to_string());
    let mut lines = vec![meta(ID), line(0, "turn_context", r#"{"model":"gpt-5.1-codex","effort":"low"}"#)];
    lines.extend(prompt(&format!("wind the <b>gears</b> & mind {}", secret())));
    lines.push(item(
        2,
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "**Gears first** </details> end"}]}),
    ));
    let arguments = json!({"command": ["bash", "-lc", "cat notes.md"]}).to_string();
    lines.push(item(
        3,
        json!({"type": "function_call", "name": "shell", "arguments": arguments, "call_id": "one"}),
    ));
    let output = json!({"output": "# Notes\n```sh\nmake\n```\n", "metadata": {"exit_code": 0, "duration_seconds": 0.2}});
    lines.push(item(
        4,
        json!({"type": "function_call_output", "call_id": "one", "output": output.to_string()}),
    ));
    let patch = "*** Begin Patch\n*** Add File: gears.txt\n+brass\n+steel ```\n*** End Patch\n";
    lines.push(item(
        5,
        json!({"type": "custom_tool_call", "status": "completed", "call_id": "two", "name": "apply_patch", "input": patch}),
    ));
    let output = json!({"output": "Success. Updated the following files:\nA gears.txt\n", "metadata": {"exit_code": 0, "duration_seconds": 0.1}});
    lines.push(item(
        6,
        json!({"type": "custom_tool_call_output", "call_id": "two", "output": output.to_string()}),
    ));
    lines.push(item(
        7,
        json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "like this"},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{PIXEL}")}]}),
    ));
    lines.push(line(7, "event_msg", r#"{"type":"user_message","message":"like this"}"#));
    lines.extend(answer("Done:\n\n```rust\nfn gears() {}"));
    bench.transcript(&rollout(ID), &lines);
    bench.sync();
    bench
}

#[test]
fn markdown_labels_fences_and_folds() {
    let bench = bench();
    let ran = bench.run(&["export", &ID[..12]]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = ran.stdout;
    assert!(text.starts_with("---\nexporter: annals\nid: \"0199a1b2"), "{text}");
    for part in [
        "source: \"codex_cli\"\n",
        "project: \"/home/ada/engine\"\n",
        "resume: \"cd /home/ada/engine && codex resume 0199a1b2",
        "model: \"gpt-5.1-codex\"\n",
        "started: \"2026-11-15T10:00:0",
        &format!("show: \"annals show codex_cli:{ID}\"\n"),
        &format!("/sessions/codex_cli/{ID}\"\n"),
        "> wind the <b>gears</b> & mind [secret:github:",
        "<details><summary>Thinking</summary>\n\n**Gears first** &lt;/details> end\n\n</details>\n",
        "**Command**\n\n```sh\ncat notes.md\n```\n",
        "- read `/home/ada/engine/notes.md`, lines 1–4\n",
        "**Result** (exit 0, 200 ms)\n\n````text\n{\"output\":\"# Notes\\n```sh",
        "**Edit** `gears.txt` (create)\n\n````diff\n",
        "\n+brass\n+steel ```\n````\n",
        "](data:image/png;base64,iVBOR",
        "fn gears() {}\n```\n",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    assert!(!text.contains(&secret()));
    // Beside a file in a directory, images are files.
    let folder = export(&bench, "md", &[ID]);
    let files = annals_testkit::files::files_below(&folder);
    let document = files.iter().find(|path| path.extension().is_some_and(|end| end == "md")).unwrap();
    let text = std::fs::read_to_string(document).unwrap();
    let (_, link) = text.split_once("](2026-").expect("a relative link");
    let picture = document.with_file_name(format!("2026-{}", link.split(')').next().unwrap()));
    assert!(std::fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    // Another format in the same directory takes nothing away, and a deleted image comes back.
    let to = folder.to_str().unwrap();
    assert_eq!(bench.run(&["export", ID, "--format", "json", "--to", to]).code, 0);
    assert!(picture.is_file());
    std::fs::remove_file(&picture).unwrap();
    export(&bench, "md", &[ID]);
    assert!(picture.is_file());
}

#[test]
fn a_page_is_whole_by_itself() {
    let bench = bench();
    let file = bench.folder.path().join("shared.html");
    let path = file.to_str().unwrap();
    let ran = bench.run(&["export", ID, "--to", path]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let page = html::read(&std::fs::read_to_string(&file).unwrap(), "a page");
    assert_eq!(page.images.len(), 1, "{:?}", page.images);
    let prompts = page.links.iter().filter(|link| link.starts_with("#m-")).count();
    assert!(
        prompts > 2 && page.text.contains("wind the <b>gears</b> & mind [secret:github:"),
        "{}",
        page.text
    );
    assert!(!page.text.contains(&secret()));
    // Exporting again replaces the page, but nothing that an export did not write.
    assert_eq!(bench.run(&["export", ID, "--to", path]).code, 0);
    std::fs::write(&file, "mine").unwrap();
    let ran = bench.run(&["export", ID, "--to", path]);
    assert!(ran.code == 2 && ran.stderr.contains("was not written by an export"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn json_has_the_shape_of_the_api() {
    let bench = bench();
    let shown: Value = serde_json::from_str(&bench.run(&["show", ID, "--full", "--json"]).stdout).unwrap();
    let document: Value =
        serde_json::from_str(&bench.run(&["export", ID, "--format", "json"]).stdout).unwrap();
    assert_eq!(document["session"], shown["session"]);
    let mut messages = document["messages"].clone();
    let changes = |message: &mut Value| {
        let blocks = message["blocks"].as_array_mut().unwrap().iter_mut();
        blocks.filter_map(|block| block.as_object_mut().unwrap().remove("changes")).count()
    };
    // Edits are diffs too.
    assert_eq!(messages.as_array_mut().unwrap().iter_mut().map(changes).sum::<usize>(), 1);
    assert_eq!(messages, shown["messages"]);
    let lines = bench.run(&["export", ID, "--format", "jsonl"]).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["type"], &lines[0]["session"]), (&json!("session"), &shown["session"]));
    let listed: Vec<&Value> = lines[1..].iter().map(|line| &line["message"]).collect();
    assert_eq!(listed, document["messages"].as_array().unwrap().iter().collect::<Vec<_>>());
    assert!(lines[1..].iter().all(|line| line["session_id"] == ID && line["source"] == "codex_cli"));
    let several = bench.run(&["export", "--all", "--format", "json", "--to", "-"]).stdout;
    let several: Value = serde_json::from_str(&several).unwrap();
    assert!(several["session"].is_object() || several["sessions"].is_array(), "{several}");
}

#[test]
fn secrets_are_not_revealed_to_a_pipe() {
    let bench = bench();
    let folder = bench.folder.path().join("revealed");
    for format in ["md", "html", "json", "jsonl", "parquet", "records"] {
        let to = folder.to_str().unwrap();
        let names: &[&str] = if format == "records" { &[] } else { &[ID, "--to", to] };
        let ran = bench.run(&[&["export", "--reveal", "--format", format], names].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{format}");
        assert!(
            ran.stderr.contains("only from a terminal") && !ran.stderr.contains(&secret()),
            "{}",
            ran.stderr
        );
    }
    assert!(!folder.exists());
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let bench = bench();
    for (arguments, hint) in [
        (&["export"][..], "--all"),
        (&["export", ID, "--all"], "ids, or --all"),
        (&["export", "--all"], "--to DIR"),
        (&["export", "--all", "--format", "parquet"], "--to DIR"),
        (&["export", "--all", "--to", "all.html"], "--to DIR"),
        (&["export", "nothing-like-it"], "annals sessions --all"),
        (&["export", "--format", "records", "--all"], "annals records --since"),
    ] {
        let ran = bench.run(arguments);
        assert!(ran.code == 2 && ran.stderr.contains(hint), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(bench.run(&["export", "--all", "--since", "2030-01-01", "--to", "x"]).code, 1);
}
