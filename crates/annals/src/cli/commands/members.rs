//! `annals members`: who else may ask this archive, and the tokens they ask with.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::ui::table::{number, table};
use crate::cli::ui::time;
use crate::cli::{Answer, Desk, now};
use crate::view::{TokenKey, new_token};
use annals_core::{Error, MemberRole, Result, Time};
use annals_store::{MemberRow, NewMember, Store};

#[derive(Args)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Add a member and show their first token, once
    Add {
        /// What they are called
        #[arg(value_name = "NAME")]
        name: String,
        /// owner sees the whole archive, admin the organisation's sessions, member their own
        #[arg(long, value_name = "ROLE", default_value = "member",
              value_parser = clap::builder::PossibleValuesParser::new(MemberRole::ALL.map(MemberRole::name)))]
        role: String,
        /// The organisation they belong to
        #[arg(long, value_name = "NAME", default_value = "home")]
        organisation: String,
    },
    /// List members, their roles and when they last asked
    List,
    /// Remove a member; their tokens end, their sessions stay
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Make another token for a member and show it, once
    Token {
        #[arg(value_name = "NAME")]
        name: String,
        /// End all their tokens instead of making one
        #[arg(long)]
        revoke: bool,
    },
}

pub fn run(desk: &mut Desk, options: &Options) -> Result<Answer> {
    let mut store = desk.archive_or_new()?;
    let scope = desk.scope;
    match &options.action {
        Action::Add { name, role, organisation } => {
            named(name)?;
            named(organisation)?;
            let role = MemberRole::from_name(role).unwrap_or(MemberRole::Member);
            let token = new_token();
            let hash = TokenKey::of(&scope, &store)?.hash(&token);
            store.add_member(&scope, &NewMember { name, organisation, role }, &hash, now())?;
            show_token(desk, name, &token)
        }
        Action::List => list(desk, &store),
        Action::Remove { name } => {
            store.remove_member(&scope, name, now())?;
            done(desk, name, "removed", &format!("{name} may not ask any more"))
        }
        Action::Token { name, revoke: false } => {
            let token = new_token();
            store.add_token(&scope, name, &TokenKey::of(&scope, &store)?.hash(&token), now())?;
            show_token(desk, name, &token)
        }
        Action::Token { name, revoke: true } => {
            let count = store.revoke_tokens(&scope, name, now())?;
            done(desk, name, "revoked", &format!("{count} tokens of {name} ended"))
        }
    }
}

fn named(name: &str) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || "-_.@ ".contains(c);
    if !name.is_empty() && name.chars().count() <= 80 && name.chars().all(plain) && name.trim() == name {
        return Ok(());
    }
    Err(Error::new(format!("not a name: {name:?}")).hint("letters, digits, space and -_.@, at most 80"))
}

fn show_token(desk: &mut Desk, name: &str, token: &str) -> Result<Answer> {
    if desk.json {
        desk.output.json(&json!({"member": name, "token": token}))?;
        return Ok(Answer::Done);
    }
    desk.output.line(token)?;
    if !desk.quiet {
        desk.output.flush()?;
        desk.output.note(format!("this is {name}'s token; it is shown only now. They send it as"));
        desk.output.note("  Authorization: Bearer TOKEN");
        desk.output.note(format!("hint: `annals sync --member {name}` makes the homes it reads theirs"));
    }
    Ok(Answer::Done)
}

fn done(desk: &mut Desk, name: &str, what: &str, words: &str) -> Result<Answer> {
    if desk.json {
        desk.output.json(&json!({"member": name, "done": what}))?;
    } else {
        desk.output.line(words)?;
    }
    Ok(Answer::Done)
}

fn list(desk: &mut Desk, store: &Store) -> Result<Answer> {
    let mut members = store.members(&desk.scope)?;
    members.retain(|member| member.removed_at.is_none());
    if desk.json {
        let members: Vec<Value> = members.iter().map(member_json).collect();
        desk.output.json(&json!({"members": members, "next_cursor": null}))?;
        return Ok(Answer::Done);
    }
    if members.is_empty() {
        desk.output.line("no members: only the owner at this machine may ask")?;
        return Ok(Answer::Done);
    }
    let rows: Vec<Vec<String>> = members
        .iter()
        .map(|member| {
            vec![
                member.name.clone(),
                member.organisation.clone(),
                member.role.name().to_owned(),
                number(member.homes),
                number(member.tokens),
                member.last_used.map_or("never".to_owned(), time::local),
            ]
        })
        .collect();
    for line in table(&["name", "organisation", "role", "#homes", "#tokens", "last asked"], &rows) {
        desk.output.line(line)?;
    }
    Ok(Answer::Done)
}

fn member_json(member: &MemberRow) -> Value {
    json!({
        "name": member.name,
        "organisation": member.organisation,
        "role": member.role.name(),
        "homes": member.homes,
        "tokens": member.tokens,
        "added_at": member.added_at.rfc3339(),
        "last_used_at": member.last_used.map(Time::rfc3339),
    })
}
