//! `annals retain`: applies the rules of the settings that say how long sessions are kept.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::json;

use super::forget::{after, sessions_before};
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::collect::{Lock, Selection, finish_forgetting, forget, plan_forgetting};
use crate::view::format::{counted, number, size};
use crate::view::random_bytes;
use annals_core::{Error, Result, SessionId, Time};
use annals_sources::by_name;
use annals_store::{SessionFilter, Store};

/// What the account of a forgetting says.
const REASON: &str = "rule";

#[derive(Args)]
#[command(
    after_help = "Rules are in config.toml, for example:\n\n  [retention]\n  rules = [\"project:Taxes after:90d except:starred\", \
                  \"after:2y trash:30d\"]\n\nRules take effect only with `--apply`, or after each sync if `automatic = true`."
)]
pub struct RetainArguments {
    /// List what each rule would forget; this is the default
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,
    /// Forget what the rules say
    #[arg(long)]
    apply: bool,
}

/// One rule of the settings.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct RetentionRule {
    source: Option<String>,
    project: Option<String>,
    after: String,
    trash: Option<String>,
    keeps_starred: bool,
}

pub fn run(context: &mut Context, options: &RetainArguments) -> Result<Outcome> {
    let rules = context.config.retention_rules().to_vec();
    if rules.is_empty() {
        return Err(Error::new("no retention rules in the settings").hint("annals help retain"));
    }
    apply(context, &rules, options.apply)
}

/// Applies the rules after a sync, if the settings say so.
pub fn apply_automatically(context: &mut Context) -> Result<()> {
    let rules = context.config.retention_rules().to_vec();
    if context.config.retains_automatically() && !rules.is_empty() {
        apply(context, &rules, true)?;
    }
    Ok(())
}

fn apply(context: &mut Context, rules: &[String], applies: bool) -> Result<Outcome> {
    let rules: Vec<(String, RetentionRule)> =
        rules.iter().map(|text| Ok((text.clone(), RetentionRule::parse(text)?))).collect::<Result<_>>()?;
    let home = context.config.data_dir.clone();
    let _lock = applies.then(|| Lock::take(&home, "retain")).transpose()?;
    if applies && context.archive_or_new()?.has_unfinished_forgetting(now())? {
        finish_forgetting(&home, now())?;
    }
    let (mut rows, mut documents) = (Vec::new(), Vec::new());
    for (text, rule) in &rules {
        let store = context.archive_or_empty()?;
        let sessions = rule.sessions(&store, now())?;
        let plan = plan_forgetting(&store, &Selection::Sessions(sessions.clone()), REASON, random_bytes())?;
        drop(store);
        if applies && !sessions.is_empty() {
            let expires_at = rule.trash.as_deref().map(|text| after(text, now())).transpose()?;
            forget(&home, &plan, expires_at, now())?;
        }
        let account = &plan.account;
        rows.push(vec![
            text.clone(),
            number(account.sessions),
            number(account.messages),
            size(account.bytes),
        ]);
        documents.push(json!({"rule": text, "plan": account}));
    }
    if context.json {
        context.output.json(&json!({"applied": applies, "rules": documents}))?;
        return Ok(Outcome::Done);
    }
    let columns = [
        Column::text("rule"),
        Column::number("sessions"),
        Column::number("messages"),
        Column::number("size"),
    ];
    context.output.table("", &columns, &rows)?;
    if !applies && !context.quiet {
        context.output.note(format!(
            "note: nothing was changed; `annals retain --apply` applies {}",
            counted(rules.len(), "rule")
        ));
    }
    Ok(Outcome::Done)
}

impl RetentionRule {
    /// `source:NAME project:"NAME" after:90d trash:30d except:starred`, in any order.
    fn parse(text: &str) -> Result<RetentionRule> {
        let unclear = |what: &str| {
            Error::bad_request(format!("cannot read the retention rule {text:?}: {what}"))
                .hint("for example \"project:Taxes after:90d except:starred\"")
        };
        let mut rule = RetentionRule::default();
        for word in words(text) {
            let Some((name, value)) = word.split_once(':').filter(|(_, value)| !value.is_empty()) else {
                return Err(unclear(&format!("{word:?} has no value")));
            };
            match (name, value) {
                ("source", name) if by_name(name).is_some() => rule.source = Some(name.to_owned()),
                ("source", name) => return Err(unclear(&format!("no source {name:?}"))),
                ("project", name) => rule.project = Some(super::sessions::absolute(name)),
                ("after", span) => rule.after = span.to_owned(),
                ("trash", span) => rule.trash = Some(span.to_owned()),
                ("except", "starred") => rule.keeps_starred = true,
                (name, _) => return Err(unclear(&format!("unknown word {name:?}"))),
            }
        }
        if rule.after.is_empty() {
            return Err(unclear("it says nothing about time"));
        }
        after(&rule.after, now()).map_err(|_| unclear("after: needs a duration such as 90d"))?;
        if let Some(span) = &rule.trash {
            after(span, now()).map_err(|_| unclear("trash: needs a duration such as 30d"))?;
        }
        Ok(rule)
    }

    fn sessions(&self, store: &Store, now: Time) -> Result<BTreeSet<SessionId>> {
        let before = time::parse(&self.after, now)?;
        let filter = SessionFilter {
            source: self.source.clone(),
            project: self.project.clone(),
            with_agents: true,
            ..SessionFilter::default()
        };
        let mut sessions = sessions_before(store, &filter, Some(before))?;
        if self.keeps_starred {
            // What they started and what they repeat is a part of them.
            let starred = store.with_origins(&store.starred_sessions()?)?;
            let starred = store.with_related_sessions(&starred)?;
            // A session goes with those that it started, so that these protect it.
            sessions.retain(|session| !starred.contains(session));
            let mut kept = BTreeSet::new();
            for session in &sessions {
                let all = store.with_related_sessions(&BTreeSet::from([*session]))?;
                if all.iter().any(|related| starred.contains(related)) {
                    kept.insert(*session);
                }
            }
            sessions.retain(|session| !kept.contains(session));
        }
        Ok(sessions)
    }
}

/// The words of a rule; quotes hold one together.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            letter if letter.is_whitespace() && !is_quoted => words.push(std::mem::take(&mut word)),
            letter => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_a_time_and_known_words() {
        let source = annals_sources::registry()[0].manifest().source;
        let text = format!("source:{source} project:\"My Taxes\" after:90d except:starred");
        let rule = RetentionRule::parse(&text).unwrap();
        assert_eq!((rule.source.as_deref(), rule.project.as_deref()), (Some(source), Some("My Taxes")));
        assert!(rule.keeps_starred && rule.after == "90d" && rule.trash.is_none());
        for unclear in ["project:x", "after:soon", "after:90d except:nothing", "after", "source:x after:1d"] {
            assert!(RetentionRule::parse(unclear).is_err(), "{unclear}");
        }
    }
}
