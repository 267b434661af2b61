//! Tokens and cost of homes written by real clients, if a directory of them is given: sums, sessions and explanations
//! agree with an independent count made here. Runs on the fixtures, and with `make test-real` on homes of real
//! clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;

use crate::usage::{Counts, Sum, assert_cost, list, text, tokens_of, usage};
use annals_testkit::Bench;
use annals_testkit::files::files_below;
use annals_testkit::homes::{ClientHome, regular};

/// USD per million tokens: input, output, cache read, cache write, one-hour cache write.
const PRICES: [(&str, [f64; 5]); 12] = [
    ("claude-sonnet-4-20250514", [3.0, 15.0, 0.3, 3.75, 6.0]),
    ("claude-sonnet-4-5", [3.0, 15.0, 0.3, 3.75, 6.0]),
    ("claude-sonnet-4-5-20250929", [3.0, 15.0, 0.3, 3.75, 6.0]),
    ("claude-haiku-4-5-20251001", [1.0, 5.0, 0.1, 1.25, 2.0]),
    ("claude-opus-4-5", [5.0, 25.0, 0.5, 6.25, 10.0]),
    ("claude-opus-4-8", [5.0, 25.0, 0.5, 6.25, 10.0]),
    ("claude-opus-5-5", [4.0, 20.0, 0.2, 5.0, 8.0]),
    ("gpt-5-codex", [1.25, 10.0, 0.125, 1.25, 1.25]),
    ("gpt-5", [1.25, 10.0, 0.125, 1.25, 1.25]),
    ("gpt-5.1-codex", [1.25, 10.0, 0.125, 1.25, 1.25]),
    ("gpt-5.5", [5.0, 30.0, 0.5, 5.0, 5.0]),
    ("gpt-6-sol", [2.0, 10.0, 0.2, 2.5, 2.5]),
];

annals_testkit::over_homes! { sums_of_homes_agree_with_an_independent_count, sessions_add_up_to_the_usage_and_costs_that_clients_wrote_are_theirs, explanations_hold_every_response_once_and_add_up }

#[derive(Debug, Clone)]
struct Response {
    model: Option<String>,
    /// Input, output, cache read, cache write, one-hour cache write, reasoning.
    counts: [i64; 6],
}

/// The responses of a home by id, and the number of their copies elsewhere.
#[derive(Debug, Default)]
struct Counted {
    responses: BTreeMap<String, Response>,
    copies: i64,
}

impl Response {
    /// Tokens as reported, with the sum at the end.
    fn tokens(&self) -> Counts {
        let [input, output, read, write, hour, reasoning] = self.counts;
        [input, output, read, write + hour, reasoning, input + output + read + write + hour]
    }

    fn cost(&self) -> Option<f64> {
        let [input, _, read, write, hour, _] = self.counts;
        assert!(input + read + write + hour <= 100_000, "a long prompt may have other prices");
        let name = self.model.as_deref()?;
        let (_, prices) = PRICES.iter().find(|(model, _)| *model == name)?;
        Some(prices.iter().zip(self.counts).map(|(price, count)| price * count as f64 / 1e6).sum())
    }
}

/// Counts the responses of a home independently of the program, for clients whose format is known here.
fn count_home(source: &str, home: &Path) -> Option<Counted> {
    match source {
        "claude_code" => Some(count_claude(home)),
        "codex_cli" => Some(count_codex(home)),
        _ => None,
    }
}

/// By the provider's id of each answer; its last record has the numbers.
fn count_claude(home: &Path) -> Counted {
    let mut counted = Counted::default();
    let mut places = BTreeSet::new();
    let folder = home.join("projects");
    let files = if folder.is_dir() { files_below(&folder) } else { Vec::new() };
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
        for line in lines_of(path) {
            let message = &line["message"];
            if line["type"] != "assistant" || message["model"] == "<synthetic>" {
                continue;
            }
            let usage = &message["usage"];
            let number = |value: &Value| value.as_i64().unwrap_or(0);
            let hour = number(&usage["cache_creation"]["ephemeral_1h_input_tokens"]);
            let counts = [
                number(&usage["input_tokens"]),
                number(&usage["output_tokens"]),
                number(&usage["cache_read_input_tokens"]),
                number(&usage["cache_creation_input_tokens"]) - hour,
                hour,
                number(&usage["output_tokens_details"]["thinking_tokens"]),
            ];
            let id = message["id"].as_str().unwrap().to_owned();
            places.insert((id.clone(), path));
            counted.responses.insert(id, Response { model: text(&message["model"]), counts });
        }
    }
    counted.copies = places.len() as i64 - counted.responses.len() as i64;
    counted
}

/// By exact records if there are any, else by running totals that moved. A fork repeats its parent's payloads.
fn count_codex(home: &Path) -> Counted {
    let files = files_below(home).into_iter();
    let files: Vec<Vec<Value>> = files
        .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("rollout-"))
        .map(|path| lines_of(&path))
        .collect();
    let by_id: HashMap<&str, &Vec<Value>> =
        files.iter().filter_map(|lines| Some((lines.first()?["payload"]["id"].as_str()?, lines))).collect();
    let mut counted = Counted::default();
    for (number, lines) in files.iter().enumerate() {
        let own = &lines[0]["payload"];
        let parent = own["forked_from_id"].as_str().and_then(|parent| by_id.get(parent));
        let copied = parent.map_or(0, |parent| {
            // A copy may omit lines.
            let mut rest = parent.iter();
            let copied = |line: &&Value| rest.any(|other| other["payload"] == line["payload"]);
            lines.iter().skip(1).take_while(copied).count()
        });
        let exact = lines.iter().any(|line| line["type"] == "token_usage_record");
        let (mut model, mut total) = (None, &Value::Null);
        for (at, line) in lines.iter().enumerate() {
            let payload = &line["payload"];
            let (id, usage): (String, Value) = match line["type"].as_str().unwrap_or_default() {
                "turn_context" => {
                    model = text(&payload["model"]);
                    continue;
                }
                "token_usage_record" => {
                    (payload["response_id"].as_str().unwrap().to_owned(), payload["usage"].clone())
                }
                "event_msg" if payload["info"].is_object() && !exact => {
                    let info = &payload["info"];
                    let before = std::mem::replace(&mut total, &info["total_token_usage"]);
                    if before == total {
                        continue;
                    }
                    (format!("file {number}, line {at}"), rise(before, total, &info["last_token_usage"]))
                }
                _ => continue,
            };
            let foreign = payload["thread_id"].as_str().is_some_and(|thread| own["id"] != *thread);
            if foreign || (1..=copied).contains(&at) {
                counted.copies += 1;
                continue;
            }
            let number = |name: &str| usage[name].as_i64().unwrap_or(0);
            let (read, write) = (number("cached_input_tokens"), number("cache_write_input_tokens"));
            let input = number("input_tokens") - read - write;
            let counts = [input, number("output_tokens"), read, write, 0, number("reasoning_output_tokens")];
            let before = counted.responses.insert(id, Response { model: model.clone(), counts });
            assert!(before.is_none(), "{}: {before:?}", home.display());
        }
    }
    counted
}

/// How much a running total rose; if it fell, or is the first, what the last response used.
fn rise(before: &Value, total: &Value, last: &Value) -> Value {
    let mut rise = last.clone();
    for (name, number) in total.as_object().unwrap() {
        let (Some(number), Some(before)) = (number.as_i64(), before[name].as_i64()) else {
            return last.clone();
        };
        if number < before {
            return last.clone();
        }
        rise[name] = (number - before).into();
    }
    rise
}

fn lines_of(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let packed = path.extension().is_some_and(|extension| extension == "zst");
    let bytes = if packed { zstd::stream::decode_all(bytes.as_slice()).unwrap() } else { bytes };
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines: Vec<Value> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    // The oldest client wrote one document, without usage.
    if lines.is_empty() { vec![Value::Null] } else { lines }
}

fn sums_of_homes_agree_with_an_independent_count(homes: &[ClientHome]) {
    let mut seen = BTreeMap::<&str, (usize, i64)>::new();
    for ClientHome { source, path: home } in regular(homes) {
        let name = home.display().to_string();
        let bench = Bench::with_home(source, home);
        bench.sync();
        let Some(counted) = count_home(source, home) else { continue };
        let (responses, copies) = seen.entry(source).or_default();
        (*responses, *copies) = (*responses + counted.responses.len(), *copies + counted.copies);
        let (mut total, mut models) = (Sum::default(), BTreeMap::<Option<String>, Sum>::new());
        let mut unpriced = BTreeMap::<String, (i64, i64)>::new();
        for response in counted.responses.values() {
            for sum in [&mut total, models.entry(response.model.clone()).or_default()] {
                sum.add(response.tokens(), 1, response.cost());
            }
            let [.., tokens] = response.tokens();
            if response.cost().is_none() && tokens > 0 {
                let model = response.model.clone().unwrap_or("unknown".to_owned());
                let (responses, sum) = unpriced.entry(model).or_default();
                (*responses, *sum) = (*responses + 1, *sum + tokens);
            }
        }
        // Costs that clients wrote are compared by session, below.
        let estimated = |sum: &Sum| Sum { cost: sum.cost.filter(|_| !has_totals(home)), ..sum.clone() };
        let (total, found) = (estimated(&total), |rows: &[Value]| estimated(&Sum::of_rows(rows)));
        for by in ["model", "source", "day", "session", "project"] {
            let report = usage(&bench, &["--by", by]);
            found(std::slice::from_ref(&report["total"])).assert_is(&total, &format!("{name}: {by}"));
            found(list(&report, "rows")).assert_is(&total, &format!("{name}: rows by {by}"));
            assert_eq!(report["excluded_copies"], counted.copies, "{name}");
            let listed = list(&report, "unpriced_models").iter().map(|unpriced| {
                let count = |what: &str| unpriced[what].as_i64().unwrap();
                (text(&unpriced["model"]).unwrap(), (count("response_count"), count("tokens")))
            });
            if !has_totals(home) {
                assert_eq!(listed.collect::<BTreeMap<_, _>>(), unpriced, "{name}");
            }
        }
        let report = usage(&bench, &["--by", "model"]);
        let rows = list(&report, "rows");
        assert_eq!(rows.len(), models.len(), "{name}");
        for row in rows {
            let expected = estimated(&models[&text(&row["key"])]);
            found(std::slice::from_ref(row)).assert_is(&expected, &format!("{name}: {}", row["key"]));
        }
    }
    assert!(seen.values().all(|(responses, copies)| *responses > 0 && *copies > 0), "{seen:?}");
    assert!(seen.len() > 1, "{seen:?}");
}

fn sessions_add_up_to_the_usage_and_costs_that_clients_wrote_are_theirs(homes: &[ClientHome]) {
    for ClientHome { source, path: home } in regular(homes) {
        let name = home.display().to_string();
        let bench = Bench::with_home(source, home);
        bench.sync();
        let sessions = bench.sessions();
        let report = usage(&bench, &["--by", "session"]);
        let mut tokens = Counts::default();
        for session in &sessions {
            tokens.iter_mut().zip(tokens_of(session)).for_each(|(sum, count)| *sum += count);
            let id = &session["session_id"];
            let row = list(&report, "rows").iter().find(|row| row["key"] == *id);
            let used = row.map_or(Counts::default(), tokens_of);
            assert_eq!(tokens_of(session), used, "{name}: {id}");
            let whole = row.filter(|row| list(row, "unpriced_models").is_empty());
            let estimated = whole.and_then(|row| row["cost_usd"].as_f64());
            let written = cost_written(home, id.as_str().unwrap())
                .filter(|_| session["copied_from"].is_null() && session["parent_session_id"].is_null())
                // The client's figure includes its sub-agents, which are counted separately.
                .filter(|_| !sessions.iter().any(|other| is_agent_of(other, id)));
            let billing = match (written, estimated) {
                (Some(_), _) => "reported",
                (None, Some(_)) => "estimated",
                (None, None) => "unknown",
            };
            // Other clients write costs of responses: into documents and databases, which are not read a second time here,
            // or into forks, which have some of their own.
            let in_lines = ["claude_code", "codex_cli", "gemini_cli"].contains(source);
            if written.is_none() && !in_lines && session["billing_source"] == "reported" {
                assert!(session["cost_usd"].as_f64() > Some(0.0), "{name}: {session}");
                continue;
            }
            assert_eq!(session["billing_source"], billing, "{name}: {session}");
            assert_cost(&session["cost_usd"], written.or(estimated), &format!("{name}: {id}"));
        }
        assert_eq!(tokens, tokens_of(&report["total"]), "{name}");
    }
}

fn is_agent_of(session: &Value, parent: &Value) -> bool {
    session["parent_session_id"] == *parent && session["parent_kind"] == "sub_agent"
}

/// Whether transcripts of the home have totals of sessions.
fn has_totals(home: &Path) -> bool {
    let files = files_below(home);
    let lines = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    lines
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .any(|text| text.contains("totalCostUSD"))
}

/// The client's own figure, if no later answer made it stale: a total, or the sum of what each answer cost.
fn cost_written(home: &Path, id: &str) -> Option<f64> {
    let files = files_below(home);
    let name = format!("{id}.jsonl");
    let is_named = |file: &str| file == name || file.ends_with(&format!("_{name}"));
    let path = files.iter().find(|path| is_named(&path.file_name().unwrap().to_string_lossy()))?;
    let costs: Vec<f64> = lines_of(path)
        .iter()
        .filter_map(|line| line["message"]["usage"]["cost"]["total"].as_f64())
        .filter(|cost| *cost > 0.0)
        .collect();
    if !costs.is_empty() {
        return Some(costs.iter().sum());
    }
    let mut cost = None;
    for line in lines_of(path) {
        match line["type"].as_str().unwrap_or_default() {
            "cost-state" => cost = line["totalCostUSD"].as_f64(),
            "assistant" if line["message"]["model"] != "<synthetic>" => cost = None,
            _ => {}
        }
    }
    cost
}

fn explanations_hold_every_response_once_and_add_up(homes: &[ClientHome]) {
    for ClientHome { source, path: home } in regular(homes) {
        let name = home.display().to_string();
        let bench = Bench::with_home(source, home);
        bench.sync();
        let Some(counted) = count_home(source, home) else { continue };
        let report = usage(&bench, &[]);
        let whole = usage(&bench, &["--explain"]);
        let responses = list(&whole, "responses");
        let (copies, own): (Vec<&Value>, Vec<&Value>) =
            responses.iter().partition(|response| response["copied"] == true);
        Sum::of_rows(own.iter().copied()).assert_is(&Sum::of_rows([&report["total"]]), &name);
        assert_eq!(report["excluded_copies"], copies.len(), "{name}");
        let sessions: BTreeSet<String> =
            bench.sessions().iter().map(|session| text(&session["session_id"]).unwrap()).collect();
        let mut found = BTreeSet::new();
        for response in responses {
            let id = text(&response["response_id"]).unwrap();
            assert!(sessions.contains(response["session_id"].as_str().unwrap()), "{name}: {response}");
            if let Some(expected) = counted.responses.get(&id) {
                assert_eq!(tokens_of(response), expected.tokens(), "{name}: {response}");
                assert_eq!(text(&response["model"]), expected.model, "{name}: {response}");
            }
            if response["copied"] == true {
                let origin = response["counted_in"].as_str().unwrap();
                assert!(sessions.contains(origin) && response["session_id"] != origin, "{name}: {response}");
                assert!(response["cost_usd"].is_null(), "{name}: {response}");
                continue;
            }
            assert!(response["counted_in"].is_null(), "{name}: {response}");
            assert!(found.insert(id), "{name}: {response}");
            let price = &response["price"];
            let is_known = !price.is_null() || response["billing_source"] == "reported";
            assert_eq!(is_known, !response["cost_usd"].is_null(), "{name}: {response}");
            for fact in ["model", "from", "checked", "origin"] {
                assert!(price.is_null() || !price[fact].as_str().unwrap().is_empty(), "{name}: {response}");
            }
        }
        assert_eq!(found.len(), counted.responses.len(), "{name}");
        // Running totals have no provider ids.
        let named = counted.responses.keys().filter(|id| !id.starts_with("file "));
        let lost: Vec<&String> = named.filter(|id| !found.contains(*id)).collect();
        assert!(lost.is_empty(), "{name}: {lost:?} of {found:?}");
        assert_pages(&bench, responses);
    }
}

fn assert_pages(bench: &Bench, whole: &[Value]) {
    let size = (whole.len() / 3).max(1).to_string();
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let mut options = vec!["--explain", "--limit", size.as_str()];
        options.extend(cursor.as_deref().into_iter().flat_map(|cursor| ["--cursor", cursor]));
        let page = usage(bench, &options);
        pages.extend(list(&page, "responses").iter().cloned());
        cursor = text(&page["next_cursor"]);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(pages, whole);
}
