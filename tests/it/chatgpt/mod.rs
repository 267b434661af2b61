//! ChatGPT exports in every container, with every trap: recognised by content, kept complete, shown by branch.

mod merge;
mod records;

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use annals_testkit::Bench;
use annals_testkit::corpora::chatgpt::{
    Conversation, Export, Generation, bytes_of, export, list_of, oddities, workshop, write_folder, zip,
};
use annals_testkit::files::files_below;
use annals_testkit::server::Server;

const WORKSHOP: &str = "6801aaaa-0000-4000-8000-000000000001";

fn file(bench: &Bench, name: &str, bytes: &[u8]) -> PathBuf {
    let path = bench.folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The cases of the golden test, and the exports of each in order.
fn cases() -> Vec<(&'static str, Vec<Export>)> {
    let later = |generation: Generation| {
        let mut talk = workshop();
        talk.updated += 5_000.0;
        talk.title = json!("Oiling, again");
        export(generation, &[talk.turn("a4", "later", "a lathe").clone()])
    };
    vec![
        ("first_generation", vec![export(Generation::First, &[workshop()])]),
        ("second_generation", vec![export(Generation::Second, &[workshop()])]),
        ("third_generation", vec![export(Generation::Third, &[workshop(), oddities()])]),
        ("oddities", vec![export(Generation::Second, &[oddities()])]),
        ("second_then_third", vec![export(Generation::Second, &[workshop()]), later(Generation::Third)]),
        ("newer_then_older", vec![later(Generation::Second), export(Generation::Second, &[workshop()])]),
    ]
}

#[test]
fn fixtures_are_what_the_generator_writes() {
    let fixtures = Path::new(annals_testkit::ROOT).join("crates/annals-sources/src/chatgpt/fixtures");
    for (case, exports) in cases() {
        for (number, files) in exports.iter().enumerate() {
            let folder = fixtures.join(case).join("exports").join((number + 1).to_string());
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                write_folder(files, &folder);
            }
            for (name, bytes) in files {
                assert!(std::fs::read(folder.join(name)).unwrap() == *bytes, "{case} {name}");
            }
            assert_eq!(files_below(&folder).len(), files.len(), "{case}");
        }
    }
}

#[test]
fn every_container_gives_the_same_conversations() {
    let files = export(Generation::Second, &[workshop(), oddities()]);
    let plain = bytes_of(&list_of(Generation::Second, &[workshop(), oddities()]));
    let lines: Vec<u8> = [workshop(), oddities()]
        .iter()
        .flat_map(|talk| {
            let bytes = bytes_of(&talk.json(Generation::Second));
            let lines: Vec<u8> =
                bytes.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
            [lines, b"\n".to_vec()].concat()
        })
        .collect();
    let wrapped: Export = files
        .iter()
        .map(|(name, bytes)| (format!("my export/{name}"), bytes.clone()))
        .chain([("__MACOSX/my export/._user.json".to_owned(), b"junk".to_vec())])
        .collect();
    let nested = vec![
        ("User Online Activity/Conversations__0a-chatgpt-0001-part-0001.zip".to_owned(), zip(&files)),
        ("Financial/payments.csv".to_owned(), b"card,4242".to_vec()),
        ("User Online Activity/Ads__0a.zip".to_owned(), b"PK\x03\x04 not looked at".to_vec()),
        ("report.html".to_owned(), b"<html>".to_vec()),
    ];
    let enveloped = [b"{\"conversations\":".as_slice(), &plain, b"}"].concat();
    let marked = [b"\xEF\xBB\xBF".as_slice(), &plain].concat();
    let mut results = Vec::new();
    for (name, bytes) in [
        ("export.zip", zip(&files)),
        ("conversations.json", plain.clone()),
        ("renamed.bin", marked),
        ("lines.jsonl", lines),
        ("wrapped.json", enveloped),
        ("rezipped.zip", zip(&wrapped)),
        ("privacy.zip", zip(&nested)),
    ] {
        let bench = Bench::new();
        let report = bench.import(&[&file(&bench, name, &bytes)]);
        assert_eq!(report["sources"][0]["new"], 2, "{name}: {report}");
        let sessions: Vec<String> = bench
            .sessions()
            .iter()
            .map(|session| {
                let id = session["session_id"].as_str().unwrap();
                bench.json(&["show", id, "--branch", "all"])["messages"].to_string()
            })
            .collect();
        results.push((name, sessions));
        if name == "privacy.zip" {
            let left_out =
                report["members"].as_array().unwrap().iter().filter(|member| member["verdict"] == "left_out");
            assert!(left_out.count() >= 3, "{report}");
            assert!(!bench.everything().contains("4242"));
        }
    }
    for (name, sessions) in &results[1..] {
        assert!(*sessions == results[0].1, "{name} differs from {}", results[0].0);
    }
    // A directory, and a single conversation without a list around it.
    let bench = Bench::new();
    let folder = bench.folder.path().join("unzipped");
    write_folder(&files, &folder);
    assert_eq!(bench.import(&[&folder])["sources"][0]["new"], 2);
    let one = file(&bench, "one.json", &bytes_of(&workshop().json(Generation::First)));
    assert_eq!(bench.import(&[&one])["sources"][0]["new"], 0);
    // Messages in a list, without a tree.
    let mut talk = Conversation::new("6801aaaa-0000-4000-8000-00000000000f", "In a row");
    talk.turn("client-created-root", "one", "first words").turn("one-assistant", "two", "second words");
    let messages: Vec<&Value> = talk.nodes.iter().skip(1).map(|(_, _, message)| message).collect();
    let flat = json!({"id": talk.id, "title": "In a row", "current_node": "two-assistant", "messages": messages,
        "page_info": {"has_previous_page": false, "start_cursor": null}});
    assert_eq!(bench.import(&[&file(&bench, "page.json", &bytes_of(&flat))])["sources"][0]["new"], 1);
    let shown = bench.json(&["show", &talk.id]);
    assert_eq!(
        (&shown["session"]["message_count"], shown["messages"].as_array().unwrap().len()),
        (&json!(4), 4)
    );
}

#[test]
fn foreign_files_are_reported_and_not_imported() {
    let bench = Bench::new();
    let others = json!([{"uuid": "1", "name": "x", "entries": [{"text": "hi", "mapping": {}}]}]);
    let foreign = file(&bench, "conversations.json", &bytes_of(&others));
    let ran = bench.run(&["import", foreign.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("not recognised") && ran.stderr.contains("hint:"),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    assert!(bench.sessions().is_empty());
    let missing = bench.run(&["import", "/nowhere/at/all.zip"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("cannot read") && missing.stderr.contains("hint:"), "{}", missing.stderr);
    // Known items are found among unknown ones.
    let folder = bench.folder.path().join("downloads");
    write_folder(&vec![("a/notes.txt".into(), b"notes".to_vec())], &folder);
    std::fs::write(folder.join("export.zip"), zip(&export(Generation::Third, &[workshop()]))).unwrap();
    let report = bench.import(&[&folder]);
    assert_eq!(report["sources"][0]["new"], 1, "{report}");
}

#[test]
fn without_an_import_there_is_guidance() {
    let bench = Bench::new();
    bench.sync();
    let card = |bench: &Bench| {
        let cards = bench.json(&["sources"])["sources"].clone();
        cards.as_array().unwrap().iter().find(|card| card["source"] == "chatgpt").unwrap().clone()
    };
    let before = card(&bench);
    assert_eq!(before["source_status"], "unavailable");
    assert!(before["setup_hint"].as_str().unwrap().contains("annals import"));
    bench.import(&[&file(&bench, "e.zip", &zip(&export(Generation::Second, &[workshop()])))]);
    bench.sync();
    let after = card(&bench);
    assert_eq!((&after["source_status"], &after["session_count"]), (&json!("available"), &json!(1)));
}

#[test]
fn missing_parts_are_reported_and_the_rest_is_imported() {
    let bench = Bench::new();
    let mut files = export(Generation::Third, &[workshop(), oddities()]);
    files.retain(|(name, _)| name != "conversations-001.json");
    let path = file(&bench, "partial.zip", &zip(&files));
    let ran = bench.run(&["import", path.to_str().unwrap()]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("conversations-001.json"), "{}", ran.stderr);
    assert_eq!(bench.sessions().len(), 1);
    assert!(bench.run(&["records", "chatgpt/imports"]).stdout.contains("conversations-001.json"));
    assert!(bench.run(&["gaps"]).stdout.contains("conversations-001.json"));
    // An export that has it closes the gap.
    let whole = file(&bench, "whole.zip", &zip(&export(Generation::Third, &[workshop(), oddities()])));
    assert_eq!(bench.import(&[&whole])["sources"][0]["new"], 1);
    assert!(!bench.run(&["gaps"]).stdout.contains("conversations-001.json"));
}

#[test]
fn hostile_zips_are_refused_with_a_reason() {
    let bench = Bench::new();
    let talk = bytes_of(&list_of(Generation::Second, &[workshop()]));
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    for name in [
        "../conversations.json",
        "/etc/conversations.json",
        "C:/conversations.json",
        "a/../../conversations.json",
    ] {
        writer.start_file(name, options).unwrap();
        writer.write_all(&talk).unwrap();
    }
    writer.add_symlink("conversations.json", "/etc/passwd", options).unwrap();
    // A gigabyte of zeros.
    writer
        .start_file("conversations-000.json", options.compression_method(zip::CompressionMethod::Deflated))
        .unwrap();
    writer.write_all(b"[{\"mapping\":{},\"title\":\"").unwrap();
    let nothing = vec![b' '; 1 << 20];
    for _ in 0..300 {
        writer.write_all(&nothing).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let path = file(&bench, "hostile.zip", &bytes);
    let ran = bench.run(&["import", path.to_str().unwrap(), "--verbose"]);
    for word in ["`..`", "absolute", "a link", "times its size"] {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
    assert!(bench.sessions().is_empty());
    assert_eq!(
        std::fs::read_dir(bench.archive())
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".tmp") })
            .count(),
        0
    );
    for cut in [10, bytes.len() / 2, bytes.len() - 8] {
        let path = file(&bench, "cut.zip", &bytes[..cut]);
        let ran = bench.run(&["import", path.to_str().unwrap()]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("hint:"), "{}", ran.stderr);
    }
}

#[test]
fn bodies_come_back_byte_for_byte() {
    let bench = Bench::new();
    let mut later = workshop();
    later.updated += 7.0;
    let mut bodies = Vec::new();
    for (number, talk) in [workshop(), later].iter().enumerate() {
        let body = bytes_of(&talk.json(Generation::Second));
        let array = [b"[".as_slice(), &body, b"]"].concat();
        bench.import(&[&file(&bench, &format!("{number}.json"), &array)]);
        bodies.push(body);
    }
    let target = bench.folder.path().join("restored");
    assert_eq!(bench.run(&["restore", "--source", "chatgpt", "--to", target.to_str().unwrap()]).code, 0);
    let restored = std::fs::read(target.join(format!("conversations/{WORKSHOP}.json-seq"))).unwrap();
    let pieces: Vec<&[u8]> = restored.split(|byte| *byte == 0x1E).collect();
    assert_eq!((pieces[1], pieces[3]), (bodies[0].as_slice(), bodies[1].as_slice()));
    let header: Value = serde_json::from_slice(pieces[0]).unwrap();
    assert_eq!((&header["annals_capture"], &header["member"]), (&json!(1), &json!("0.json")));
}

#[test]
fn files_are_linked_and_kept_on_request() {
    let bench = Bench::new();
    let files = export(Generation::Third, &[workshop()]);
    bench.import(&[&file(&bench, "e.zip", &zip(&files))]);
    let record = |bench: &Bench| -> Value {
        let ran = bench.run(&["records", "chatgpt/files"]);
        let record: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
        record["data"].clone()
    };
    let before = record(&bench);
    assert_eq!((&before["name"], &before["archived_as"]), (&json!("gears of ada.png"), &Value::Null));
    assert_eq!(before["provenance"]["name"], "library");
    let path = bench.folder.path().join("e.zip");
    bench.json(&["import", path.to_str().unwrap(), "--with-files"]);
    let after = record(&bench);
    assert_eq!(after["archived_as"], "assets/file-PhotoOfTheGears000001");
    assert_eq!((&after["width"], &after["mime_type"]), (&json!(640), &json!("image/png")));
    let target = bench.folder.path().join("restored");
    bench.run(&["restore", "--source", "chatgpt", "--to", target.to_str().unwrap()]);
    let picture = std::fs::read(target.join("assets/file-PhotoOfTheGears000001")).unwrap();
    assert_eq!(picture, b"\x89PNG picture of gears");
    let rows = bench.everything();
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_eq!(bench.everything(), rows);
}

#[test]
fn branches_are_shown_found_and_switched() {
    let bench = Bench::new();
    bench.import(&[&file(&bench, "e.zip", &zip(&export(Generation::Second, &[workshop()])))]);
    let shown = bench.json(&["show", WORKSHOP]);
    let text = shown["messages"].to_string();
    assert!(text.contains("second draft") && !text.contains("first draft"));
    let entries = shown["messages"].as_array().unwrap();
    let fork = entries.iter().find(|entry| entry["branches"].is_array()).unwrap();
    let branches = fork["branches"].as_array().unwrap();
    assert_eq!(branches.len(), 2);
    assert_eq!(branches.iter().filter(|branch| branch["current"] == true).count(), 1);
    let other = branches.iter().find(|branch| branch["current"] == false).unwrap()["id"].as_str().unwrap();
    let switched = bench.json(&["show", WORKSHOP, "--branch", other])["messages"].to_string();
    assert!(switched.contains("first draft") && !switched.contains("second draft"));
    let all = bench.json(&["show", WORKSHOP, "--branch", "all"])["messages"].to_string();
    assert!(all.contains("first draft") && all.contains("second draft"));
    assert_eq!(bench.run(&["show", WORKSHOP, "--branch", "ffffffffffffffff"]).code, 2);
    // Calls are shown with their first result, further ones separately.
    let call = entries.iter().find(|entry| entry["blocks"][0]["name"] == "web.run").unwrap();
    assert!(call["blocks"][1]["output"].as_str().unwrap().contains("Guide to oil"));
    assert!(
        entries.iter().any(|entry| entry["kind"] == "result" && entry.to_string().contains("Second guide"))
    );
    // Matches on another branch are found, and open there.
    let found = bench.json(&["search", "\"first draft\""])["results"][0]["passages"][0].clone();
    assert_eq!((&found["off_branch"], &found["position"]), (&json!(true), &Value::Null));
    let opened = bench.run(&["show", WORKSHOP, "--at", found["message_id"].as_str().unwrap()]);
    assert!(opened.stdout.contains("first draft"), "{}", opened.stdout);
    let found = bench.json(&["search", "Noted"])["results"][0]["passages"][0].clone();
    let at = found["position"].as_u64().unwrap() as usize;
    assert_eq!(entries[at]["id"], found["message_id"]);
    // The same over HTTP, in pages.
    let server = Server::without_refresh(&bench);
    let address = format!("/api/v1/chatgpt/sessions/{WORKSHOP}/messages");
    let messages = server.list(&format!("{address}?limit=2&branch={other}"), "messages");
    assert!(Value::from(messages.clone()).to_string().contains("first draft"));
    let seqs: Vec<u64> = messages.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (0..messages.len() as u64).collect::<Vec<_>>());
    assert_eq!(server.get(&format!("{address}?branch=nothing")).status, 400);
    assert_eq!(server.list(&address, "messages").len(), entries.len());
}

#[test]
fn instructions_of_conversations_are_library_items_with_versions() {
    let bench = Bench::new();
    let mut talks = vec![workshop()];
    for (number, words) in ["Answer at length.", "Answer in short sentences."].iter().enumerate() {
        let mut talk = workshop();
        talk.id = format!("6801aaaa-0000-4000-8000-00000000010{number}");
        talk.nodes[2].2["content"]["user_instructions"] = json!(words);
        talk.nodes[2].2["create_time"] = json!(1_750_000_000 + number * 1_000_000);
        talks.insert(0, talk);
    }
    bench.import(&[&file(&bench, "e.zip", &zip(&export(Generation::Second, &talks)))]);
    let ran = bench.run(&["records", "chatgpt/custom_instructions", "--key", "instructions"]);
    let texts: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = texts.iter().map(|record| record["data"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Answer at length.", "Answer in short sentences."]);
    let profile = bench.json(&["records", "chatgpt/custom_instructions", "--key", "profile"]);
    assert_eq!(profile["records"][0]["data"]["text"], "I repair clocks.", "{profile}");
    assert!(bench.run(&["library"]).stdout.contains("custom_instructions"));
    let canvas = bench.run(&["records", "chatgpt/canvas_documents"]).stdout;
    assert!(canvas.contains("oiling_plan") && canvas.contains("One drop a wheel."), "{canvas}");
    assert_eq!(bench.json(&["search", "repair clocks"])["results"][0]["kind"], "library");
}

#[test]
fn a_killed_import_is_resumed() {
    let talks: Vec<Conversation> = (0..1_500)
        .map(|number| {
            let mut talk = Conversation::new(&format!("6801aaaa-0000-4000-8000-{number:012}"), "Many");
            for turn in 0..6 {
                let parent =
                    if turn == 0 { "client-created-root".into() } else { format!("{}-assistant", turn - 1) };
                talk.turn(
                    &parent,
                    &turn.to_string(),
                    &format!("words {number} {turn} {}", "gears and oil ".repeat(60)),
                );
            }
            talk
        })
        .collect();
    let bytes = zip(&export(Generation::Second, &talks));
    let calm = Bench::new();
    let path = file(&calm, "many.zip", &bytes);
    let start = std::time::Instant::now();
    calm.import(&[&path]);
    let mut whole = start.elapsed();
    let bench = Bench::new();
    let path = file(&bench, "many.zip", &bytes);
    let mut hits = 0;
    for part in (1..8).cycle().take(35) {
        let mut child = bench.command(&["import", path.to_str().unwrap(), "--quiet"]).spawn().unwrap();
        std::thread::sleep(whole * part / 9);
        match child.try_wait().unwrap() {
            None => hits += 1,
            // The machine is faster than before: kill sooner next time.
            Some(_) => whole /= 2,
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!([0, 1].contains(&bench.run(&["sessions"]).code));
        if hits == 4 {
            break;
        }
    }
    assert!(hits >= 2, "only {hits} kills hit");
    bench.import(&[&path]);
    let content = |bench: &Bench| {
        let mut sessions = bench.sessions();
        sessions.sort_by_key(|session| session["session_id"].to_string());
        let counted = sessions.iter().map(|session| json!([session["session_id"], session["message_count"]]));
        counted.collect::<Vec<_>>()
    };
    assert_eq!(content(&bench), content(&calm));
    let versions = bench.run(&["records", "chatgpt/conversation_versions"]);
    assert_eq!(versions.stdout.lines().count(), talks.len());
    assert!(versions.stdout.lines().all(|line| line.contains("\"version\":1,")));
}

#[test]
fn broken_elements_are_kept_aside_and_counted() {
    let bench = Bench::new();
    let good = bytes_of(&workshop().json(Generation::Second));
    let bytes = [b"[".as_slice(), &good, b", 7, {\"mapping\": {\"a\": NaN}}, {\"mapping\":{\"cut"].concat();
    let report = bench.import(&[&file(&bench, "conversations.json", &bytes)]);
    assert_eq!((&report["sources"][0]["new"], &report["sources"][0]["kept_aside"]), (&json!(1), &json!(3)));
    assert_eq!(report["problems"].as_array().unwrap().len(), 3, "{report}");
    let target = bench.folder.path().join("restored");
    bench.run(&["restore", "--source", "chatgpt", "--to", target.to_str().unwrap()]);
    let kept: Vec<Vec<u8>> =
        files_below(&target.join("aside")).iter().map(|path| std::fs::read(path).unwrap()).collect();
    for piece in [&b"7"[..], b"{\"mapping\": {\"a\": NaN}}", b"{\"mapping\":{\"cut"] {
        assert!(kept.iter().any(|bytes| bytes == piece));
    }
    let audit = bench.json(&["audit"])["sources"].clone();
    let audit = audit.as_array().unwrap().iter().find(|audit| audit["source"] == "chatgpt").unwrap().clone();
    assert!(audit["percent"].as_f64().unwrap() < 100.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn mutated_exports_are_kept_and_nothing_fails(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..12),
    ) {
        let mut bytes = bytes_of(&list_of(Generation::Second, &[workshop(), oddities()]));
        for (at, byte, what) in changes {
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1_000)),
            }
        }
        let bench = Bench::new();
        let path = file(&bench, "conversations.json", &bytes);
        let ran = bench.run(&["import", path.to_str().unwrap(), "--json"]);
        prop_assert!(ran.code < 2, "{}", ran.stderr);
        let target = bench.folder.path().join("restored");
        bench.run(&["restore", "--source", "chatgpt", "--to", target.to_str().unwrap()]);
        let kept: usize = match target.is_dir() {
            false => 0,
            true => files_below(&target)
                .iter()
                .filter(|path| !path.to_str().unwrap().contains("/imports/"))
                .map(|path| std::fs::read(path).unwrap())
                .flat_map(|bytes| bytes.split(|byte| *byte == 0x1E).map(<[u8]>::to_vec).collect::<Vec<_>>())
                .filter(|piece| !piece.starts_with(b"{\"annals_capture\""))
                .map(|piece| piece.iter().filter(|byte| !byte.is_ascii_whitespace()).count())
                .sum(),
        };
        // All but punctuation between elements; duplicates are kept once.
        let whole = bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
        if ran.code == 0 {
            let aside = target.join("aside");
            let files = if aside.is_dir() { files_below(&aside) } else { Vec::new() };
            let report: Value = serde_json::from_str(&ran.stdout).unwrap();
            let pieces = report["imports"][0]["sources"][0]["kept_aside"].as_u64().unwrap_or(0) as usize;
            let longest = files.iter().map(|path| path.metadata().unwrap().len() as usize).max().unwrap_or(0);
            let twice = pieces.saturating_sub(files.len()) * longest;
            prop_assert!(kept + twice + 64 >= whole, "{kept} of {whole}");
        }
        if ran.code == 0 {
            let before = bench.everything();
            prop_assert_eq!(bench.run(&["rebuild"]).code, 0);
            prop_assert!(bench.everything() == before);
        }
    }
}
