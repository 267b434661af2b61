//! Every home as documents and tables: nothing is missing, and nothing is counted twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{export, html, tables};
use annals_testkit::Bench;
use annals_testkit::files::files_below;
use annals_testkit::homes::ClientHome;

annals_testkit::over_homes! { documents_contain_every_step_and_edit, tables_count_like_the_program }

fn synced(home: &ClientHome) -> Bench {
    let bench = Bench::with_home(home.source, &home.path);
    bench.sync_of(home.source);
    bench
}

fn documents_contain_every_step_and_edit(homes: &[ClientHome]) {
    let (mut edits, mut sections) = (0, 0);
    for home in homes {
        let bench = synced(home);
        let sessions = bench.sessions();
        if sessions.is_empty() {
            continue;
        }
        sections += sub_agents_are_sections(&bench, &sessions);
        let json = export(&bench, "json", &["--all"]);
        let md = export(&bench, "md", &["--all"]);
        let pages = export(&bench, "html", &["--all"]);
        let index = html::read(&fs::read_to_string(pages.join("index.html")).unwrap(), "index.html");
        assert_eq!(index.links.len(), sessions.len(), "{home:?}");
        let documents: Vec<_> =
            files_below(&json).into_iter().filter(|path| is_document(path, "json")).collect();
        assert_eq!(documents.len(), sessions.len(), "{home:?}");
        for path in documents {
            let relative = path.strip_prefix(&json).unwrap().with_extension("html");
            let document: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let messages = document["messages"].as_array().unwrap();
            let what = format!("{} of {home:?}", relative.display());
            assert!(index.links.iter().any(|link| Path::new(link) == relative), "{what} is not in the index");
            let page = html::read(&fs::read_to_string(pages.join(&relative)).unwrap(), &what);
            let text = fs::read_to_string(md.join(relative.with_extension("md"))).unwrap();
            for link in page.links.iter().filter(|link| link.ends_with(".html")) {
                assert!(pages.join(&relative).parent().unwrap().join(link).is_file(), "{what}: {link}");
            }
            for message in messages {
                let id = message["id"].as_str().unwrap();
                assert!(page.ids.contains(&format!("m-{id}")), "{what}: no step {id}");
                assert!(text.contains(&format!("<a id=\"m-{id}\"></a>")), "{what}: no step {id} in Markdown");
                for line in edited_lines(message) {
                    edits += 1;
                    let line = line.trim_start_matches(['+', '-', '>', ' ']).trim();
                    assert!(text.contains(line), "{what}: Markdown lacks {line:?}");
                    assert!(page.text.contains(line), "{what}: HTML lacks {line:?}");
                }
            }
        }
    }
    assert!(sections > 2, "only {sections} sub-agents are sections");
    assert!(edits > 20, "only {edits} lines of edits were looked for");
}

/// One file has the sub-agents of its session, and leads to them; returns how many.
fn sub_agents_are_sections(bench: &Bench, sessions: &[Value]) -> usize {
    let agents: Vec<&Value> =
        sessions.iter().filter(|session| session["parent_kind"] == "sub_agent").collect();
    let Some(parent) = agents.first().and_then(|agent| agent["parent_session_id"].as_str()) else { return 0 };
    if !sessions.iter().any(|session| session["session_id"] == parent) {
        return 0;
    }
    let document = |format: &str| {
        let ran = bench.run(&["export", parent, "--format", format, "--to", "-"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let (page, text) = (html::read(&document("html"), parent), document("md"));
    let own = agents.iter().filter(|agent| agent["parent_session_id"] == parent);
    let own: Vec<&str> = own.map(|agent| agent["session_id"].as_str().unwrap()).collect();
    for id in &own {
        let section = format!("session-{}", annals_core::in_address(id));
        assert!(page.ids.contains(&section), "no section of {id}");
        assert!(page.links.contains(&format!("#{section}")), "no link to {id}");
        assert!(text.contains(&format!("<a id=\"{section}\"></a>\n\n# Sub-agent: ")), "{text}");
    }
    own.len()
}

fn is_document(path: &Path, extension: &str) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden && path.extension().is_some_and(|found| found == extension)
}

/// Lines that successful edits of a step wrote or removed, by the arguments that clients give them.
fn edited_lines(message: &Value) -> Vec<String> {
    let blocks = message["blocks"].as_array().unwrap();
    let mut lines = Vec::new();
    for (at, block) in blocks.iter().enumerate().filter(|(_, block)| block["kind"] == "edit") {
        let has_failed = blocks.get(at + 1).is_none_or(|result| result["ok"] == false);
        if has_failed {
            continue;
        }
        let mut texts = Vec::new();
        gather(&block["input"], "", &mut texts);
        for (is_patch, text) in texts {
            let own = text.lines().filter(|line| !is_patch || line.starts_with(['+', '-']));
            let shown = own.filter(|line| !line.contains("[secret:") && !line.trim().is_empty());
            lines.extend(
                shown.filter(|line| line.chars().all(|letter| !letter.is_control())).map(str::to_owned),
            );
        }
    }
    lines.retain(|line| !line.trim_start_matches(['+', '-', '>', ' ']).trim().is_empty());
    lines
}

fn gather(value: &Value, name: &str, texts: &mut Vec<(bool, String)>) {
    const WRITTEN: [&str; 6] = ["new_string", "old_string", "content", "file_text", "newString", "oldString"];
    match value {
        Value::String(text) if text.contains("*** Begin Patch") => texts.push((true, text.clone())),
        Value::String(text) if WRITTEN.contains(&name) => texts.push((false, text.clone())),
        Value::Array(items) => items.iter().for_each(|item| gather(item, name, texts)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| gather(field, name, texts)),
        _ => {}
    }
}

fn tables_count_like_the_program(homes: &[ClientHome]) {
    let mut counted: BTreeMap<String, i64> = BTreeMap::new();
    for home in homes {
        let bench = synced(home);
        let sessions = bench.sessions();
        if sessions.is_empty() {
            continue;
        }
        let folder = export(&bench, "parquet", &["--all"]);
        let rows = tables::read(&folder);
        for (table, list) in &rows {
            *counted.entry(table.clone()).or_default() += list.len() as i64;
        }
        let empty = Vec::new();
        let of = |table: &str| rows.get(table).unwrap_or(&empty);
        let sum = |list: &[tables::Row], name: &str| list.iter().map(|row| row.number(name)).sum::<i64>();
        let listed = |name: &str| sessions.iter().map(|session| session[name].as_i64().unwrap()).sum::<i64>();
        assert_eq!(of("sessions").len(), sessions.len(), "{home:?}");
        for name in ["message_count", "user_message_count", "assistant_message_count", "tool_call_count"] {
            assert_eq!(sum(of("sessions"), name), listed(name), "{name} of {home:?}");
        }
        let counts = |table: &str| of(table).iter().filter(|row| row.is("is_counted")).count() as i64;
        assert_eq!(counts("messages"), listed("message_count"), "{home:?}");
        assert_eq!(counts("tool_calls"), listed("tool_call_count"), "{home:?}");
        let usage: Value =
            serde_json::from_str(&bench.run(&["usage", "--days", "all", "--json"]).stdout).unwrap();
        let total = &usage["total"];
        assert_eq!(of("usage").len() as i64, total["response_count"].as_i64().unwrap(), "{home:?}");
        for name in ["input", "output", "cache_read", "cache_write", "reasoning", "total"] {
            let column = format!("{name}_tokens");
            assert_eq!(
                sum(of("usage"), &column),
                total["tokens"][name].as_i64().unwrap(),
                "{name} of {home:?}"
            );
            let by_session =
                sessions.iter().map(|session| session["tokens"][name].as_i64().unwrap()).sum::<i64>();
            assert_eq!(sum(of("sessions"), &column), by_session, "{name} of {home:?}");
        }
        // Costs are integers of 10⁻¹² dollars.
        let cost = of("usage").iter().map(|row| row.number("cost_usd")).sum::<i64>() as f64 / 1e12;
        let expected = total["cost_usd"].as_f64().unwrap_or(0.0);
        assert!((cost - expected).abs() < 1e-6, "{cost} and {expected} of {home:?}");
        let responses: BTreeSet<_> = of("usage").iter().map(|row| row.text("response_id")).collect();
        assert_eq!(responses.len(), of("usage").len(), "a response is there twice: {home:?}");
        let library: Value = serde_json::from_str(&bench.run(&["library", "--json"]).stdout).unwrap();
        let in_effect = library["items"].as_array().map_or(0, Vec::len);
        assert!(of("authored_items").len() >= in_effect, "{home:?}");
    }
    for table in ["sessions", "messages", "tool_calls", "usage", "file_touches", "authored_items"] {
        assert!(counted.get(table).is_some_and(|count| *count > 5), "{table}: {counted:?}");
    }
}
