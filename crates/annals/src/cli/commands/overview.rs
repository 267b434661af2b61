//! `annals` alone, on a terminal: what there is, and three commands that are useful now.

use serde_json::json;

use super::sources;
use crate::cli::{Context, Outcome, now};
use crate::view::SourceCard;
use crate::view::format::{cost, counted, duration, number, size};
use annals_core::{Calendar, Result, Time, current_period};
use annals_store::Store;

/// A command, and what it is good for.
type Advice = (&'static str, &'static str);

/// Something was certainly used since then.
const STALE: i64 = 24 * 3_600 * 1_000_000;

pub fn run(context: &mut Context) -> Result<Outcome> {
    let cards = sources::all(context)?;
    let Some(store) = context.archive()? else {
        if context.json {
            context.output.json(&json!({"archive": null, "next": ["annals up"]}))?;
            return Ok(Outcome::Done);
        }
        let found: Vec<&str> =
            cards.iter().filter(|card| !card.is_absent()).map(|card| card.provider_label).collect();
        let found = if found.is_empty() { "no assistant's files yet".to_owned() } else { found.join(", ") };
        context.output.line(format!("No archive yet. Found on this machine: {found}."))?;
        return advise(
            context,
            &[
                ("annals up", "capture everything and open the web UI"),
                ("annals sources --all", "list what can be captured, and how to set it up"),
                ("annals help", "list all verbs"),
            ],
        );
    };
    let facts = facts(context, &store)?;
    let sessions: i64 = cards.iter().map(|card| card.session_count).sum();
    if context.json {
        context.output.json(&json!({
            "archive": context.config.data_dir.join("annals.db"),
            "session_count": sessions,
            "last_captured_at": facts.captured.map(Time::rfc3339),
            "month_usd": facts.month,
            "today_usd": facts.today,
            "next": next(&cards, &facts).map(|(command, _)| command),
        }))?;
        return Ok(Outcome::Done);
    }
    let used: Vec<&SourceCard> = cards.iter().filter(|card| card.session_count > 0).collect();
    let names: Vec<String> =
        used.iter().map(|card| format!("{} {}", card.provider_label, number(card.session_count))).collect();
    let bytes: i64 = cards.iter().map(|card| card.bytes).sum();
    let sessions = context.output.strong(&counted(sessions, "session"));
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    context.output.line(format!("{sessions}{names} · {} archived", size(bytes)))?;
    context.output.line(match facts.age() {
        Some(age) if age.is_zero() => "last capture just now".to_owned(),
        Some(age) => format!("last capture {} ago", duration(age)),
        None => "nothing captured yet".to_owned(),
    })?;
    let [month, today] = [facts.month, facts.today].map(|dollars| cost(Some(dollars.unwrap_or(0.0))));
    context.output.line(format!("{month} this month, {today} today (estimated)"))?;
    let next = next(&cards, &facts);
    advise(context, &next)
}

struct Facts {
    captured: Option<Time>,
    month: Option<f64>,
    today: Option<f64>,
}

impl Facts {
    fn age(&self) -> Option<std::time::Duration> {
        let age = now().micros().saturating_sub(self.captured?.micros());
        // Minutes are exact enough.
        Some(std::time::Duration::from_secs(u64::try_from(age).unwrap_or(0) / 60_000_000 * 60))
    }
}

fn facts(context: &Context, store: &Store) -> Result<Facts> {
    let door = context.door(store)?;
    let view = context.view(store, &door);
    let spent = |calendar: Calendar| -> Result<Option<f64>> {
        let (from, to) = current_period(calendar, now())?.bounds()?;
        view.cost_between(from, to)
    };
    let captured = view.last_scanned()?.as_deref().and_then(Time::parse);
    Ok(Facts { captured, month: spent(Calendar::Month)?, today: spent(Calendar::Day)? })
}

/// What is most useful in this state comes first.
fn next(cards: &[SourceCard], facts: &Facts) -> [Advice; 3] {
    let is_stale = facts.captured.is_none_or(|at| now().micros().saturating_sub(at.micros()) > STALE);
    let mut advice: Vec<Advice> = Vec::new();
    if is_stale {
        advice.push(("annals sync", "capture what is new"));
    }
    if cards.iter().any(|card| card.gaps_open > 0) {
        advice.push(("annals gaps", "see what could not be fetched"));
    }
    if cards.iter().all(|card| card.session_count == 0) {
        advice.push(("annals sources --all", "list what can be captured, and how to set it up"));
    }
    advice.extend([
        ("annals resume", "continue a session where it ended"),
        ("annals search WORDS", "find what was said, done and changed"),
        ("annals week", "see what was done this week"),
    ]);
    [advice[0], advice[1], advice[2]]
}

fn advise(context: &mut Context, advice: &[Advice]) -> Result<Outcome> {
    let width = advice.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    context.output.line("")?;
    for (command, reason) in advice {
        let command = context.output.strong(&format!("{command:<width$}"));
        context.output.line(format!("  {command}  {reason}"))?;
    }
    Ok(Outcome::Done)
}
