//! `annals members`: who has access to this archive, their tokens, and the browsers that are logged in.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use strum::VariantNames as _;

use super::serve::configured_url;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::format::{counted, number, size};
use crate::view::{TokenKey, new_link, new_token, rotate_local_token};
use annals_core::{Error, MemberRole, Result, Time};
use annals_store::{BrowserRow, MemberRow, NewMember, Store};

#[derive(Args)]
pub struct MembersArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a member and print their first token, once
    Add {
        /// Name of the member
        #[arg(value_name = "NAME")]
        name: String,
        /// owner sees the whole archive, admin the sessions of the organisation, member only their own
        #[arg(long, value_name = "ROLE", default_value = "member",
              value_parser = clap::builder::PossibleValuesParser::new(MemberRole::VARIANTS))]
        role: String,
        /// Organisation of the member
        #[arg(long, value_name = "NAME", default_value = "home")]
        organisation: String,
    },
    /// List members, their roles and their last access
    List,
    /// Remove a member and revoke their tokens; their sessions stay
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Create another token for a member and print it, once
    Token {
        #[arg(value_name = "NAME")]
        name: String,
        /// Revoke all their tokens instead of creating one
        #[arg(long)]
        revoke: bool,
    },
    /// List browsers that are logged in, or log them out
    Browsers {
        /// Log out the browser with this number
        #[arg(long, value_name = "N", conflicts_with = "logout_all")]
        logout: Option<i64>,
        /// Log out all browsers and discard unused links
        #[arg(long)]
        logout_all: bool,
    },
    /// Print a link that logs in one of your browsers, once
    Link,
    /// Replace your own token and log out your browsers
    Rotate,
}

pub fn run(context: &mut Context, options: &MembersArguments) -> Result<Outcome> {
    let mut store = context.archive_or_new()?;
    match &options.action {
        Action::Add { name, role, organisation } => {
            check_name(name)?;
            check_name(organisation)?;
            let role = MemberRole::from_name(role).unwrap_or(MemberRole::Member);
            let token = new_token();
            let hash = TokenKey::of(&store)?.hash(&token);
            store.add_member(&NewMember { name, organisation, role }, &hash, now())?;
            show_token(context, name, &token)
        }
        Action::List => list(context, &store),
        Action::Remove { name } => {
            store.remove_member(name, now())?;
            done(context, name, "removed", &format!("removed {name}"))
        }
        Action::Token { name, revoke: false } => {
            let token = new_token();
            store.add_token(name, &TokenKey::of(&store)?.hash(&token), now())?;
            show_token(context, name, &token)
        }
        Action::Token { name, revoke: true } => {
            let count = store.revoke_tokens(name, now())?;
            done(context, name, "revoked", &format!("revoked {} of {name}", counted(count, "token")))
        }
        Action::Browsers { logout: None, logout_all: false } => browsers(context, &store),
        Action::Browsers { logout, .. } => logout_browsers(context, &store, *logout),
        Action::Link => {
            let link = format!("{}/?once={}", configured_url(&context.config), new_link(&store, now())?);
            match context.json {
                true => context.output.json(&json!({"link": link}))?,
                false => context.output.line(link)?,
            }
            Ok(Outcome::Done)
        }
        Action::Rotate => {
            let token = rotate_local_token(&store)?;
            match context.json {
                true => context.output.json(&json!({"token": token}))?,
                false => context.output.line(token)?,
            }
            Ok(Outcome::Done)
        }
    }
}

fn browsers(context: &mut Context, store: &Store) -> Result<Outcome> {
    let browsers = store.browsers(now())?;
    if context.json {
        let browsers: Vec<Value> = browsers.iter().map(browser_json).collect();
        context.output.json(&json!({"browsers": browsers, "next_cursor": null}))?;
        return Ok(Outcome::Done);
    }
    if browsers.is_empty() {
        context.output.line("no browser is logged in")?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<Vec<String>> = browsers
        .iter()
        .map(|browser| {
            vec![
                browser.id.to_string(),
                browser.member.clone().unwrap_or_else(|| "you".to_owned()),
                browser.port.to_string(),
                time::local(browser.last_used),
                time::local(browser.expires_at),
                browser.agent.clone(),
            ]
        })
        .collect();
    let columns = [
        Column::number("number"),
        Column::text("who").cut_end(8),
        Column::number("port").leave_out(2),
        Column::text("last access"),
        Column::text("expires").leave_out(1),
        Column::text("browser").cut_end(12),
    ];
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}

fn logout_browsers(context: &mut Context, store: &Store, id: Option<i64>) -> Result<Outcome> {
    let count = store.end_browsers(id)?;
    if let Some(id) = id.filter(|_| count == 0) {
        return Err(Error::new(format!("no browser has the number {id}"))
            .hint("`annals members browsers` lists all browsers"));
    }
    if context.json {
        context.output.json(&json!({"logged_out": count}))?;
    } else {
        context.output.line(format!("logged out {}", counted(count, "browser")))?;
    }
    Ok(Outcome::Done)
}

fn browser_json(browser: &BrowserRow) -> Value {
    json!({
        "number": browser.id,
        "member": browser.member,
        "port": browser.port,
        "browser": browser.agent,
        "started_at": browser.started_at.rfc3339(),
        "last_used_at": browser.last_used.rfc3339(),
        "expires_at": browser.expires_at.rfc3339(),
    })
}

fn check_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "-_.@ ".contains(c);
    if !name.is_empty() && name.chars().count() <= 80 && name.chars().all(plain) && name.trim() == name {
        return Ok(());
    }
    Err(Error::new(format!("invalid name: {name:?}")).hint("use at most 80 letters, digits, spaces and -_.@"))
}

fn show_token(context: &mut Context, name: &str, token: &str) -> Result<Outcome> {
    if context.json {
        context.output.json(&json!({"member": name, "token": token}))?;
        return Ok(Outcome::Done);
    }
    context.output.line(token)?;
    if !context.quiet {
        context.output.flush()?;
        context.output.note(format!("This is the token of {name}. It is shown only once. Send it as"));
        context.output.note("  Authorization: Bearer TOKEN");
        context.output.note(format!("hint: `annals sync --member {name}` assigns captured homes to them"));
    }
    Ok(Outcome::Done)
}

fn done(context: &mut Context, name: &str, what: &str, message: &str) -> Result<Outcome> {
    if context.json {
        context.output.json(&json!({"member": name, "done": what}))?;
    } else {
        context.output.line(message)?;
    }
    Ok(Outcome::Done)
}

fn list(context: &mut Context, store: &Store) -> Result<Outcome> {
    let mut members = store.members()?;
    members.retain(|member| member.removed_at.is_none());
    if context.json {
        let members: Vec<Value> = members.iter().map(member_json).collect();
        context.output.json(&json!({"members": members, "next_cursor": null}))?;
        return Ok(Outcome::Done);
    }
    if members.is_empty() {
        context.output.line("no members: only you have access")?;
        return Ok(Outcome::Done);
    }
    let rows: Vec<Vec<String>> = members
        .iter()
        .map(|member| {
            vec![
                member.name.clone(),
                member.organisation.clone(),
                member.role.name().to_owned(),
                number(member.homes),
                number(member.machines),
                number(member.sessions),
                size(u64::try_from(member.bytes).unwrap_or(0)),
                number(member.tokens),
                member.last_push.map_or("never".to_owned(), time::local),
                member.last_used.map_or("never".to_owned(), time::local),
            ]
        })
        .collect();
    let columns = [
        Column::text("name").cut_end(10),
        Column::text("organisation").cut_end(8),
        Column::text("role"),
        Column::number("homes").leave_out(4),
        Column::number("machines").leave_out(3),
        Column::number("sessions").leave_out(1),
        Column::number("size").leave_out(2),
        Column::number("tokens").leave_out(5),
        Column::text("last push").leave_out(6),
        Column::text("last access"),
    ];
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}

fn member_json(member: &MemberRow) -> Value {
    json!({
        "name": member.name,
        "organisation": member.organisation,
        "role": member.role.name(),
        "homes": member.homes,
        "machines": member.machines,
        "sessions": member.sessions,
        "bytes": member.bytes,
        "last_push_at": member.last_push.map(Time::rfc3339),
        "tokens": member.tokens,
        "added_at": member.added_at.rfc3339(),
        "last_used_at": member.last_used.map(Time::rfc3339),
    })
}
