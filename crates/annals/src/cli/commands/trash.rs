//! `annals trash`: what was forgotten with a delay; it can be brought back, or removed at once.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::ui::confirm::confirm;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Account, Lock, empty_trash, finish_forgetting, take_from_trash};
use crate::view::format::{number, plural, size};
use annals_core::{Result, Time};
use annals_store::ForgettingRow;

#[derive(Args)]
pub struct TrashArguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// List what is in the trash
    List,
    /// Bring an entry back
    Restore {
        /// The number of the entry
        id: i64,
    },
    /// Forget an entry, or all of them, for good
    Empty {
        /// The number of the entry
        id: Option<i64>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub fn run(context: &mut Context, options: &TrashArguments) -> Result<Outcome> {
    match &options.action {
        None | Some(Action::List) => list(context),
        Some(Action::Restore { id }) => restore(context, *id),
        Some(Action::Empty { id, yes }) => empty(context, *id, *yes),
    }
}

fn list(context: &mut Context) -> Result<Outcome> {
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let entries: Vec<(ForgettingRow, Account)> = store
        .forgettings()?
        .into_iter()
        .filter(|row| row.expires_at.is_some())
        .map(|row| {
            let account = serde_json::from_str(&row.account).unwrap_or_default();
            (row, account)
        })
        .collect();
    let titles = |account: &Account| -> Vec<String> {
        account.titles.iter().map(|title| door.show(title).to_string()).collect()
    };
    if context.json {
        let entries: Vec<Value> = entries
            .iter()
            .map(|(row, account)| {
                json!({
                    "id": row.id, "reason": row.reason, "forgotten_at": row.at.rfc3339(),
                    "expires_at": row.expires_at.map(Time::rfc3339), "sessions": account.sessions,
                    "bytes": account.bytes, "titles": titles(account),
                })
            })
            .collect();
        context.output.json(&json!({"entries": entries, "next_cursor": null}))?;
        return Ok(Outcome::Done);
    }
    if entries.is_empty() {
        context.output.line("the trash is empty")?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|(row, account)| {
            vec![
                row.id.to_string(),
                row.reason.clone(),
                row.expires_at.map(time::local).unwrap_or_default(),
                number(account.sessions),
                size(account.bytes),
                titles(account).join("; "),
            ]
        })
        .collect();
    let columns = [
        Column::number("entry"),
        Column::text("reason").leave_out(2),
        Column::text("kept until"),
        Column::number("sessions"),
        Column::number("size").leave_out(1),
        Column::text("titles").cut_end(16),
    ];
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}

fn restore(context: &mut Context, id: i64) -> Result<Outcome> {
    let home = context.config.data_dir.clone();
    let _lock = Lock::take(&home, "trash")?;
    if context.archive_or_new()?.has_unfinished_forgetting(now())? {
        finish_forgetting(&home, now())?;
    }
    take_from_trash(&home, id, now())?;
    if context.json {
        context.output.json(&json!({"restored": id}))?;
    } else {
        context.output.line(format!("entry {id} is back"))?;
    }
    Ok(Outcome::Done)
}

fn empty(context: &mut Context, id: Option<i64>, yes: bool) -> Result<Outcome> {
    let home = context.config.data_dir.clone();
    let _lock = Lock::take(&home, "trash")?;
    if !confirm(context, "Forget what is in the trash for good?", yes)? {
        return Ok(Outcome::Stopped);
    }
    let count = empty_trash(&home, id, now())?;
    if context.json {
        context.output.json(&json!({"emptied": count}))?;
    } else {
        context.output.line(format!(
            "{} forgotten for good",
            plural(i64::try_from(count).unwrap_or(0), "entry", "entries")
        ))?;
    }
    Ok(if count > 0 { Outcome::Done } else { Outcome::Nothing })
}
