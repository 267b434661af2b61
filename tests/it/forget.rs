//! What was forgotten is gone from every answer and from the raw file, stays away, and everything else stays.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use annals_testkit::Bench;

const PLANTED: &str = "11111111-aaaa-4bbb-8ccc-000000000001";
const FORK: &str = "22222222-aaaa-4bbb-8ccc-000000000002";
const OTHER: &str = "33333333-aaaa-4bbb-8ccc-000000000003";

fn project(bench: &Bench) -> PathBuf {
    bench.claude().join("projects/-w-demo")
}

fn line(session: &str, number: u64, kind: &str, content: Value) -> Value {
    json!({
        "parentUuid": null, "isSidechain": false, "cwd": "/w/demo", "sessionId": session, "version": "2.0.1",
        "type": kind, "uuid": format!("{number:08}-0000-4000-8000-{}", &session[24..]),
        "timestamp": format!("2026-03-01T10:00:{number:02}.000Z"),
        "message": {"role": kind, "id": format!("msg_{number}_{}", &session[..4]), "model": "claude-opus-4",
                    "content": content, "usage": {"input_tokens": 10, "output_tokens": 5}},
    })
}

/// A session in which every text contains `tag`.
fn session(session: &str, tag: &str) -> Vec<Value> {
    let call = format!("toolu_{tag}");
    let result =
        json!([{"type": "tool_result", "tool_use_id": call, "content": format!("{tag}output zürich")}]);
    vec![
        line(session, 1, "user", json!(format!("please frobnicate {tag}prompt"))),
        line(
            session,
            2,
            "assistant",
            json!([
                {"type": "text", "text": format!("{tag}answer")},
                {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": format!("echo {tag}command")}},
            ]),
        ),
        line(session, 3, "user", result),
        line(session, 4, "assistant", json!([{"type": "text", "text": format!("{tag}end")}])),
        json!({"type": "summary", "summary": format!("{tag}title"),
               "leafUuid": format!("00000004-0000-4000-8000-{}", &session[24..])}),
    ]
}

fn write(path: &Path, lines: &[Value]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

/// A home with a session to forget, a fork of it, two sub-agents, a snapshot, a full output, a history, and another
/// session.
fn planted_home(bench: &Bench) {
    let planted = session(PLANTED, "planted");
    let projects = project(bench);
    write(&projects.join(format!("{PLANTED}.jsonl")), &planted);
    write(&projects.join(format!("{OTHER}.jsonl")), &session(OTHER, "other"));
    let copied = planted[..3].iter().map(|line| line.to_string().replace(PLANTED, FORK));
    let mut fork: Vec<Value> = copied.map(|line| serde_json::from_str(&line).unwrap()).collect();
    fork.push(line(FORK, 30, "user", json!("a question of the fork")));
    write(&projects.join(format!("{FORK}.jsonl")), &fork);
    for agent in ["a1b2c3d4", "a2b2c3d4"] {
        let mut task = line(PLANTED, 20, "user", json!(format!("planted task of {agent}")));
        (task["isSidechain"], task["agentId"], task["uuid"]) =
            (json!(true), json!(agent), json!(format!("{agent}-1")));
        write(&projects.join(PLANTED).join(format!("subagents/agent-{agent}.jsonl")), &[task]);
    }
    let output = projects.join(PLANTED).join("tool-results/toolu_x.txt");
    std::fs::create_dir_all(output.parent().unwrap()).unwrap();
    std::fs::write(output, "planted full output\n".repeat(50)).unwrap();
    let snapshot = bench.claude().join("file-history").join(PLANTED).join("abcdef0123456789@v1");
    std::fs::create_dir_all(snapshot.parent().unwrap()).unwrap();
    std::fs::write(snapshot, "fn planted() {}\n".repeat(9)).unwrap();
    let entry = |session: &str, tag: &str| {
        json!({"display": format!("please frobnicate {tag}prompt"), "pastedContents": {},
               "timestamp": 1_772_359_201_000_i64, "project": "/w/demo", "sessionId": session})
    };
    write(&bench.claude().join("history.jsonl"), &[entry(PLANTED, "planted"), entry(OTHER, "other")]);
}

fn everything_but_files(bench: &Bench) -> Vec<String> {
    [OTHER, FORK].map(|id| bench.run(&["show", id, "--json", "--full"]).stdout).to_vec()
}

/// No verb and no byte of the archive has it.
fn assert_gone(bench: &Bench, text: &str) {
    for arguments in [
        &["sessions", "--all"][..],
        &["search", text],
        &["sources", "--files"],
        &["audit"],
        &["records", "claude_code/sessions"],
        &["records", "claude_code/messages"],
        &["export", "--all", "--format", "json"],
        &["usage", "--days", "all"],
        &["tools", "--days", "9999"],
        &["library"],
    ] {
        let ran = bench.run(&[arguments, &["--json"]].concat());
        assert!(
            !ran.stdout.replace(&format!("\"{text}\""), "").contains(text),
            "{arguments:?}: {}",
            ran.stdout
        );
    }
    let forms = [text.as_bytes().to_vec(), base64(text.as_bytes()).into_bytes()];
    let has = |bytes: &[u8]| forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == form));
    for (id, bytes) in blobs(bench) {
        assert!(!has(&bytes), "{text} is in the bytes of blob {id}");
    }
    for entry in std::fs::read_dir(bench.archive()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!has(&bytes), "{text} is in {}", path.display());
        }
    }
}

/// The bytes of every blob, unpacked: plain (0), compressed (1), or as the difference from another (2).
fn blobs(bench: &Bench) -> Vec<(i64, Vec<u8>)> {
    type Packed = (i64, usize, i64, Option<i64>, Vec<u8>);
    let database = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    let mut statement = database.prepare("select id, length, packing, base, data from blob").unwrap();
    let rows = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)? as usize, row.get(2)?, row.get(3)?, row.get(4)?))
    });
    let packed: Vec<Packed> = rows.unwrap().map(Result::unwrap).collect();
    let plain = |(_, length, packing, _, data): &Packed| match packing {
        0 => data.clone(),
        _ => zstd::bulk::decompress(data, *length).unwrap(),
    };
    let of_blob = |blob: &Packed| match blob.3 {
        None => plain(blob),
        Some(base) => {
            let base = plain(packed.iter().find(|other| other.0 == base).unwrap());
            let mut decompressor = zstd::bulk::Decompressor::with_dictionary(&base).unwrap();
            decompressor.decompress(&blob.4, blob.1).unwrap()
        }
    };
    let unpacked: Vec<(i64, Vec<u8>)> = packed.iter().map(|blob| (blob.0, of_blob(blob))).collect();
    assert!(unpacked.iter().zip(&packed).all(|(blob, packed)| blob.1.len() == packed.1));
    unpacked
}

/// Found = kept + forgotten + the rest, in files, bytes and lines.
fn assert_balanced(bench: &Bench) {
    for audit in bench.json(&["audit"])["sources"].as_array().unwrap() {
        for layer in ["files", "bytes"] {
            let sums = &audit[layer];
            let number = |name: &str| sums[name].as_u64().unwrap();
            let parts = ["kept", "forgotten", "left_out", "unaccounted", "gaps"].map(number);
            assert_eq!(number("found"), parts.iter().sum::<u64>(), "{layer}: {sums}");
        }
        let lines = &audit["lines"];
        let parts = ["kept", "unknown", "malformed", "skipped", "forgotten"];
        let sum: i64 = parts.iter().map(|name| lines[name]["lines"].as_i64().unwrap()).sum();
        assert_eq!(lines["found"].as_i64().unwrap(), sum, "{lines}");
    }
}

#[test]
fn a_forgotten_session_is_gone_and_stays_away() {
    let bench = Bench::new();
    planted_home(&bench);
    bench.sync_of("claude_code");
    let before = everything_but_files(&bench);
    let found = bench.json(&["audit"])["sources"][1]["files"]["found"].clone();
    let plan = bench.json(&["forget", PLANTED, "--dry-run"]);
    assert_eq!(plan["plan"]["sessions"], 3, "{plan}");
    assert_eq!(plan["plan"]["history_lines"], 1, "{plan}");
    assert!(plan["plan"]["copied_lines"].as_u64().unwrap() >= 3, "{plan}");
    assert_eq!(bench.run(&["forget", PLANTED]).code, 2, "without a terminal nobody can be asked");
    assert_eq!(everything_but_files(&bench), before);

    let forgotten = bench.json(&["forget", PLANTED, "--yes", "--verify"]);
    assert_eq!(forgotten["verified"]["found"], json!([]), "{forgotten}");
    assert!(forgotten["verified"]["hashes"].as_u64().unwrap() > 10, "{forgotten}");
    for text in ["plantedprompt", "plantedtitle", "planted full", "fn planted", "planted task"] {
        assert_gone(&bench, text);
    }
    assert_eq!(everything_but_files(&bench)[0], before[0], "another session answers as before");
    assert!(bench.run(&["show", FORK]).stdout.contains("a question of the fork"));
    assert_balanced(&bench);
    assert_eq!(bench.json(&["audit"])["sources"][1]["files"]["found"], found);
    let account = &bench.json(&["audit"])["forgotten"][0];
    assert_eq!((&account["reason"], &account["is_complete"]), (&json!("session"), &json!(true)));
    assert!(project(&bench).join(format!("{PLANTED}.jsonl")).is_file(), "the client still has its file");

    // The client goes on in the file, another program copies it, and the rows are read again.
    let path = project(&bench).join(format!("{PLANTED}.jsonl"));
    let old = std::fs::read_to_string(&path).unwrap();
    let new = line(PLANTED, 40, "user", json!("something new"));
    std::fs::write(&path, format!("{old}{new}\n")).unwrap();
    let later = "44444444-aaaa-4bbb-8ccc-000000000004";
    std::fs::write(project(&bench).join(format!("{later}.jsonl")), old.replace(PLANTED, later)).unwrap();
    for _ in 0..5 {
        bench.sync_of("claude_code");
    }
    assert!(bench.run(&["show", PLANTED]).stdout.contains("something new"));
    assert_gone(&bench, "plantedprompt");
    // Rewritten: the same lines in another order.
    let mut lines: Vec<&str> = old.lines().collect();
    lines.reverse();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    bench.sync_of("claude_code");
    bench.json(&["rebuild"]);
    assert_gone(&bench, "plantedprompt");
    assert_balanced(&bench);
    assert_eq!(bench.run(&["doctor", "--deep"]).code, 0, "{}", bench.run(&["doctor", "--deep"]).stdout);
    let to = bench.folder.path().join("restored");
    let restored = bench.json(&["restore", "--source", "claude_code", "--to", to.to_str().unwrap()]);
    assert!(restored["forgotten_files"].as_u64().unwrap() >= 4, "{restored}");
    assert!(restored["forgotten_lines"].as_u64().unwrap() >= 3, "{restored}");
}

#[test]
fn what_is_looked_for_is_found_in_compressed_bytes() {
    let bench = Bench::new();
    planted_home(&bench);
    bench.sync_of("claude_code");
    let has = |text: &str| {
        blobs(&bench)
            .iter()
            .any(|(_, bytes)| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
    };
    assert!(has("plantedprompt") && has("plantedtitle") && has("planted full output"));
    // Bytes that no file refers to are found as well.
    let left = zstd::bulk::compress(format!("{}\n", session(PLANTED, "planted")[0]).as_bytes(), 1).unwrap();
    bench.json(&["forget", PLANTED, "--yes"]);
    assert_eq!(bench.json(&["forget", "--verify"])["found"], json!([]));
    let raw = zstd::bulk::decompress(&left, 1 << 20).unwrap();
    let connection = rusqlite::Connection::open(bench.archive().join("annals.db")).unwrap();
    let hash = blake3::hash(&raw);
    let values = rusqlite::params![hash.as_bytes(), raw.len() as i64, left];
    connection
        .execute("insert into blob (hash, length, packing, data) values (?1, ?2, 1, ?3)", values)
        .unwrap();
    drop(connection);
    let found = bench.run(&["forget", "--verify", "--json"]);
    assert!(found.code != 0 && found.stdout.contains("\"blob\""), "{}", found.stdout);
    // An archive that was found to be in order again has none of it.
    bench.json(&["forget", OTHER, "--yes"]);
    assert_eq!(bench.json(&["forget", "--verify"])["found"], json!([]));
}

/// A path of a kept session is joined from its directory and the name in a patch: no kept line has it in one piece.
#[test]
fn what_annals_makes_of_kept_lines_is_no_remains() {
    let bench = Bench::new();
    let (folder, name) = ("/home/ada/engine/copper-kettles-and-whistles", "iron-kettles-and-bells/gears.py");
    let mut kept = annals_testkit::codex::conversation(annals_testkit::codex::ID, "Count the gears");
    let patch = format!("*** Begin Patch\n*** Add File: {name}\n+12\n*** End Patch\n");
    let call =
        json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_p", "input": patch});
    let done = json!({"type": "custom_tool_call_output", "call_id": "call_p",
        "output": format!("{{\"output\":\"Success. Updated the following files:\\nA {name}\\n\",\"metadata\":{{\"exit_code\":0}}}}")});
    for (second, payload) in [(20, call), (21, done)] {
        kept.push(annals_testkit::codex::line(second, "response_item", &payload.to_string()));
    }
    let kept: Vec<String> = kept.iter().map(|line| line.replace("/home/ada/engine", folder)).collect();
    bench.transcript(&annals_testkit::codex::rollout(annals_testkit::codex::ID), &kept);
    // The forgotten session has it in one piece, wherever a line is sampled.
    let other = "0199a1b2-0000-7000-8000-00000000000b";
    let mut lines = vec![annals_testkit::codex::meta(other)];
    for padding in (0..400).step_by(16) {
        lines.extend(annals_testkit::codex::prompt(&format!(
            "{}{folder}/{name}{}",
            "-".repeat(padding),
            "+".repeat(90)
        )));
    }
    bench.transcript(&annals_testkit::codex::rollout(other), &lines);
    bench.sync();
    let forgotten = bench.run(&["forget", other, "--yes", "--verify", "--json"]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stdout);
    let blamed = bench.json(&["search", &format!("file:{folder}/{name}")]);
    assert!(!blamed["results"].as_array().unwrap().is_empty(), "{blamed}");
}

#[test]
fn a_text_is_masked_in_every_form() {
    let bench = Bench::new();
    planted_home(&bench);
    let secret = "zürich \"4711\" wobble";
    let encoded = [
        base64(secret.as_bytes()),
        serde_json::to_string(secret).unwrap(),
        secret.chars().map(|letter| format!("\\u{:04x}", letter as u32)).collect(),
    ];
    let mut lines = session(OTHER, "other");
    lines.push(line(OTHER, 50, "user", json!(format!("before {secret} after"))));
    lines.push(line(OTHER, 51, "user", json!(encoded.join(" "))));
    write(&project(&bench).join(format!("{OTHER}.jsonl")), &lines);
    bench.sync_of("claude_code");
    assert!(bench.run(&["search", "wobble"]).stdout.contains("wobble"));
    let forgotten = bench.json(&["forget", "--text", secret, "--yes"]);
    assert_eq!(forgotten["verified"]["found"], json!([]), "{forgotten}");
    let shown = bench.run(&["show", OTHER]).stdout;
    assert!(shown.contains("before ****") && !shown.contains("wobble"), "{shown}");
    assert!(!shown.contains(&encoded[0]) && !shown.contains(&encoded[2]), "{shown}");
    bench.sync_of("claude_code");
    assert_gone(&bench, "wobble");
    assert_eq!(bench.json(&["forget", "--verify", "--text", secret])["found"], json!([]));
    assert_ne!(bench.run(&["forget", "--verify", "--text", "otheranswer"]).code, 0, "what is there is found");
    assert_eq!(bench.run(&["doctor", "--deep"]).code, 0);
}

/// Base64 without padding.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(LETTERS[(number >> (18 - 6 * at) & 63) as usize] as char);
        }
    }
    text
}

#[test]
fn the_trash_brings_everything_back_until_it_is_emptied() {
    let bench = Bench::new();
    planted_home(&bench);
    bench.sync_of("claude_code");
    let before = bench.everything();
    let trashed = bench.json(&["forget", PLANTED, "--trash", "30d", "--yes"]);
    assert!(bench.run(&["search", "plantedprompt"]).code == 1, "nothing in the trash answers");
    bench.sync_of("claude_code");
    let list = bench.json(&["trash"]);
    assert_eq!(list["entries"][0]["sessions"], 3, "{list}");
    let id = trashed["id"].to_string();
    assert_eq!(bench.run(&["trash", "restore", &id]).code, 0);
    assert_eq!(bench.everything(), before);
    assert_eq!(bench.run(&["trash", "restore", &id]).code, 2);
    assert_eq!(bench.run(&["doctor", "--deep"]).code, 0);

    bench.json(&["forget", PLANTED, "--trash", "30d", "--yes"]);
    assert_eq!(bench.run(&["trash", "empty", "--yes"]).code, 0);
    assert_eq!(bench.json(&["trash"])["entries"], json!([]));
    assert_gone(&bench, "plantedprompt");
    assert_gone(&bench, "plantedtitle");
    assert_balanced(&bench);
}

#[test]
fn rules_forget_only_when_they_are_applied() {
    let bench = Bench::new();
    planted_home(&bench);
    bench.sync_of("claude_code");
    let config = bench.user().join("annals.toml");
    std::fs::write(
        &config,
        "[retention]\nrules = [\"source:claude_code project:/w/demo after:30d except:starred\"]\n",
    )
    .unwrap();
    let run = |arguments: &[&str]| {
        annals_testkit::Ran::of(bench.command(arguments).env("ANNALS_CONFIG", &config).output().unwrap())
    };
    assert_eq!(bench.run(&["retain"]).code, 2, "there are no rules");
    let listed = run(&["retain", "--json"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert_eq!(bench.sessions().len(), 5);
    let applied: Value = serde_json::from_str(&run(&["retain", "--apply", "--json"]).stdout).unwrap();
    assert_eq!(applied["rules"][0]["plan"]["sessions"], 5, "{applied}");
    assert!(bench.sessions().is_empty());
    assert_eq!(bench.json(&["audit"])["forgotten"][0]["reason"], "rule");
    assert_balanced(&bench);
}

#[test]
fn rules_keep_what_a_starred_session_started_and_repeats() {
    for (starred, kept) in [(PLANTED, 3), (FORK, 4)] {
        let bench = Bench::new();
        planted_home(&bench);
        bench.sync_of("claude_code");
        assert_eq!(bench.run(&["star", starred]).code, 0);
        let before = bench.run(&["show", starred, "--json", "--full", "--copies"]).stdout;
        let config = bench.user().join("annals.toml");
        std::fs::write(&config, "[retention]\nrules = [\"after:30d except:starred\"]\n").unwrap();
        let arguments = ["retain", "--apply", "--json"];
        let applied = bench.command(&arguments).env("ANNALS_CONFIG", &config).output().unwrap();
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
        // Its two sub-agents; the fork repeats the other one.
        assert_eq!(bench.sessions().len(), kept, "{starred}");
        assert_eq!(bench.run(&["show", starred, "--json", "--full", "--copies"]).stdout, before);
    }
}

/// The full outputs of a sub-agent are in the directory of the session that started it. One that another session also
/// refers to stays.
#[test]
fn a_forgotten_sub_agent_takes_its_full_outputs_along() {
    let bench = Bench::new();
    let outputs = project(&bench).join(PLANTED).join("tool-results");
    std::fs::create_dir_all(&outputs).unwrap();
    let calling = |number: u64, output: &str| {
        let call = format!("toolu_{output}");
        let marker = format!(
            "<persisted-output>\nOutput too large. Full output saved to: {}\n\nPreview\n</persisted-output>",
            outputs.join(format!("{output}.txt")).display()
        );
        let input = json!({"command": format!("echo {output}")});
        let used = json!([{"type": "tool_use", "id": call, "name": "Bash", "input": input}]);
        let result = json!([{"type": "tool_result", "tool_use_id": call, "content": marker}]);
        [line(PLANTED, number, "assistant", used), line(PLANTED, number + 1, "user", result)]
    };
    let own = [vec![line(PLANTED, 1, "user", json!("ask a helper"))], calling(2, "shared").to_vec()].concat();
    write(&project(&bench).join(format!("{PLANTED}.jsonl")), &own);
    let mut helper = [calling(4, "alone").to_vec(), calling(6, "shared").to_vec()].concat();
    for (number, row) in helper.iter_mut().enumerate() {
        (row["isSidechain"], row["agentId"]) = (json!(true), json!("a1"));
        row["uuid"] = json!(format!("a1-{number}"));
    }
    write(&project(&bench).join(PLANTED).join("subagents/agent-a1.jsonl"), &helper);
    for output in ["alone", "shared"] {
        std::fs::write(outputs.join(format!("{output}.txt")), format!("{output}wholeoutput\n")).unwrap();
    }
    bench.sync();
    let kept = || bench.run(&["records", "claude_code/tool_results_full", "--full"]).stdout;
    assert!(kept().contains("alonewholeoutput") && kept().contains("sharedwholeoutput"));
    assert_eq!(bench.run(&["forget", "agent-a1", "--yes"]).code, 0);
    assert_gone(&bench, "alonewholeoutput");
    assert!(kept().contains("sharedwholeoutput"), "{}", kept());
}
