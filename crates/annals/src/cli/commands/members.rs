//! `annals members`: who has access to this archive, their tokens, and the browsers that are logged in.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use strum::VariantNames as _;

use super::forget::after;
use super::serve::configured_url;
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::format::{counted, money, number, size};
use crate::view::{TokenKey, new_link, new_token, rotate_local_token};
use annals_core::{Error, MemberRole, Result, Time};
use annals_store::{BrowserRow, NewMember, NewToken, Store};

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
        /// Let the token expire after this long, such as 90d
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
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
        #[arg(long, conflicts_with_all = ["expires", "rotate", "grace"])]
        revoke: bool,
        /// Let the new token expire after this long, such as 90d
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
        /// Replace all their tokens by the new one, and log out their browsers
        #[arg(long)]
        rotate: bool,
        /// With --rotate, let the old tokens work for this long, such as 7d
        #[arg(long, value_name = "TIME", requires = "rotate")]
        grace: Option<String>,
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
        Action::Add { name, role, organisation, expires } => {
            check_name(name)?;
            check_name(organisation)?;
            let role = MemberRole::from_name(role).unwrap_or(MemberRole::Member);
            let token = new_token();
            let hash = TokenKey::of(&store)?.hash(&token);
            let expires_at = expiry(expires.as_deref())?;
            let stored = NewToken { hash: &hash, expires_at };
            store.add_member(&NewMember { name, organisation, role }, &stored, now())?;
            show_token(context, name, &token, expires_at)
        }
        Action::List => list(context, &store),
        Action::Remove { name } => {
            store.remove_member(name, now())?;
            done(context, name, "removed", &format!("removed {name}"))
        }
        Action::Token { name, revoke: false, expires, rotate, grace } => {
            let token = new_token();
            let hash = TokenKey::of(&store)?.hash(&token);
            let expires_at = expiry(expires.as_deref())?;
            let stored = NewToken { hash: &hash, expires_at };
            if *rotate {
                let others_end = expiry(grace.as_deref())?.unwrap_or_else(now);
                store.rotate_tokens(name, &stored, others_end, now())?;
            } else {
                store.add_token(name, &stored, now())?;
            }
            show_token(context, name, &token, expires_at)
        }
        Action::Token { name, revoke: true, .. } => {
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

/// A duration from now on.
fn expiry(text: Option<&str>) -> Result<Option<Time>> {
    let unclear = |text: &str| {
        Error::new(format!("not a duration: {text:?}"))
            .hint("use a number of days, weeks or months, such as 90d")
    };
    text.map(|text| after(text, now()).map_err(|_| unclear(text))).transpose()
}

fn show_token(context: &mut Context, name: &str, token: &str, expires_at: Option<Time>) -> Result<Outcome> {
    if context.json {
        let mut document = json!({"member": name, "token": token});
        if let Some(at) = expires_at {
            document["expires_at"] = at.rfc3339().into();
        }
        context.output.json(&document)?;
        return Ok(Outcome::Done);
    }
    context.output.line(token)?;
    if !context.quiet {
        context.output.flush()?;
        context.output.note(format!("This is the token of {name}. It is shown only once. Send it as"));
        context.output.note("  Authorization: Bearer TOKEN");
        if let Some(at) = expires_at {
            context.output.note(format!("It expires on {}.", time::local(at)));
        }
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
    let door = context.door(store)?;
    let members = context.view(store, &door).members()?;
    if context.json {
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
                member.name.to_string(),
                member.organisation.to_string(),
                member.role.to_owned(),
                number(member.homes),
                number(member.machines),
                number(member.sessions),
                size(u64::try_from(member.bytes).unwrap_or(0)),
                member.cost_usd.map_or_else(|| "-".to_owned(), money),
                number(member.tokens),
                local(member.token_expires_at.as_deref()),
                local(member.last_push_at.as_deref()),
                local(member.last_used_at.as_deref()),
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
        Column::number("cost").leave_out(2),
        Column::number("tokens").leave_out(5),
        Column::text("token expires").leave_out(6),
        Column::text("last push").leave_out(6),
        Column::text("last access"),
    ];
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}

fn local(at: Option<&str>) -> String {
    at.and_then(Time::parse).map_or("never".to_owned(), time::local)
}
