//! `annals statusline`: what today and this session cost, for the status line of a client or a prompt.

use std::io::{IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use crate::cli::{Context, Outcome, now};
use crate::view::View;
use crate::view::format::cost;
use annals_core::{Calendar, Result, current_period};

#[derive(Args)]
#[command(
    after_help = "Reads the JSON that a client passes to its status line, if there is any on standard input: the session and \
                        its cost according to the client. Without it, only today is shown.\n\n\
                        Captures nothing: cost that the client reports beyond the archive counts as today's."
)]
pub struct StatuslineArguments {}

/// What a client says; more is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Given {
    session_id: Option<String>,
    cost: Option<GivenCost>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GivenCost {
    total_cost_usd: Option<f64>,
}

/// Longer documents are not read.
const LONGEST: u64 = 1 << 20;
/// Whoever gives something gives it at once; a pipe that nobody writes to is not waited for.
const PATIENCE: Duration = Duration::from_millis(250);

pub fn run(context: &mut Context, _options: &StatuslineArguments) -> Result<Outcome> {
    let given = given();
    let reported =
        given.cost.and_then(|cost| cost.total_cost_usd).filter(|cost| cost.is_finite() && *cost >= 0.0);
    let (mut today, mut session) = (None, reported);
    if let Some(store) = context.archive()? {
        let door = context.door(&store)?;
        let view = context.view(&store, &door);
        (today, session) = view.at_once(|| costs(&view, given.session_id.as_deref(), reported))?;
    }
    if context.json {
        context.output.json(&json!({"today_usd": today, "session_usd": session}))?;
        return Ok(Outcome::Done);
    }
    let mut parts = vec![format!("{} today", cost(Some(today.unwrap_or(0.0))))];
    parts.extend(session.map(|dollars| format!("{} session", cost(Some(dollars)))));
    context.output.line(parts.join(" · "))?;
    Ok(Outcome::Done)
}

/// Today's cost and the session's. What the client reports beyond what is archived of the session was spent just now.
fn costs(
    view: &View<'_>,
    session: Option<&str>,
    reported: Option<f64>,
) -> Result<(Option<f64>, Option<f64>)> {
    let (from, to) = current_period(Calendar::Day, now())?.bounds()?;
    let today = view.cost_between(from, to)?;
    let archived = session.map(|id| view.cost_of_session(id)).transpose()?.flatten();
    let new = reported.map_or(0.0, |reported| (reported - archived.unwrap_or(0.0)).max(0.0));
    let today = if today.is_none() && new == 0.0 { None } else { Some(today.unwrap_or(0.0) + new) };
    Ok((today, reported.or(archived)))
}

fn given() -> Given {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Given::default();
    }
    let (sender, receiver) = mpsc::channel();
    // If the time is over, the process ends while this thread still waits.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = stdin.lock().take(LONGEST).read_to_string(&mut text);
        let _ = sender.send(read.map(|_| text));
    });
    let text = receiver.recv_timeout(PATIENCE).ok().and_then(std::result::Result::ok).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
