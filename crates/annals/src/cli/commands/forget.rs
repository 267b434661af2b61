//! `annals forget`: removes sessions, texts and secrets from the archive for good, or puts them in the trash first.

use std::collections::BTreeSet;

use clap::Args;
use serde_json::{Value, json};

use crate::cli::ui::confirm::confirm;
use crate::cli::ui::measure::{cpu_ms, peak_memory_bytes};
use crate::cli::ui::table::Column;
use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now, source_name};
use crate::collect::{
    ForgetPlan, Lock, Selection, Verified, finish_forgetting, forget, plan_forgetting, secret_texts,
    verify_forgotten,
};
use crate::view::format::{counted, number, plural, size};
use crate::view::{Door, random_bytes};
use annals_core::{Error, Result, Scope, SessionId, Time};
use annals_store::{Page, SessionFilter, Store};

#[derive(Args)]
#[command(
    after_help = "The clients' own files are never changed. What was forgotten does not come back with a sync, an import or a \
                  rebuild. It is recognised by hashes; the text itself is not kept."
)]
pub struct ForgetArguments {
    /// Forget these sessions, with the sub-agents they started
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
    /// Forget sessions that ran in this directory or below it, or in the project of this name
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Forget sessions that ended before this (2026-03-01, 90d, yesterday)
    #[arg(long, value_name = "WHEN")]
    before: Option<String>,
    /// Forget only sessions of this source
    #[arg(long, value_name = "SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Mask this text wherever it appears, also escaped and encoded
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["sessions", "project", "before", "source"])]
    text: Vec<String>,
    /// Mask the secret with this mark, as `annals secrets` lists it
    #[arg(long, value_name = "MARK", conflicts_with_all = ["sessions", "project", "before", "source", "text"])]
    secret: Option<String>,
    /// Keep the bytes in the trash for this long (30d); `annals trash` brings them back
    #[arg(long, value_name = "DURATION")]
    trash: Option<String>,
    /// Search contents, index, tables and raw files for what was forgotten; with --text only for that text
    #[arg(long)]
    verify: bool,
    /// Print what would be forgotten, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

pub fn run(context: &mut Context, options: &ForgetArguments) -> Result<Outcome> {
    let Some(store) = context.archive()? else {
        return Err(Error::new("no archive yet").hint("annals sync"));
    };
    let names_sessions = !options.sessions.is_empty()
        || options.project.is_some()
        || options.before.is_some()
        || options.source.is_some();
    // Texts that are only looked for are not planned.
    if !names_sessions && options.secret.is_none() && (options.text.is_empty() || options.verify) {
        if !options.verify {
            return Err(Error::bad_request("nothing to forget: name sessions, a text or a secret")
                .hint("annals help forget"));
        }
        let verified = verify_forgotten(&context.config.data_dir, &options.text, None)?;
        return print_verified(context, &verified);
    }
    let expires_at = options.trash.as_deref().map(|text| after(text, now())).transpose()?;
    let (selection, reason) = selection(&store, options)?;
    forget_selection(
        context,
        store,
        &selection,
        reason,
        &Manner {
            expires_at,
            // A text may be in places that nobody thinks of.
            verify: options.verify || matches!(selection, Selection::Texts(_)),
            dry_run: options.dry_run,
            yes: options.yes,
        },
    )
}

/// How something is forgotten.
pub struct Manner {
    pub expires_at: Option<Time>,
    pub verify: bool,
    pub dry_run: bool,
    pub yes: bool,
}

/// Plans, asks, forgets, and reports.
pub fn forget_selection(
    context: &mut Context,
    store: Store,
    selection: &Selection,
    reason: &str,
    manner: &Manner,
) -> Result<Outcome> {
    let home = context.config.data_dir.clone();
    let lock = if manner.dry_run { None } else { Some(Lock::take(&home, "forget")?) };
    if lock.is_some() {
        drop(store);
        if context.archive_or_new()?.has_unfinished_forgetting(now())? {
            finish_forgetting(&home, now())?;
        }
    }
    let store = context.archive_or_empty()?;
    let mut plan = plan_forgetting(&store, selection, reason, random_bytes())?;
    let door = context.door(&store)?;
    let mut ids = Vec::new();
    for row in &plan.sessions {
        if let Some(session) = context.view(&store, &door).session_of_row(*row)? {
            let title = session.title.map(|title| title.to_string()).unwrap_or_default();
            plan.titles.push(title);
            ids.push(session.session_id);
        }
    }
    if plan.is_empty() {
        if context.json {
            context
                .output
                .json(&json!({"dry_run": manner.dry_run, "plan": plan.account, "sessions": ids}))?;
        } else {
            context.output.line("nothing in the archive matches")?;
        }
        return Ok(Outcome::Nothing);
    }
    if !context.json {
        print_plan(context, &plan, &ids)?;
    }
    if manner.dry_run {
        if context.json {
            context.output.json(&answer(&plan, &ids, &json!({"dry_run": true})))?;
        }
        return Ok(Outcome::Done);
    }
    let question = match manner.expires_at {
        Some(_) => "Move this to the trash?",
        None => "Forget this for good?",
    };
    if !confirm(context, question, manner.yes)? {
        return Ok(Outcome::Stopped);
    }
    drop(store);
    let before = archive_size(context);
    let forgot = forget(&home, &plan, manner.expires_at, now())?;
    let verified = match manner.verify && manner.expires_at.is_none() {
        true => Some(verify_forgotten(&home, &[], Some(&plan.samples))?),
        false => None,
    };
    let after = archive_size(context);
    if context.json {
        let more = json!({
            "dry_run": false, "id": forgot.id, "is_scrubbed": forgot.is_scrubbed,
            "expires_at": manner.expires_at.map(Time::rfc3339), "archive_bytes_before": before,
            "archive_bytes": after, "verified": verified, "cpu_ms": cpu_ms(),
            "peak_memory_bytes": peak_memory_bytes(),
        });
        context.output.json(&answer(&plan, &ids, &more))?;
        return Ok(outcome(verified.as_ref()));
    }
    match manner.expires_at {
        Some(expires_at) => context.output.line(format!(
            "in the trash until {}: `annals trash restore {}` brings it back",
            time::local(expires_at),
            forgot.id
        ))?,
        None => context.output.line(format!(
            "forgotten; the archive takes {} instead of {}",
            size(after),
            size(before)
        ))?,
    }
    if !forgot.is_scrubbed {
        context
            .output
            .note("note: another process reads the archive; the next run removes the last copy of the bytes");
    }
    match &verified {
        Some(verified) => print_verified(context, verified),
        None => Ok(Outcome::Done),
    }
}

fn selection(store: &Store, options: &ForgetArguments) -> Result<(Selection, &'static str)> {
    if !options.text.is_empty() {
        return Ok((Selection::Texts(options.text.clone()), "text"));
    }
    if let Some(mark) = &options.secret {
        return Ok((Selection::Texts(texts_of_secret(store, mark)?), "secret"));
    }
    let mut sessions: BTreeSet<SessionId> = BTreeSet::new();
    for id in &options.sessions {
        sessions.insert(row_of(store, id)?);
    }
    if options.project.is_some() || options.before.is_some() || options.source.is_some() {
        let before = options.before.as_deref().map(|text| time::parse(text, now())).transpose()?;
        let filter = SessionFilter {
            source: options.source.clone(),
            project: options.project.as_deref().map(super::sessions::absolute),
            with_agents: true,
            ..SessionFilter::default()
        };
        sessions.extend(sessions_before(store, &filter, before)?);
    }
    let reason = match (&options.project, &options.before) {
        (Some(_), _) => "project",
        (None, Some(_)) => "before",
        (None, None) => "session",
    };
    Ok((Selection::Sessions(sessions), reason))
}

/// Sessions that match, of which the last message is older; those without a time are not.
pub fn sessions_before(
    store: &Store,
    filter: &SessionFilter,
    before: Option<Time>,
) -> Result<BTreeSet<SessionId>> {
    let rows = store.scoped(Scope::Owner).sessions(filter, Page { limit: i64::MAX - 1, after: None })?;
    let is_older = |last_at: Option<Time>| before.is_none_or(|before| last_at.is_some_and(|at| at < before));
    Ok(rows.into_iter().filter(|row| is_older(row.last_at)).map(|row| row.id).collect())
}

/// The texts that are shown as this mark.
pub fn texts_of_secret(store: &Store, mark: &str) -> Result<Vec<String>> {
    let mark = if mark.starts_with('[') { mark.to_owned() } else { format!("[{mark}]") };
    let key = store.setting("mask_key")?.and_then(|key| key.try_into().ok());
    let texts = match key {
        Some(key) => secret_texts(store, key, &mark)?,
        None => Vec::new(),
    };
    if texts.is_empty() {
        return Err(Error::new(format!("no secret has the mark {mark}")).hint("annals secrets"));
    }
    Ok(texts)
}

fn row_of(store: &Store, id: &str) -> Result<SessionId> {
    let door = Door::masking_alone();
    let view = crate::view::View::new(store.scoped(Scope::Owner), &door, now());
    let unknown = || Error::new(format!("no session with id {id:?}")).hint("annals sessions");
    let session = view.find_session(id)?.ok_or_else(unknown)?;
    let filter = SessionFilter {
        source: Some(session.source),
        exact_id: Some(session.session_id),
        with_agents: true,
        ..SessionFilter::default()
    };
    let rows = store.scoped(Scope::Owner).sessions(&filter, Page { limit: 1, after: None })?;
    rows.first().map(|row| row.id).ok_or_else(unknown)
}

/// A duration from now on: `30d` is in thirty days.
pub fn after(text: &str, now: Time) -> Result<Time> {
    let ago = time::parse(text, now)?;
    let span = now.micros() - ago.micros();
    if span <= 0 {
        return Err(Error::bad_request(format!("{text:?} is not a duration")).hint("for example --trash 30d"));
    }
    Ok(Time::from_micros(now.micros() + span))
}

fn archive_size(context: &Context) -> u64 {
    let size =
        |name: &str| std::fs::metadata(context.config.data_dir.join(name)).map_or(0, |file| file.len());
    size("annals.db") + size("annals.db-wal")
}

fn answer(plan: &ForgetPlan, ids: &[String], more: &Value) -> Value {
    let mut answer = json!({
        "reason": plan.reason, "plan": plan.account, "sessions": ids, "kept_copies": plan.kept_copies,
    });
    if let (Some(fields), Some(more)) = (answer.as_object_mut(), more.as_object()) {
        fields.extend(more.clone());
    }
    answer
}

fn print_plan(context: &mut Context, plan: &ForgetPlan, ids: &[String]) -> Result<()> {
    let account = &plan.account;
    let rows: Vec<Vec<String>> =
        ids.iter().zip(&plan.titles).take(20).map(|(id, title)| vec![id.clone(), title.clone()]).collect();
    if !rows.is_empty() {
        context.output.table("", &[Column::text("session"), Column::text("title").cut_end(24)], &rows)?;
        if ids.len() > rows.len() {
            context.output.line(format!("and {}", counted(ids.len() - rows.len(), "more session")))?;
        }
    }
    let counts = [
        (account.sessions, "sessions"),
        (account.started_sessions, "sub-agents and reviews among them"),
        (account.messages, "messages"),
        (account.tool_calls, "tool calls"),
        (account.full_outputs, "full outputs"),
        (account.records, "records"),
        (account.copied_lines, "lines copied to other sessions"),
        (account.history_lines, "lines in prompt histories"),
        (account.lines, "lines in total"),
        (account.places, "places in lines that stay"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        context.output.line(format!("  {what}: {}", number(count)))?;
    }
    for store in &account.stores {
        let mut files = Vec::new();
        if store.whole_files > 0 {
            files.push(format!("{} as a whole", counted(store.whole_files, "file")));
        }
        if store.changed_files > 0 {
            files.push(format!("{} in part", counted(store.changed_files, "file")));
        }
        let line = format!("  {} {}: {}, {}", store.source, store.store, files.join(", "), size(store.bytes));
        context.output.line(line)?;
    }
    if plan.kept_copies > 0 {
        let count = counted(plan.kept_copies, "copied message");
        context.output.note(format!(
            "note: {count} inside of other conversations' documents stay; forget those conversations too"
        ));
    }
    Ok(())
}

fn outcome(verified: Option<&Verified>) -> Outcome {
    if verified.is_some_and(|verified| !verified.found.is_empty()) { Outcome::Stopped } else { Outcome::Done }
}

fn print_verified(context: &mut Context, verified: &Verified) -> Result<Outcome> {
    if context.json {
        context.output.json(verified)?;
        return Ok(outcome(Some(verified)));
    }
    let Verified { contents, blobs, index, tables, raw, .. } = verified;
    for line in [
        format!("searched for {}", plural(i64::try_from(verified.hashes).unwrap_or(0), "hash", "hashes")),
        format!(
            "  contents  {}, {}, {}, {}",
            counted(contents.files, "file"),
            counted(contents.versions, "version"),
            counted(contents.lines, "line"),
            size(contents.bytes)
        ),
        format!("  blobs     {}, {}", counted(blobs.blobs, "blob"), size(blobs.bytes)),
        format!(
            "  index     {}, {}, {}, {}",
            counted(index.segments, "segment"),
            counted(index.blocks, "block"),
            counted(index.terms, "term"),
            counted(index.passages, "passage")
        ),
        format!("  tables    {}, {}", counted(tables.rows, "row"), counted(tables.values, "value")),
        format!(
            "  raw       {}, {}, {}, {} in the log",
            counted(raw.files, "file"),
            size(raw.bytes),
            counted(raw.free_pages, "free page"),
            size(raw.log_bytes)
        ),
    ] {
        context.output.line(line)?;
    }
    if verified.in_trash > 0 {
        context.output.note(format!(
            "note: {} in the trash, which is not searched",
            plural(i64::try_from(verified.in_trash).unwrap_or(0), "entry", "entries")
        ));
    }
    if verified.found.is_empty() {
        context.output.line("nothing of it is left")?;
    }
    for found in &verified.found {
        let places = counted(found.count, "place");
        context.output.line(format!("found: {} {}: {places}", found.place, found.name))?;
    }
    Ok(outcome(Some(verified)))
}
