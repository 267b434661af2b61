//! What clients say that responses and sessions cost: it wins over the price table, and every sum agrees with it.

use serde_json::json;

use crate::claude::{FOLDER, ONE, TWO, prompt_row, row, session, write};
use crate::usage::{Sum, answered, assert_cost, list, usage};
use annals_testkit::Bench;
use annals_testkit::codex::text_of;
use annals_testkit::fixtures;
use annals_testkit::homes::{ClientHome, regular};

annals_testkit::over_homes! { costs_of_sessions_are_the_sums_of_their_usage }

fn costs_of_sessions_are_the_sums_of_their_usage(homes: &[ClientHome]) {
    let mut reported = 0;
    for ClientHome { source, path: home } in regular(homes) {
        let name = home.display().to_string();
        let bench = Bench::with_home(source, home);
        bench.sync();
        assert_costs_agree(&bench, &name);
        reported += usage(&bench, &["--explain"])["responses"].as_array().map_or(0, |list| {
            list.iter().filter(|response| response["billing_source"] == "reported").count()
        });
    }
    assert!(reported > 5, "{reported} responses have a cost of their client");
}

fn assert_costs_agree(bench: &Bench, name: &str) {
    let report = usage(bench, &["--by", "session"]);
    let rows = list(&report, "rows");
    let mut total = Sum::default();
    for session in bench.sessions() {
        let id = &session["session_id"];
        let row = rows.iter().find(|row| row["key"] == *id && row["source"] == session["source"]);
        let whole = row.filter(|row| list(row, "unpriced_models").is_empty());
        // Without a response, nothing was spent.
        let cost = match row {
            Some(_) => whole.and_then(|row| row["cost_usd"].as_f64()),
            None => session["cost_usd"].as_f64().filter(|cost| *cost == 0.0),
        };
        assert_cost(&session["cost_usd"], cost, &format!("{name}: {id}"));
        let billing = match (row, cost) {
            (_, None) => "unknown",
            (Some(row), Some(_)) => row["billing_source"].as_str().unwrap(),
            (None, Some(_)) => "reported",
        };
        assert_eq!(session["billing_source"], billing, "{name}: {session}");
        if let Some(row) = row {
            total.add([0; 6], row["response_count"].as_i64().unwrap(), row["cost_usd"].as_f64());
        }
    }
    let cost_of = |sum: &Sum| Sum { tokens: [0; 6], ..sum.clone() };
    for by in ["session", "day", "model", "project", "source"] {
        let report = usage(bench, &["--by", by]);
        cost_of(&Sum::of_rows(list(&report, "rows"))).assert_is(&total, &format!("{name}: rows by {by}"));
        cost_of(&Sum::of_rows([&report["total"]])).assert_is(&total, &format!("{name}: {by}"));
    }
    let explained = usage(bench, &["--explain"]);
    let counted = list(&explained, "responses").iter().filter(|response| response["copied"] == false);
    cost_of(&Sum::of_rows(counted)).assert_is(&total, &format!("{name}: explained"));
}

/// The last line of a session that says what all of it cost.
fn total_row(id: &str, number: u32, dollars: f64) -> String {
    row(id, number, "cost-state", json!({"totalCostUSD": dollars, "hasUnknownModelCost": false}))
}

#[test]
fn the_cost_of_a_session_is_divided_among_its_responses() {
    let bench = Bench::new();
    let lines = [
        prompt_row(ONE, 1, "Oil the gears."),
        answered(ONE, 2, "claude-haiku-4-5", [100, 0, 0, 0, 0]),
        answered(ONE, 3, "claude-haiku-4-5", [300, 0, 0, 0, 0]),
        total_row(ONE, 4, 0.5),
    ];
    write(&bench, FOLDER, ONE, &text_of(&lines));
    bench.sync();
    assert_eq!(session(&bench, ONE)["billing_source"], "reported");
    assert_cost(&session(&bench, ONE)["cost_usd"], Some(0.5), "the figure of the client");
    assert_costs_agree(&bench, "one session");
    let explained = usage(&bench, &["--explain"]);
    let costs: Vec<f64> =
        list(&explained, "responses").iter().map(|response| response["cost_usd"].as_f64().unwrap()).collect();
    assert_eq!(costs, [0.125, 0.375]);
    // Its steps and the outline of its prompts say the same.
    let shown = bench.json(&["show", ONE, "--full"]);
    let steps = shown["messages"].as_array().unwrap().iter().filter_map(|step| step["cost_usd"].as_f64());
    assert!((steps.sum::<f64>() - 0.5).abs() < 1e-6, "{shown}");
    // Another session, whose figure is older than its last answer, is estimated.
    let lines = [
        prompt_row(TWO, 1, "Wind it."),
        total_row(TWO, 2, 9.0),
        answered(TWO, 5, "claude-haiku-4-5", [1_000_000, 0, 0, 0, 0]),
    ];
    write(&bench, FOLDER, TWO, &text_of(&lines));
    bench.sync();
    assert_costs_agree(&bench, "two sessions");
    assert_cost(&usage(&bench, &[])["total"]["cost_usd"], Some(1.5), "half a dollar and a million tokens");
    assert_eq!(usage(&bench, &[])["total"]["billing_source"], "estimated");
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_costs_agree(&bench, "after a rebuild");
}

#[test]
fn a_response_costs_what_the_first_clients_wrote_with_it() {
    let bench = Bench::new();
    let answer = answered(ONE, 2, "claude-haiku-4-5", [100, 0, 0, 0, 0]);
    let answer = answer.replacen('{', r#"{"costUSD":0.25,"#, 1);
    write(&bench, FOLDER, ONE, &text_of(&[prompt_row(ONE, 1, "Oil the gears."), answer]));
    bench.sync();
    assert_cost(&session(&bench, ONE)["cost_usd"], Some(0.25), "one response");
    assert_costs_agree(&bench, "one response");
}

#[test]
fn every_sum_has_the_costs_that_clients_wrote() {
    // Cline reports no cost for a sub-agent.
    for (source, case, dollars, is_whole) in [
        ("pi", "lines", 0.010515, true),
        ("opencode", "lines", 0.024, true),
        ("opencode", "files", 0.022, true),
        ("cline", "lines", 0.01573, false),
        ("cline", "older", 0.007, true),
    ] {
        let bench = fixtures::synced(source, &fixtures::case(source, case));
        let report = usage(&bench, &["--by", "source"]);
        let [row] = list(&report, "rows") else { panic!("{report}") };
        let billing = if is_whole { "reported" } else { "estimated" };
        assert_eq!(row["billing_source"], billing, "{source} {case}: {report}");
        assert_cost(&row["cost_usd"], Some(dollars), &format!("{source} {case}"));
    }
}
