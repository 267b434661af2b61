//! Files as people have them: with credentials, truncated, wrong, mixed, and in a watched directory.

use std::path::Path;

use crate::openai_api::{fixture, ids, import, steps};
use annals_testkit::Bench;
use annals_testkit::files::files_below;

/// Every byte that the archive keeps, decompressed and as stored.
fn archived(bench: &Bench) -> Vec<u8> {
    let target = bench.folder.path().join("restored");
    let ran = bench.run(&["restore", "--source", "openai_api", "--to", target.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let mut bytes = Vec::new();
    for file in files_below(&target).into_iter().chain(files_below(&bench.archive())) {
        bytes.extend(std::fs::read(file).unwrap());
        bytes.push(b'\n');
    }
    std::fs::remove_dir_all(&target).unwrap();
    bytes
}

fn contains(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

#[test]
fn credentials_never_reach_the_archive() {
    let bench = Bench::new();
    import(&bench, &[&fixture("har"), &fixture("litellm")]);
    let bytes = archived(&bench);
    for word in ["planted", "authorization", "bearer", "cookie", "api-key", "88dc28d0f030", "b5c1d7", "sk-"] {
        assert!(!contains(&bytes, word), "{word} is in the archive");
    }
    // Everything else is there: other headers, the messages, what the caller attached.
    for word in [
        "OpenAI-Organization",
        "x-ratelimit-remaining-tokens",
        "Is the quay dry?",
        "user_api_key_alias",
        "api-version=2024-10-21",
    ] {
        assert!(contains(&bytes, word), "{word} is not in the archive");
    }
    // Calls to other hosts are not kept.
    assert!(!contains(&bytes, "example.org/login") && !contains(&bytes, "Through the gateway"));
}

#[test]
fn bytes_without_credentials_are_kept_as_they_are() {
    let bench = Bench::new();
    let folder = fixture("responses");
    import(&bench, &[&folder]);
    let bytes = archived(&bench);
    for line in std::fs::read_to_string(folder.join("chain.jsonl")).unwrap().lines() {
        assert!(bytes.windows(line.len()).any(|window| window == line.as_bytes()), "{line}");
    }
}

#[test]
fn wrong_and_mixed_files_are_distinguished() {
    let bench = Bench::new();
    let ran = bench.run(&["import", fixture("mixed").to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for words in [
        "not recognised, skipped: models.json, notes.txt",
        "skipped, Helicone exports are not supported yet: helicone.jsonl",
        "imported as chat completions: mixed.jsonl",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    for words in
        ["mixed.jsonl: element 1 skipped", "mixed.jsonl: Helicone exports are not supported yet: 1 skipped"]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(ids(&bench).len(), 2);
    assert!(!contains(&archived(&bench), "a line for training"));
    let wrong = bench.user().join("wrong.json");
    for text in
        ["", "{}", "[1,2]", "{\"object\":\"list\",\"data\":[]}", "{\"log\":{}}", "no JSON", "\u{0}\u{1}"]
    {
        std::fs::write(&wrong, text).unwrap();
        let ran = bench.run(&["import", wrong.to_str().unwrap()]);
        assert_eq!(ran.code, 1, "{text}: {}", ran.stdout);
        assert!(ran.stderr.contains("nothing recognised"), "{text}: {}", ran.stderr);
    }
    std::fs::write(&wrong, "2213:9:websocket;0:~8:response;100:7:version;1:2,").unwrap();
    let ran = bench.run(&["import", wrong.to_str().unwrap()]);
    assert!(ran.stdout.contains("hardump"), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn a_truncated_har_gives_what_it_has() {
    let whole = std::fs::read(fixture("har").join("session.har")).unwrap();
    let second =
        whole.windows(15).enumerate().filter(|(_, window)| window == b"startedDateTime").nth(1).unwrap().0;
    for (cut, sessions) in [(second + 200, 1), (whole.len() - 3, 3), (second - 40, 0)] {
        let bench = Bench::new();
        let file = bench.user().join("cut.har");
        std::fs::write(&file, &whole[..cut]).unwrap();
        let ran = bench.run(&["import", file.to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert_eq!(ids(&bench).len(), sessions, "{cut}");
        assert!(!contains(&archived(&bench), "planted"), "{cut}");
        if sessions == 1 {
            assert!(steps(&bench, "chatcmpl-H1").contains(&"answer: The quay is “dry”.".to_owned()));
        }
        // The complete file adds what was missing.
        std::fs::write(&file, &whole).unwrap();
        import(&bench, &[&file]);
        assert_eq!(steps(&bench, "chatcmpl-H1").len(), 7);
    }
}

#[test]
fn a_configured_folder_is_read_by_sync_once() {
    let bench = Bench::new();
    let folder = bench.user().join("traces");
    let sync = || {
        let mut command = bench.command(&["sync", "openai_api", "--json"]);
        let output = command.env("OPENAI_TRACES_DIR", &folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["sources"][0].clone()
    };
    std::fs::create_dir_all(&folder).unwrap();
    copy(&fixture("batch").join("batch_68a0_output.jsonl"), &folder);
    assert!(sync()["captured_bytes"].as_i64().unwrap() > 0);
    assert_eq!(ids(&bench), ["chatcmpl-Bird1", "resp_bird2"]);
    // An unchanged file is not even opened: one that cannot be opened does no harm.
    let file = folder.join("batch_68a0_output.jsonl");
    let times = std::fs::FileTimes::new().set_modified(file.metadata().unwrap().modified().unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("A gannet.", "A penguin")).unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
    let report = sync();
    assert_eq!((&report["captured_bytes"], &report["unchanged_files"]), (&0.into(), &1.into()), "{report}");
    std::fs::write(&file, text).unwrap();
    // Later files are joined with what is there.
    copy(&fixture("batch").join("requests.jsonl"), &folder);
    assert!(sync()["captured_bytes"].as_i64().unwrap() > 0);
    assert_eq!(ids(&bench).len(), 3);
    assert_eq!(sync()["captured_bytes"], 0);
}

fn copy(file: &Path, folder: &Path) {
    std::fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
}

#[test]
fn without_any_file_there_is_a_card_with_a_hint() {
    let bench = Bench::new();
    let sources = bench.json(&["sources"]);
    let card =
        sources["sources"].as_array().unwrap().iter().find(|card| card["source"] == "openai_api").unwrap();
    assert_ne!(card["source_status"], "available");
    let hint = card["setup_hint"].as_str().unwrap();
    assert!(hint.contains("annals import") && hint.contains("OPENAI_TRACES_DIR"), "{hint}");
}

#[test]
fn broken_files_stop_nothing() {
    let bench = Bench::new();
    let folder = bench.user().join("broken");
    std::fs::create_dir_all(&folder).unwrap();
    let cases = ["batch", "chat_completions", "har", "litellm", "mixed", "responses"];
    let files: Vec<_> = cases.iter().flat_map(|case| files_below(&fixture(case))).collect();
    // The same numbers every time.
    let mut number: u64 = 7;
    let mut next = |below: usize| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as usize % below.max(1)
    };
    for (at, file) in files.iter().cycle().take(files.len() * 6).enumerate() {
        let mut bytes = std::fs::read(file).unwrap();
        for _ in 0..next(8) {
            let place = next(bytes.len());
            let end = (place + next(60)).min(bytes.len());
            match next(4) {
                _ if bytes.is_empty() => {}
                0 => bytes[place] = next(256) as u8,
                1 => drop(bytes.drain(place..end)),
                2 => {
                    let piece = bytes[place..end].to_vec();
                    bytes.splice(place..place, piece);
                }
                _ => bytes.truncate(bytes.len() - next(200).min(bytes.len())),
            }
        }
        std::fs::write(folder.join(format!("{at}-{}", file.file_name().unwrap().to_str().unwrap())), bytes)
            .unwrap();
    }
    let ran = bench.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ids(&bench).len() >= 10, "{:?}", ids(&bench));
    let before = bench.everything();
    assert_eq!(bench.run(&["import", folder.to_str().unwrap()]).code, 0);
    assert!(bench.everything() == before, "a second import changed rows");
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert!(bench.everything() == before, "rebuild changed rows");
    assert_eq!(bench.run(&["doctor"]).code, 0);
}
