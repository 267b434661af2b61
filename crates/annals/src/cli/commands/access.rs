//! `annals access`: who sees the sessions of members, and who read them: of this archive, or of one's own on a hub.

use clap::Args;
use serde_json::Value;

use super::push::{HubArguments, address_of};
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome};
use crate::collect::Hub;
use crate::view::{AccessQuery, Door, Paging};
use annals_core::{Error, Result, Time, in_address};

#[derive(Args)]
#[command(
    after_help = "Without an address, this archive is the hub, and all of its members are shown. With the address of a hub, members see \
                  who reads their own sessions there, and admins those of their organisation. The log has conversations that were \
                  opened, passages that searches showed, and records, once a day each, for two years; it does not have what the owner \
                  of the hub does on the command line."
)]
pub struct AccessArguments {
    #[command(flatten)]
    hub: HubArguments,
    /// Show only sessions of this member
    #[arg(long, value_name = "NAME")]
    member: Option<String>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Continue after a page: its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

pub fn run(context: &mut Context, options: &AccessArguments) -> Result<Outcome> {
    let document =
        if options.hub.names_hub() { of_hub(context, options)? } else { of_archive(context, options)? };
    let is_empty = document["accesses"].as_array().is_none_or(Vec::is_empty);
    if context.json {
        context.output.json(&document)?;
    } else {
        print(context, &document)?;
    }
    Ok(if is_empty && options.cursor.is_some() { Outcome::Nothing } else { Outcome::Done })
}

fn of_archive(context: &Context, options: &AccessArguments) -> Result<Value> {
    let store = context.archive_or_empty()?;
    let door = context.door(&store)?;
    let page = Paging { limit: i64::from(options.limit), cursor: options.cursor.clone() };
    let query = AccessQuery { member: options.member.clone(), page };
    Ok(serde_json::to_value(context.view(&store, &door).accesses(&query)?)?)
}

fn of_hub(context: &Context, options: &AccessArguments) -> Result<Value> {
    let mut hub = Hub::at(&address_of(&context.config, &options.hub)?)?;
    let mut path = format!("/api/v1/access?limit={}", options.limit);
    for (name, value) in [("member", &options.member), ("cursor", &options.cursor)] {
        if let Some(value) = value {
            path += &format!("&{name}={}", in_address(value));
        }
    }
    let answer: Value = hub.get(&path)?;
    match answer["visible_to"].is_array() {
        true => Ok(answer),
        false => Err(Error::new("the hub does not answer as one").hint("update annals there")),
    }
}

fn print(context: &mut Context, document: &Value) -> Result<()> {
    let door = Door::masking_alone();
    let text = |value: &Value| value.as_str().map(|text| door.show(text).to_string());
    let owner = || "owner of the hub".to_owned();
    let list = |name: &str| document[name].as_array().cloned().unwrap_or_default();
    context.output.line("visible to")?;
    for viewer in list("visible_to") {
        let role = match (text(&viewer["name"]), text(&viewer["role"]), text(&viewer["organisation"])) {
            (None, _, _) => owner(),
            (Some(name), Some(role), Some(organisation)) if role == "admin" => {
                format!("{name} ({role} of {organisation})")
            }
            (Some(name), role, _) => format!("{name} ({})", role.unwrap_or_default()),
        };
        context.output.line(format!("  {role}"))?;
    }
    let accesses = list("accesses");
    context.output.line("")?;
    if accesses.is_empty() {
        context.output.line("nobody else read these sessions")?;
        return Ok(());
    }
    let at = |value: &Value| value.as_str().and_then(Time::parse).map_or(String::new(), time::local);
    let rows: Vec<Vec<String>> = accesses
        .iter()
        .map(|access| {
            vec![
                at(&access["last_at"]),
                text(&access["viewer"]).unwrap_or_else(owner),
                text(&access["kind"]).unwrap_or_default(),
                text(&access["member"]).unwrap_or_else(owner),
                text(&access["session_id"]).unwrap_or_default(),
            ]
        })
        .collect();
    let columns = [
        Column::text("last"),
        Column::text("who").cut_end(10),
        Column::text("read").leave_out(1),
        Column::text("of").cut_end(10),
        Column::text("session").cut_end(12),
    ];
    context.output.table("", &columns, &rows)?;
    if let (Some(cursor), false) = (text(&document["next_cursor"]), context.quiet) {
        context.output.flush()?;
        context.output.note(format!("more: --cursor {cursor}"));
    }
    Ok(())
}
