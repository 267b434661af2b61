//! Questions as people type them: which session is first, which time is preferred, what a misspelt word becomes.

use serde_json::json;

use crate::search::{id, names, passages, run_search, talk};
use annals_testkit::codex::{answer, meta, prompt, rollout};
use annals_testkit::server::{Server, escaped};
use annals_testkit::{Bench, Ran};

/// A session of another day.
fn talk_on(bench: &Bench, number: usize, day: &str, texts: &[&str]) {
    let mut lines = vec![meta(&id(number))];
    lines.extend(prompt(&format!("Session {number}.")));
    texts.iter().for_each(|text| lines.extend(answer(text)));
    let lines: Vec<String> = lines.iter().map(|line| line.replace("2026-11-15", day)).collect();
    bench.transcript(&rollout(&id(number)).replace("2026-11-15", day), &lines);
}

/// Words in other forms, other words for the same, words in several messages, and a long output that has them all.
#[test]
fn the_session_that_is_about_it_is_first() {
    let bench = Bench::new();
    talk(
        &bench,
        1,
        &["Marta went to the clinic on Monday.", "The doctor prescribed new pills for her migraine."],
    );
    talk(&bench, 2, &["Marta bought a used car.", "It has a range of two hundred kilometres."]);
    talk(
        &bench,
        3,
        &["Ilya prescribed himself a holiday.", "The car of Ilya is in the workshop, he takes the bus."],
    );
    talk(
        &bench,
        4,
        &["We migrated the billing tables of harbor.", "The parser of harbor was rewritten last."],
    );
    let all = "migration billing parse table doctor car vehicle pill ".repeat(40);
    talk(&bench, 5, &[&format!("harbor printed: {all}")]);
    talk(&bench, 6, &["王芳的登录页面显示白屏,原因是旧浏览器。", "已经加入转译步骤。"]);
    talk(&bench, 7, &["李雷的备份任务失败,磁盘满了。"]);
    talk(&bench, 8, &["call getUserName in src/session_store.rs"]);
    bench.sync();
    for (question, number) in [
        ("which medication did the physician give Marta for migraines?", 1),
        ("what vehicle did Marta purchase", 2),
        ("who is prescribing himself holidays", 3),
        ("how was migrating the billing table of harbor done", 4),
        ("王芳的白屏是什么原因", 6),
        ("李雷的备份为什么失败了", 7),
        ("where is the getUserName function of our session store", 8),
    ] {
        let found = run_search(&bench, question, &[]);
        assert_eq!(
            (&found["mode"], &names(&found)[0]),
            (&"any".into(), &id(number)),
            "{question}: {found:#}"
        );
    }
}

#[test]
fn accents_after_their_letters_are_the_same_words() {
    let bench = Bench::new();
    talk(&bench, 1, &["un cafe\u{301} a\u{300} Gro\u{308}ßwetter"]);
    talk(&bench, 2, &["un café à Paris"]);
    bench.sync();
    for (query, numbers) in
        [("café", &[1, 2][..]), ("cafe\u{301}", &[1, 2]), ("\"großwetter\"", &[]), ("größwetter", &[1])]
    {
        let mut found = names(&run_search(&bench, query, &[]));
        found.sort();
        assert_eq!(found, numbers.iter().map(|number| id(*number)).collect::<Vec<_>>(), "{query}");
    }
    assert_eq!(names(&run_search(&bench, "\"café à großwetter\" OR \"café à größwetter\"", &[])), [id(1)]);
}

#[test]
fn a_time_in_a_question_is_preferred_and_can_be_left_out() {
    let bench = Bench::new();
    talk_on(&bench, 1, "2026-03-10", &["The cache of the gauge was stale."]);
    talk_on(&bench, 2, "2026-11-08", &["The cache of the gauge was stale."]);
    talk_on(&bench, 3, "2026-11-14", &["The cache of the gauge was stale."]);
    bench.sync();
    for (question, first, text) in [
        ("what was wrong with the gauge cache in March?", 1, "in march"),
        ("gauge cache in march 2026", 1, "in march 2026"),
        ("what did we do about the gauge cache last week", 2, "last week"),
        ("which gauge was stale yesterday", 3, "yesterday"),
    ] {
        let found = run_search(&bench, question, &[]);
        assert_eq!(
            (&names(&found)[0], found["total"].as_u64()),
            (&id(first), Some(3)),
            "{question}: {found:#}"
        );
        assert_eq!(found["time"]["text"], text, "{question}");
        assert!(found["time"]["since"].as_str() < found["time"]["until"].as_str(), "{question}");
    }
    assert_eq!(run_search(&bench, "gauge cache", &[])["time"], json!(null));
    // A filter, or quotes, mean what they say; a time alone is a word.
    for query in ["gauge since:2026-11-10", "gauge \"last week\"", "yesterday"] {
        assert_eq!(run_search(&bench, query, &[])["time"], json!(null), "{query}");
    }
    let ran = bench.run(&["search", "what", "about", "the", "gauge", "last", "week"]);
    assert!(ran.stderr.contains("preferring sessions from `last week` (2026-11-0"), "{}", ran.stderr);
    let page = Server::start(&bench).get("/search?q=the+gauge+of+last+week").text();
    assert!(page.contains("Preferring “of last week”: 2026-11-0"), "{page}");
    assert!(page.contains("href=\"/search?q=the%20gauge\">Any time</a>"), "{page}");
}

#[test]
fn a_misspelt_word_is_replaced_and_the_answer_says_so() {
    let bench = Bench::new();
    talk(&bench, 1, &["The tokenizer splits words.", "Throttle the requests."]);
    talk(&bench, 2, &["Nothing of that kind."]);
    bench.sync();
    for (query, typed, used) in [
        ("tokneizer", "tokneizer", "tokenizer"),
        ("otkenizer words", "otkenizer", "tokenizer"),
        ("how does the tokeniser split words", "tokeniser", "tokenizer"),
        ("throtle requests", "throtle", "throttle"),
    ] {
        let found = run_search(&bench, query, &[]);
        assert_eq!(names(&found)[0], id(1), "{query}: {found:#}");
        assert_eq!(found["corrections"], json!([{"typed": typed, "used": used}]), "{query}");
        assert!(!passages(&found)[0]["highlights"].as_array().unwrap().is_empty(), "{query}: {found:#}");
    }
    for query in ["\"tokneizer\"", "tokneizer*", "tknzr", "wrod", "tokenizer", "tok_neizer"] {
        let found = run_search(&bench, query, &[]);
        assert_eq!(found["corrections"], json!(null), "{query}: {found:#}");
    }
    let ran = bench.run(&["search", "tokneizer"]);
    assert!(ran.stderr.contains("no session has `tokneizer`; showing `tokenizer`"), "{}", ran.stderr);
    let page = Server::start(&bench).get("/search?q=tokneizer").text();
    assert!(page.contains("No session has “tokneizer”; showing “tokenizer”."), "{page}");
    assert!(page.contains("href=\"/search?q=%22tokneizer%22\">Search as typed</a>"), "{page}");
}

/// What others wrote is no word of this member's dictionary.
#[test]
fn words_of_others_are_not_suggested() {
    let bench = Bench::new();
    let mut tokens = Vec::new();
    for (name, number, text) in [("ada", 1, "the walrus swims"), ("mary", 2, "a secret tokenizer")] {
        tokens.push(bench.json(&["members", "add", name])["token"].as_str().unwrap().to_owned());
        let own = Bench::new();
        talk(&own, number, &[text]);
        let mut command = bench.command(&["sync", "--member", name]);
        assert_eq!(Ran::of(command.env("CODEX_HOME", own.codex()).output().unwrap()).code, 0);
    }
    let server = Server::without_refresh(&bench);
    let search =
        |token: &str, query: &str| server.json_as(token, &format!("/api/v1/search?q={}", escaped(query)));
    assert_eq!(search(&tokens[0], "tokneizer")["corrections"], json!(null));
    assert_eq!(search(&tokens[0], "the tokneizer of the walrus")["corrections"], json!(null));
    assert_eq!(search(&tokens[0], "wlarus")["corrections"][0]["used"], "walrus");
    assert_eq!(search(&tokens[1], "tokneizer")["corrections"][0]["used"], "tokenizer");
}

/// The words are far into a long answer, some of them everywhere: the part with most of them is shown.
#[test]
fn a_snippet_shows_the_part_with_most_of_the_words() {
    let bench = Bench::new();
    let common = "The gauge is here and there. ".repeat(60);
    let long = format!("{common} Then the needle of the gauge hit the brass stop at noon. {common}");
    talk(&bench, 1, &[&long]);
    talk(&bench, 2, &["a gauge"]);
    bench.sync();
    for query in ["gauge needle noon", "when did the needles of the gauge hit the brass"] {
        let found = run_search(&bench, query, &[]);
        let passage = &passages(&found)[0];
        let snippet = passage["snippet"].as_str().unwrap();
        assert!(snippet.contains("the needle of the gauge hit the brass stop at noon"), "{query}: {snippet}");
        let letters: Vec<char> = snippet.chars().collect();
        for mark in passage["highlights"].as_array().unwrap() {
            let [start, length] = [0, 1].map(|at| mark[at].as_u64().unwrap() as usize);
            let is_letter = |at: usize| letters.get(at).is_some_and(|letter| letter.is_alphanumeric());
            assert!(start == 0 || !is_letter(start - 1), "{query}: {snippet}");
            assert!(!is_letter(start + length), "{query}: {snippet}");
        }
    }
}
