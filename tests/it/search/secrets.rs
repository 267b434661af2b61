//! What `show` masks is neither shown by a search nor found by guessing.

use serde_json::{Value, json};

use crate::claude;
use crate::search::{id, names, passages, run_search, talk};
use annals_testkit::Bench;
use annals_testkit::codex::{line, meta, prompt, rollout, text_of};
use annals_testkit::server::{Server, escaped};

/// Only the field, flag or header before it says that this is a secret.
const WORDS: [&str; 4] = ["sunflower", "marigold7", "petunia-9x", "Larkspur_42"];

/// Documents with a word beside the secret.
fn documents(word: &str) -> Vec<Value> {
    let inner = json!({"user": "gauge", "password": word});
    vec![
        json!({"user": "gauge", "password": word}),
        json!({"user": "gauge", "login": {"passwd": word}}),
        json!({"command": ["bell", "gauge", "--password", word]}),
        json!({"note": "gauge", "env": [{"name": "DB_PASSWORD", "value": word}]}),
        json!({"note": "gauge", "env": {"DB_PASSWORD": word}}),
        json!({"note": "gauge", "headers": {"X-Password": word}}),
        json!({"note": "gauge", "body": inner.to_string()}),
        json!({"body": json!({"deep": inner.to_string()}).to_string()}),
    ]
}

/// Sessions of both clients whose calls and outputs contain the documents.
fn bench() -> Bench {
    let bench = Bench::new();
    let mut lines = vec![meta(&id(1))];
    lines.extend(prompt("Session one."));
    let mut rows = vec![claude::prompt_row(claude::ONE, 1, "Session two.")];
    for (document, number) in WORDS.iter().flat_map(|word| documents(word)).zip(0..) {
        let call = json!({"type": "function_call", "name": "ring", "arguments": document.to_string(),
            "call_id": format!("c{number}")});
        let result = json!({"type": "function_call_output", "call_id": format!("c{number}"),
            "output": document.to_string()});
        lines.push(line(number, "response_item", &call.to_string()));
        lines.push(line(number, "response_item", &result.to_string()));
        let call = format!("toolu_{number}");
        let block = json!({"type": "tool_use", "id": call, "name": "Bell", "input": document});
        let answer = format!("msg_{number}");
        rows.push(claude::answer_row(claude::ONE, 2 * number + 2, &answer, block, 1));
        rows.push(claude::result(claude::ONE, 2 * number + 3, &call, &document.to_string()));
    }
    bench.transcript(&rollout(&id(1)), &lines);
    claude::write(&bench, claude::FOLDER, claude::ONE, &text_of(&rows));
    bench.sync();
    bench
}

#[test]
fn what_only_its_field_reveals_is_masked_in_every_answer() {
    let bench = bench();
    let server = Server::without_refresh(&bench);
    let found = server.list("/api/v1/search?q=gauge&limit=100", "results");
    assert_eq!(found.len(), 2);
    let mut texts = vec![json!(found).to_string(), server.page("/search?q=gauge").full_text()];
    for session in [id(1), claude::ONE.to_owned()] {
        for query in ["gauge", "bell OR gauge", "DB_PASSWORD"] {
            for kind in ["call", "result"] {
                let query = format!("{query} kind:{kind}");
                let answer = server.json(&format!("/api/v1/search?limit=100&q={}", escaped(&query)));
                texts.push(answer.to_string());
            }
        }
        texts.push(bench.run(&["show", &session, "--full"]).stdout);
        texts.push(bench.run(&["show", &session, "--full", "--json"]).stdout);
    }
    texts.push(bench.run(&["search", "--limit", "100", "gauge"]).stdout);
    for text in texts {
        assert!(text.contains("[secret:"), "{text}");
        let leaks: Vec<&str> = WORDS.into_iter().filter(|word| text.contains(word)).collect();
        assert_eq!(leaks, [""; 0], "{text}");
    }
}

/// Every prefix of a secret, the secret, and a phrase with it.
fn guesses(word: &str) -> Vec<String> {
    let mut guesses: Vec<String> = (3..=word.len()).map(|end| format!("{}*", &word[..end])).collect();
    guesses.extend([word.to_owned(), format!("\"{word}\""), format!("gauge {word}")]);
    guesses.extend([format!("\"password {word}\""), format!("{word} OR {word}x")]);
    guesses
}

#[test]
fn secrets_cannot_be_guessed() {
    let bench = bench();
    let key = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    talk(&bench, 3, &[&format!("export TOKEN={key} for the gauge")]);
    talk(&bench, 4, &["a field of marigold7 in the open"]);
    bench.sync();
    let server = Server::without_refresh(&bench);
    for word in ["sunflower", "petunia", "petunia-9x", "larkspur_42", &key] {
        for guess in guesses(word) {
            let answer = server.json(&format!("/api/v1/search?q={}", escaped(&guess)));
            // What is no guess may match: the closest matches are those of the other words.
            let loose = answer["mode"] == "any" && guess.contains("gauge");
            assert!(loose || answer["total"] == 0, "{guess}: {answer}");
            if !guess.contains(' ') {
                assert_eq!(names(&run_search(&bench, &guess, &[])), [""; 0], "{guess}");
            }
        }
        let without = server.json(&format!("/api/v1/search?q={}", escaped(&format!("gauge -{word}"))));
        let all = server.json("/api/v1/search?q=gauge");
        assert_eq!(without["results"], all["results"], "excluding {word} tells nothing");
        let found = names(&run_search(&bench, word, &["--reveal"]));
        assert!(!found.is_empty(), "the owner finds {word}");
    }
    // A word that is also there in the open is found there, and only there.
    assert_eq!(names(&run_search(&bench, "marigold7", &[])), [id(4)]);
    assert_eq!(names(&run_search(&bench, "marigold*", &[])), [id(4)]);
    assert_eq!(run_search(&bench, "marigold7", &[])["total"], 1);
    assert_eq!(names(&run_search(&bench, "marigold7", &["--reveal"])).len(), 3);
    let revealed = passages(&run_search(&bench, "sunflower", &["--reveal"]));
    assert!(revealed.iter().any(|passage| passage["snippet"].as_str().unwrap().contains("sunflower")));
}

/// Titles, directories and branches are masked where they are listed.
#[test]
fn lists_of_sessions_confirm_no_guess() {
    let bench = Bench::new();
    let key = format!("ghp_{}", "aB3dE6gH9".repeat(4));
    for number in [1, 2] {
        let title = if number == 1 { format!("Deploy with {key} today") } else { "Deploy today".to_owned() };
        let folder = if number == 1 { format!("/home/ada/{key}") } else { "/home/ada/x".to_owned() };
        let mut lines = vec![meta(&id(number)).replace("/home/ada/engine", &folder)];
        lines.extend(prompt(&title));
        bench.transcript(&rollout(&id(number)), &lines);
    }
    bench.sync();
    let server = Server::without_refresh(&bench);
    let total = |parameters: &str| {
        let answer = server.json(&format!("/api/v1/sessions?{parameters}"));
        assert_eq!(answer["total"], answer["sessions"].as_array().unwrap().len());
        answer["total"].as_i64().unwrap()
    };
    assert_eq!((total("q=deploy"), total("q=today")), (2, 2));
    for length in [5, 8, 20, key.len()] {
        let guess = &key[..length];
        assert_eq!(total(&format!("q={guess}")), 0, "{guess}");
        let query = escaped(&format!("deploy {guess}"));
        let answer = server.json(&format!("/api/v1/search?q={query}"));
        assert!(answer["mode"] == "any" || answer["total"] == 0, "{guess}: {answer}");
        let query = escaped(&format!("deploy project:{guess}"));
        assert_eq!(server.json(&format!("/api/v1/search?q={query}"))["total"], 0, "{guess}");
    }
}
