//! What a person typed is there once, whatever the client did with it: in `show`, in search, on the page of its
//! session, and in the counts. Runs on the fixtures, and with `make test-real` on homes of real clients.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::search::{names, passages, run_search};
use annals_testkit::Bench;
use annals_testkit::homes::{ClientHome, of};
use annals_testkit::server::Server;
use annals_testkit::worlds::people::{Added, Deeds, PlantedPrompt, act};

annals_testkit::over_homes! { words_typed_beside_context_and_while_busy_are_there_once, copied_words_are_there_once, words_copied_under_new_ids_are_there_once }

/// Sources whose clients do these things.
const CLIENTS: [&str; 2] = ["claude_code", "codex_cli"];

fn words_typed_beside_context_and_while_busy_are_there_once(homes: &[ClientHome]) {
    check_all(homes, Deeds::Typing, &CLIENTS);
}

fn copied_words_are_there_once(homes: &[ClientHome]) {
    check_all(homes, Deeds::Copying, &CLIENTS);
}

fn words_copied_under_new_ids_are_there_once(homes: &[ClientHome]) {
    check_all(homes, Deeds::Rewriting, &CLIENTS[..1]);
}

fn check_all(homes: &[ClientHome], deeds: Deeds, sources: &[&'static str]) {
    let mut wrong = Vec::new();
    let mut checked: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        for home in of(homes, source) {
            let before = Archived::of(Bench::with_home(source, &home));
            let bench = Bench::with_home(source, &home);
            let added = act(source, &bench.home_of(source), deeds);
            let after = Archived::of(bench);
            *checked.entry(source).or_default() += added.planted.len();
            let found = check(source, deeds, &before, &after, &added);
            wrong.extend(found.into_iter().map(|what| format!("{}: {what}", home.display())));
        }
    }
    for source in sources {
        assert!(checked.get(source).is_some_and(|words| *words > 0), "nothing was typed with {source}");
    }
    println!("{deeds:?}: {checked:?} words");
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// An archive with everything that it shows.
struct Archived {
    bench: Bench,
    sessions: Vec<Value>,
    /// Session and entry, without copies.
    entries: Vec<(String, Value)>,
}

impl Archived {
    fn of(bench: Bench) -> Archived {
        bench.sync();
        let sessions = bench.sessions();
        let mut entries = Vec::new();
        for session in &sessions {
            let id = session["session_id"].as_str().unwrap();
            let shown = bench.json(&["show", id, "--full"]);
            let messages = shown["messages"].as_array().unwrap().iter();
            entries.extend(messages.map(|entry| (id.to_owned(), entry.clone())));
        }
        Archived { bench, sessions, entries }
    }

    /// Every prompt, and how often it is shown.
    fn prompts(&self) -> BTreeMap<String, usize> {
        let mut prompts = BTreeMap::new();
        for (_, entry) in self.entries.iter().filter(|(_, entry)| entry["kind"] == "prompt") {
            *prompts.entry(spoken(entry)).or_default() += 1;
        }
        prompts
    }

    fn sum(&self, count: &str) -> i64 {
        self.sessions.iter().map(|session| session[count].as_i64().unwrap()).sum()
    }
}

/// The words of an entry, without context.
fn spoken(entry: &Value) -> String {
    let blocks = entry["blocks"].as_array().unwrap().iter();
    let texts = blocks.filter(|block| block["type"] == "text" || block["type"] == "event");
    texts.map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

fn check(source: &str, deeds: Deeds, before: &Archived, after: &Archived, added: &Added) -> Vec<String> {
    let mut wrong = Vec::new();
    for planted in &added.planted {
        wrong.extend(check_shown(after, planted));
    }
    let server = Server::without_refresh(&after.bench);
    wrong.extend(added.planted.iter().filter_map(|planted| check_search(&server, planted)));
    wrong.extend(check_pages(source, &server, added));
    if let Some(planted) = added.planted.last() {
        let answer = run_search(&after.bench, &format!("{} role:user", planted.word), &[]);
        wrong.extend(check_found(&answer, planted));
    }
    wrong.extend(forks_without_parent(after, added));
    let now = after.prompts();
    for (words, count) in before.prompts() {
        let is = now.get(&words).copied().unwrap_or(0);
        if is != count {
            wrong.push(format!("{words:?} was shown {count} times, now {is}"));
        }
    }
    let mut counts = vec![("message_count", added.messages)];
    // Under new ids, records count in each session that has them.
    if deeds != Deeds::Rewriting {
        counts.push(("user_message_count", added.user_records));
    }
    for (count, expected) in counts {
        let grown = after.sum(count) - before.sum(count);
        if grown != expected {
            wrong.push(format!("{count} grew by {grown}, not {expected}"));
        }
    }
    wrong
}

/// Forks name the session that they were copied from.
fn forks_without_parent(after: &Archived, added: &Added) -> Vec<String> {
    let forks = added.planted.iter().filter(|planted| planted.deed == "fork");
    let orphan = |fork: &&PlantedPrompt| {
        let session = after.sessions.iter().find(|session| session["session_id"] == *fork.session);
        session.is_none_or(|session| session["parent_session_id"].is_null())
    };
    forks.filter(orphan).map(|fork| format!("{} has no parent", fork.session)).collect()
}

fn check_shown(after: &Archived, planted: &PlantedPrompt) -> Option<String> {
    let PlantedPrompt { word, session, deed, sent } = planted;
    let kind = if *sent { "prompt" } else { "unsent" };
    // A summary may repeat it.
    let holding: Vec<(&str, &str, usize)> = after
        .entries
        .iter()
        .filter(|(_, entry)| entry["kind"] != "summary" && entry["kind"] != "injected")
        .map(|(session, entry)| {
            (session.as_str(), entry["kind"].as_str().unwrap(), spoken(entry).matches(word).count())
        })
        .filter(|(_, _, count)| *count > 0)
        .collect();
    (holding != [(session.as_str(), kind, 1)])
        .then(|| format!("{deed}: {word} is in {holding:?}, not {session}"))
}

fn check_search(server: &Server, planted: &PlantedPrompt) -> Option<String> {
    check_found(&server.json(&format!("/api/v1/search?q={}&role=user", planted.word)), planted)
}

fn check_found(answer: &Value, planted: &PlantedPrompt) -> Option<String> {
    let PlantedPrompt { word, session, deed, .. } = planted;
    let (passages, found) = (passages(answer), names(answer));
    let more = answer["results"][0]["more_passages"].as_u64();
    (found != [session.as_str()] || passages.len() != 1 || more != Some(0) || answer["complete"] != true)
        .then(|| format!("{deed}: {word} is found in {found:?} at {} places, not {session}", passages.len()))
}

/// Every word is in one article of its session's page.
fn check_pages(source: &str, server: &Server, added: &Added) -> Vec<String> {
    let sessions: BTreeSet<&str> = added.planted.iter().map(|planted| planted.session.as_str()).collect();
    let mut wrong = Vec::new();
    for session in sessions {
        let articles = articles(server, &format!("/sessions/{source}/{session}"));
        for PlantedPrompt { word, deed, sent, .. } in
            added.planted.iter().filter(|planted| planted.session == session)
        {
            let class = if *sent { "prompt" } else { "notice" };
            let holding: Vec<(&str, usize)> = articles
                .iter()
                .filter(|(class, _)| class != "summary" && class != "injected")
                .map(|(class, text)| (class.as_str(), text.matches(word.as_str()).count()))
                .filter(|(_, count)| *count > 0)
                .collect();
            if holding != [(class, 1)] {
                wrong.push(format!("{deed}: {word} is on the page of {session} in {holding:?}"));
            }
        }
    }
    wrong
}

/// Class and HTML of all articles of a session.
fn articles(server: &Server, base: &str) -> Vec<(String, String)> {
    let page = server.page(base);
    assert_eq!(page.status, 200, "{base}");
    let page = page.text();
    let starts =
        page.split("data-from=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<u64>().ok());
    let mut articles = Vec::new();
    for start in starts {
        let steps = server.page(&format!("{base}?from={start}")).text();
        let chunk = format!("<section class=\"chunk\" data-from=\"{start}\">");
        let chunk = steps.split(&chunk).nth(1).unwrap().split("</section>").next().unwrap();
        for article in chunk.split("<article class=\"entry ").skip(1) {
            let (class, text) = article.split_once('"').unwrap();
            articles.push((class.to_owned(), text.to_owned()));
        }
    }
    assert!(!articles.is_empty(), "{base} shows nothing");
    articles
}
