//! Tokens and cost: every response counts once, at the price of its model, day and length, however it arrived.

mod analytics;
mod costs;
mod real;

use serde_json::{Value, json};

use crate::claude::{FOLDER, ONE, SOURCE, TWO, path_of, prompt_row, row, session, talk, write};
use annals_testkit::Bench;
use annals_testkit::checks::assert_same;
use annals_testkit::codex::{ID, meta, rollout, text_of};
use annals_testkit::files::append;

const FORK: &str = "0199a1b2-0000-7000-8000-00000000000b";

/// Tokens as reported: input, output, cache read, cache write, reasoning, total.
pub type Counts = [i64; 6];

pub fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Tokens, number of responses, and the cost if a price is known.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    pub tokens: Counts,
    pub responses: i64,
    pub cost: Option<f64>,
}

impl Sum {
    pub fn add(&mut self, tokens: Counts, responses: i64, cost: Option<f64>) {
        self.tokens.iter_mut().zip(tokens).for_each(|(sum, count)| *sum += count);
        self.responses += responses;
        self.cost = cost.map_or(self.cost, |cost| Some(self.cost.unwrap_or(0.0) + cost));
    }

    pub fn of_rows<'r>(rows: impl IntoIterator<Item = &'r Value>) -> Sum {
        let mut sum = Sum::default();
        for row in rows {
            sum.add(tokens_of(row), row["response_count"].as_i64().unwrap_or(1), row["cost_usd"].as_f64());
        }
        sum
    }

    #[track_caller]
    pub fn assert_is(&self, other: &Sum, what: &str) {
        assert_eq!((self.tokens, self.responses), (other.tokens, other.responses), "{what}");
        assert_close(&json!(self.cost), other.cost, self.responses, what);
    }
}

#[track_caller]
pub fn assert_cost(found: &Value, expected: Option<f64>, what: &str) {
    assert_close(found, expected, 1, what);
}

/// Each figure has six decimals, so a sum of them may be off by half a millionth for each.
#[track_caller]
fn assert_close(found: &Value, expected: Option<f64>, figures: i64, what: &str) {
    let close = match (found.as_f64(), expected) {
        (Some(found), Some(expected)) => (found - expected).abs() < 0.501e-6 * (figures + 1) as f64,
        (None, None) => found.is_null(),
        (Some(_), None) | (None, Some(_)) => false,
    };
    assert!(close, "{what}: {found} is not {expected:?}");
}

pub fn tokens_of(row: &Value) -> Counts {
    ["input", "output", "cache_read", "cache_write", "reasoning", "total"]
        .map(|kind| row["tokens"][kind].as_i64().unwrap())
}

pub fn list<'v>(answer: &'v Value, name: &str) -> &'v [Value] {
    answer[name].as_array().unwrap()
}

/// The report for all days; exit code 1 if and only if there are no rows.
pub fn usage(bench: &Bench, options: &[&str]) -> Value {
    let ran = bench.run(&[&["usage", "--days", "all", "--json"], options].concat());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let rows = answer.get("rows").or(answer.get("responses")).unwrap();
    assert_eq!(ran.code, i32::from(rows.as_array().unwrap().is_empty()), "{options:?} {}", ran.stderr);
    answer
}

/// All sums in one text.
fn all_sums(bench: &Bench) -> String {
    let sums = ["day", "model", "project", "session", "source"].map(|by| usage(bench, &["--by", by]));
    sums.map(|sum| serde_json::to_string_pretty(&sum).unwrap()).join("\n")
}

fn dated(date: &str, kind: &str, payload: &Value) -> String {
    json!({"timestamp": format!("{date}T10:00:00.000Z"), "type": kind, "payload": payload}).to_string()
}

/// A turn of a model and its one response, after `before` tokens: input including cached, cached, output.
fn turn(date: &str, model: &str, before: i64, [input, cached, output]: [i64; 3]) -> [String; 2] {
    let last = json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output});
    let total = json!({"input_tokens": before + input});
    let info = json!({"total_token_usage": total, "last_token_usage": last});
    [
        dated(date, "turn_context", &json!({"model": model, "cwd": "/home/ada/engine"})),
        dated(date, "event_msg", &json!({"type": "token_count", "info": info})),
    ]
}

/// An answer of one line: input, output, cache read, cache write, and how much of that is for an hour.
pub fn answered(session: &str, number: u32, model: &str, counts: [i64; 5]) -> String {
    let [input, output, read, written, hour] = counts;
    let split = json!({"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour});
    let message = json!({
        "model": model, "id": format!("msg_{number}"), "type": "message", "role": "assistant",
        "content": [{"type": "text", "text": "Done."}],
        "usage": {
            "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "cache_creation": split,
        },
    });
    row(session, number, "assistant", json!({"requestId": format!("req_{number}"), "message": message}))
}

fn codex_bench(lines: &[String]) -> Bench {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &[&[meta(ID)], lines].concat());
    bench.sync();
    bench
}

fn claude_bench(lines: &[String]) -> Bench {
    let bench = Bench::new();
    write(&bench, FOLDER, ONE, &text_of(&[&[prompt_row(ONE, 1, "Oil the gears.")], lines].concat()));
    bench.sync();
    bench
}

/// The row of a sum with that key.
fn row_of(report: &Value, key: &str) -> Value {
    let row = list(report, "rows").iter().find(|row| row["key"] == key);
    row.unwrap_or_else(|| panic!("no {key} in {report}")).clone()
}

#[track_caller]
fn assert_sums_like_fresh(bench: &Bench, source: &str) {
    let sums = all_sums(bench);
    let fresh = Bench::with_home(source, &bench.home_of(source));
    fresh.sync();
    assert_same(&sums, &all_sums(&fresh));
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_same(&sums, &all_sums(bench));
}

#[test]
fn a_fork_is_not_counted_twice() {
    let lines_of_turn = turn("2026-11-15", "gpt-5", 0, [1_000, 400, 100]);
    let bench = codex_bench(&lines_of_turn);
    let alone = usage(&bench, &["--by", "day"]);
    let mut lines = vec![meta(FORK).replace(r#""cwd""#, &format!(r#""forked_from_id":"{ID}","cwd""#))];
    lines.push(meta(ID));
    lines.extend(lines_of_turn);
    bench.transcript(&rollout(FORK), &lines);
    bench.sync();
    let only_copies = usage(&bench, &["--by", "day"]);
    assert_eq!(only_copies["excluded_copies"], 1);
    assert_eq!(only_copies["rows"], alone["rows"]);

    lines.push(dated("2026-11-15", "event_msg", &json!({"type": "user_message", "message": "go on"})));
    lines.extend(turn("2026-11-15", "gpt-5", 1_000, [2_000, 0, 10]));
    bench.transcript(&rollout(FORK), &lines);
    bench.sync();
    let report = usage(&bench, &["--by", "session"]);
    assert_eq!(tokens_of(&report["total"]), [2_600, 110, 400, 0, 0, 3_110]);
    assert_eq!(tokens_of(&row_of(&report, ID)), [600, 100, 400, 0, 0, 1_100]);
    assert_eq!(tokens_of(&row_of(&report, FORK)), [2_000, 10, 0, 0, 0, 2_010]);
    assert_cost(&report["total"]["cost_usd"], Some(0.0044), "two responses");
    let explained = usage(&bench, &["--explain", "--session", FORK]);
    let [copy, own] = list(&explained, "responses") else { panic!("{explained}") };
    assert_eq!((&copy["copied"], &copy["counted_in"]), (&true.into(), &ID.into()));
    assert_eq!((&own["copied"], &own["counted_in"]), (&false.into(), &Value::Null));
    assert_sums_like_fresh(&bench, "codex_cli");

    let bench = Bench::new();
    let copied: Vec<String> = talk(ONE).iter().map(|line| line.replace(ONE, TWO)).collect();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    write(
        &bench,
        FOLDER,
        TWO,
        &text_of(&[copied, vec![answered(TWO, 9, "claude-opus-4-5", [5; 5])]].concat()),
    );
    bench.sync();
    let report = usage(&bench, &["--by", "model"]);
    assert_eq!((&report["excluded_copies"], &report["total"]["response_count"]), (&2.into(), &3.into()));
    assert_sums_like_fresh(&bench, SOURCE);
}

#[test]
fn a_model_without_a_price_costs_nothing_known_and_is_named() {
    let unknown = turn("2026-11-15", "gpt-99-secret", 0, [10, 0, 5]);
    let bench = codex_bench(&unknown);
    let report = usage(&bench, &["--by", "model"]);
    for row in [&report["total"], &row_of(&report, "gpt-99-secret")] {
        assert_eq!((&row["cost_usd"], &row["billing_source"]), (&Value::Null, &"unknown".into()));
        assert_eq!(row["unpriced_models"], json!(["gpt-99-secret"]));
    }
    let listed = json!([{"model": "gpt-99-secret", "response_count": 1, "tokens": 15}]);
    assert_eq!(report["unpriced_models"], listed);
    let explained = usage(&bench, &["--explain"]);
    let response = &explained["responses"][0];
    assert_eq!((&response["cost_usd"], &response["price"]), (&Value::Null, &Value::Null));
    let ran = bench.run(&["usage", "--days", "all"]);
    assert!(ran.stderr.contains("no price for gpt-99-secret"), "{}", ran.stderr);

    // A partial sum of a session's cost would look like the total.
    let known = turn("2026-11-15", "gpt-5", 10, [1_000_000, 0, 0]);
    let bench = codex_bench(&[unknown, known].concat());
    let session = session(&bench, ID);
    assert_eq!((&session["cost_usd"], &session["billing_source"]), (&Value::Null, &"unknown".into()));
    let report = usage(&bench, &["--by", "model"]);
    assert_cost(&row_of(&report, "gpt-5")["cost_usd"], Some(1.25), "the priced model");
    assert_cost(&row_of(&report, "gpt-99-secret")["cost_usd"], None, "the other");
    assert_cost(&report["total"]["cost_usd"], Some(1.25), "what has a price");
    assert_eq!(report["unpriced_models"], listed);

    // Also without any model.
    let [_, response] = turn("2026-11-15", "", 0, [10, 0, 5]);
    let report = usage(&codex_bench(&[response]), &["--by", "model"]);
    assert_cost(&report["total"]["cost_usd"], None, "no model");
    assert_eq!(report["unpriced_models"][0]["model"], "unknown");
}

#[test]
fn a_long_prompt_has_the_price_of_long_prompts() {
    let at_limit = turn("2026-11-15", "gpt-5.4", 0, [272_000, 72_000, 1_000]);
    let above = turn("2026-11-15", "gpt-5.4", 272_000, [272_001, 72_001, 1_000]);
    let report = usage(&codex_bench(&at_limit), &[]);
    assert_cost(&report["total"]["cost_usd"], Some(0.5 + 0.018 + 0.015), "not above");
    let bench = codex_bench(&[at_limit, above].concat());
    let report = usage(&bench, &[]);
    assert_cost(&report["total"]["cost_usd"], Some(0.533 + 1.0 + 0.0360005 + 0.0225), "one of them above");

    // The prompt is everything that is sent, including cache reads and writes.
    let model = "claude-haiku-5-5";
    let at_limit = answered(ONE, 2, model, [10_000, 100, 40_000, 50_000, 20_000]);
    let above = answered(ONE, 3, model, [10_001, 100, 40_000, 50_000, 20_000]);
    let bench = claude_bench(&[at_limit, above]);
    let explained = usage(&bench, &["--explain"]);
    let [short, long] = list(&explained, "responses") else { panic!("{explained}") };
    assert_cost(&short["cost_usd"], Some(0.001 + 0.00005 + 0.0004 + 0.00375 + 0.004), "not above");
    assert_cost(&long["cost_usd"], Some(0.0050005 + 0.00025 + 0.002 + 0.01875 + 0.02), "above");
    assert_eq!(long["price"]["long"]["above"], 100_000);
    let both = short["cost_usd"].as_f64().unwrap() + long["cost_usd"].as_f64().unwrap();
    assert_cost(&usage(&bench, &[])["total"]["cost_usd"], Some(both), "sum");
}

#[test]
fn a_price_holds_from_its_day_on() {
    let dear = turn("2025-06-09", "o3", 0, [1_000_000, 500_000, 100_000]);
    let cheap = turn("2025-06-10", "o3", 1_000_000, [1_000_000, 500_000, 100_000]);
    let bench = codex_bench(&[dear, cheap].concat());
    let report = usage(&bench, &["--by", "day"]);
    assert_cost(&row_of(&report, "2025-06-09")["cost_usd"], Some(5.0 + 1.25 + 4.0), "before");
    assert_cost(&row_of(&report, "2025-06-10")["cost_usd"], Some(1.0 + 0.25 + 0.8), "after");
    assert_cost(&report["total"]["cost_usd"], Some(12.3), "both");
    let explained = usage(&bench, &["--explain"]);
    let from: Vec<&Value> =
        list(&explained, "responses").iter().map(|response| &response["price"]["from"]).collect();
    assert_eq!(from, ["2025-04-16", "2025-06-10"]);
}

#[test]
fn later_records_of_an_answer_take_the_place_of_earlier_ones() {
    let bench = Bench::new();
    let lines = talk(ONE);
    let path = write(&bench, FOLDER, ONE, "");
    let mut outputs = Vec::new();
    for line in &lines {
        append(&path, &format!("{line}\n"));
        bench.sync();
        outputs.push(usage(&bench, &[])["total"]["tokens"]["output"].as_i64().unwrap());
    }
    assert_eq!(outputs, [0, 1, 25, 25, 32]);
    assert_sums_like_fresh(&bench, SOURCE);
    let explained = usage(&bench, &["--explain"]);
    let ids: Vec<&Value> =
        list(&explained, "responses").iter().map(|response| &response["response_id"]).collect();
    assert_eq!(ids, ["msg_1_00000000000a", "msg_2_00000000000a"]);

    let (first, second) = (
        turn("2026-11-15", "gpt-5", 0, [1_000, 400, 100]),
        turn("2026-11-15", "gpt-5.1-codex", 1_000, [2_000, 400, 100]),
    );
    let bench = codex_bench(&first);
    // A total that did not move is a repetition.
    append(&bench.codex().join("sessions/2026/11/15").join(rollout(ID)), &text_of(&first));
    bench.sync();
    append(&bench.codex().join("sessions/2026/11/15").join(rollout(ID)), &text_of(&second));
    bench.sync();
    assert_eq!(tokens_of(&usage(&bench, &[])["total"]), [2_200, 200, 800, 0, 0, 3_200]);
    assert_sums_like_fresh(&bench, "codex_cli");
}

#[test]
fn a_later_record_may_be_of_another_day_and_length() {
    let bench = claude_bench(&[]);
    let path = path_of(&bench, FOLDER, ONE);
    let record = |counts: [i64; 5], moment: &str| {
        let mut record: Value = serde_json::from_str(&answered(ONE, 2, "claude-haiku-5-5", counts)).unwrap();
        record["timestamp"] = moment.into();
        format!("{record}\n")
    };
    append(&path, &record([90_000, 1, 0, 0, 0], "2026-11-14T23:59:59.000Z"));
    bench.sync();
    assert_cost(&usage(&bench, &[])["total"]["cost_usd"], Some(0.0090005), "so far");
    append(&path, &record([110_000, 1_000, 0, 0, 0], "2026-11-15T00:00:01.000Z"));
    bench.sync();
    let report = usage(&bench, &["--by", "day"]);
    assert_eq!((list(&report, "rows").len(), &report["total"]["response_count"]), (1, &1.into()));
    assert_cost(&report["total"]["cost_usd"], Some(0.055 + 0.0025), "the prompt is a long one");
    assert_sums_like_fresh(&bench, SOURCE);
}

#[test]
fn a_copy_counts_once_its_original_is_rewritten() {
    let bench = Bench::new();
    let copied: Vec<String> = talk(ONE).iter().map(|line| line.replace(ONE, TWO)).collect();
    write(&bench, FOLDER, ONE, &text_of(&talk(ONE)));
    write(
        &bench,
        FOLDER,
        TWO,
        &text_of(&[copied, vec![answered(TWO, 9, "claude-opus-4-5", [5; 5])]].concat()),
    );
    bench.sync();
    let before = usage(&bench, &["--by", "model"]);
    write(&bench, FOLDER, ONE, &text_of(&[prompt_row(ONE, 1, "Something else.")]));
    bench.sync();
    let after = usage(&bench, &["--by", "model"]);
    assert_eq!((&before["excluded_copies"], &after["excluded_copies"]), (&2.into(), &0.into()));
    assert_eq!(before["rows"], after["rows"]);
    assert_sums_like_fresh(&bench, SOURCE);
}

#[test]
fn an_answer_is_named_by_its_own_id_however_its_records_differ_in_length() {
    let lines = talk(ONE);
    let long = lines[1].replace("Oiling.", &"Oiling. ".repeat(500));
    let bench = claude_bench(&[long, lines[2].clone(), lines[4].clone()]);
    let explained = usage(&bench, &["--explain"]);
    let ids: Vec<&Value> =
        list(&explained, "responses").iter().map(|response| &response["response_id"]).collect();
    assert_eq!(ids, ["msg_1_00000000000a", "msg_2_00000000000a"]);
}

#[test]
fn rewritten_or_removed_transcripts_leave_correct_sums() {
    let bench = claude_bench(&[
        answered(ONE, 2, "claude-opus-4-5", [10, 20, 30, 40, 10]),
        answered(ONE, 3, "claude-sonnet-4-5", [10, 20, 30, 40, 10]),
    ]);
    write(&bench, FOLDER, ONE, &format!("{}\n", answered(ONE, 2, "claude-opus-4-5", [1, 2, 3, 4, 1])));
    bench.sync();
    assert_eq!(tokens_of(&usage(&bench, &[])["total"]), [1, 2, 3, 4, 0, 10]);
    assert_sums_like_fresh(&bench, SOURCE);
    let before = all_sums(&bench);
    std::fs::remove_file(path_of(&bench, FOLDER, ONE)).unwrap();
    bench.sync();
    assert_same(&before, &all_sums(&bench));

    let (first, second) = (
        turn("2026-11-14", "gpt-5", 0, [1_000, 400, 100]),
        turn("2026-11-15", "gpt-5.1-codex", 1_000, [2_000, 400, 100]),
    );
    let bench = codex_bench(&[first.clone(), second.clone()].concat());
    let whole = all_sums(&bench);
    // Truncating a file does not undo what was said.
    bench.transcript(&rollout(ID), &[&[meta(ID)], first.as_slice()].concat());
    bench.sync();
    assert_same(&whole, &all_sums(&bench));
    let path = bench.transcript(&rollout(ID), &[&[meta(ID)], second.as_slice()].concat());
    bench.sync();
    let report = usage(&bench, &["--by", "day"]);
    assert_eq!((list(&report, "rows").len(), &report["rows"][0]["key"]), (1, &"2026-11-15".into()));
    assert_sums_like_fresh(&bench, "codex_cli");
    let before = all_sums(&bench);
    std::fs::remove_file(path).unwrap();
    bench.sync();
    assert_same(&before, &all_sums(&bench));
}

#[test]
fn a_cost_the_client_wrote_counts_until_the_next_answer() {
    let state =
        |total: f64| json!({"type": "cost-state", "sessionId": ONE, "totalCostUSD": total}).to_string();
    let answers = [2, 3].map(|number| answered(ONE, number, "claude-opus-4-5", [1_000_000, 0, 0, 0, 0]));
    let billed = |lines: &[String]| {
        let session = session(&claude_bench(lines), ONE);
        (session["cost_usd"].as_f64(), session["billing_source"].as_str().unwrap().to_owned())
    };
    let [first, second] = &answers;
    let last_wins = [first.clone(), state(4.0), state(4.5)];
    assert_eq!(billed(&last_wins), (Some(4.5), "reported".to_owned()));
    let stale = [first.clone(), state(4.5), second.clone()];
    assert_eq!(billed(&stale), (Some(10.0), "estimated".to_owned()));
    let unsure = state(4.5).replace('}', r#","hasUnknownModelCost":true}"#);
    let partial = [first.clone(), unsure];
    assert_eq!(billed(&partial), (Some(5.0), "estimated".to_owned()));
}
