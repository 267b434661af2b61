//! Where one secret went: how it entered, every session that saw it, who received it, and where it was written.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::secrets::each_text_of;
use crate::view::context::View;
use crate::view::paging::Paging;
use crate::view::session::branches::Branch;
use crate::view::session::list::{SessionQuery, SessionView};
use crate::view::session::transcript::{BlockView, Entry, TranscriptQuery};
use annals_core::{Result, Shown};
use annals_store::SessionFilter;

/// What is known about one secret. Its value is not part of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretTrace {
    pub mark: String,
    pub kind: String,
    /// Where a key of this kind is revoked.
    pub revoke_at: Option<&'static str>,
    pub first_seen_at: Option<String>,
    pub last_seen_at: Option<String>,
    pub occurrences: u64,
    /// The first place that it was seen in.
    pub entered: Option<SecretEntry>,
    pub sessions: Vec<TracedSession>,
    pub machines: BTreeSet<String>,
    pub providers: Vec<SecretReceiver>,
    /// Files that a call wrote while its input contained the secret.
    pub written_files: BTreeSet<Shown>,
    /// Whether it was part of a command line.
    pub in_commands: bool,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SecretEntry {
    pub session_id: String,
    pub at: Option<String>,
    /// `prompt`, `output` of a tool, and so on.
    pub place: String,
    pub tool: Option<Shown>,
    /// Files that the tool read or wrote.
    pub files: Vec<Shown>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct TracedSession {
    pub session_id: String,
    pub source: String,
    pub provider_label: &'static str,
    pub title: Option<Shown>,
    pub parent_session_id: Option<String>,
    pub parent_kind: Option<String>,
    pub machine: Option<String>,
    pub first_seen_at: Option<String>,
    pub last_seen_at: Option<String>,
    pub occurrences: u64,
    pub places: BTreeSet<String>,
}

/// A provider whose models got the secret as input, since it is part of a conversation with them.
#[derive(Debug, Serialize, ToSchema)]
pub struct SecretReceiver {
    pub provider_label: &'static str,
    pub first_received_at: Option<String>,
    pub sessions: u64,
}

/// Where keys are revoked, by the kind that a mark names.
const REVOKE_AT: &[(&str, &str)] = &[
    ("anthropic", "https://console.anthropic.com/settings/keys"),
    ("openai", "https://platform.openai.com/api-keys"),
    ("openrouter", "https://openrouter.ai/settings/keys"),
    ("huggingface", "https://huggingface.co/settings/tokens"),
    ("groq", "https://console.groq.com/keys"),
    ("replicate", "https://replicate.com/account/api-tokens"),
    ("github", "https://github.com/settings/tokens"),
    ("gitlab", "https://gitlab.com/-/user_settings/personal_access_tokens"),
    ("atlassian", "https://id.atlassian.com/manage-profile/security/api-tokens"),
    ("npm", "https://www.npmjs.com/settings/~/tokens"),
    ("pypi", "https://pypi.org/manage/account/token/"),
    ("crates", "https://crates.io/settings/tokens"),
    ("docker", "https://app.docker.com/settings/personal-access-tokens"),
    ("aws", "https://console.aws.amazon.com/iam/home#/security_credentials"),
    ("google", "https://console.cloud.google.com/apis/credentials"),
    ("slack", "https://api.slack.com/apps"),
    ("stripe", "https://dashboard.stripe.com/apikeys"),
];

/// Where a key of a kind is revoked, if its issuer is known.
pub fn revoke_at(kind: &str) -> Option<&'static str> {
    REVOKE_AT.iter().find(|(name, _)| *name == kind).map(|(_, address)| *address)
}

impl View<'_> {
    /// Follows a secret through the sessions with these ids, or through all.
    pub fn trace_secret(&self, mark: &str, only: Option<&[String]>) -> Result<Option<SecretTrace>> {
        let kind = mark.split(':').nth(1).unwrap_or_default().to_owned();
        let mut trace = SecretTrace {
            mark: mark.to_owned(),
            revoke_at: revoke_at(&kind),
            kind,
            first_seen_at: None,
            last_seen_at: None,
            occurrences: 0,
            entered: None,
            sessions: Vec::new(),
            machines: BTreeSet::new(),
            providers: Vec::new(),
            written_files: BTreeSet::new(),
            in_commands: false,
        };
        let filter = SessionFilter { with_agents: true, ..SessionFilter::default() };
        let mut query = SessionQuery { filter, page: Paging { limit: 200, cursor: None }, brief: true };
        loop {
            let list = self.sessions(&query)?;
            let chosen = |session: &&SessionView| only.is_none_or(|only| only.contains(&session.session_id));
            for session in list.sessions.iter().filter(chosen) {
                self.trace_session(session, &mut trace)?;
            }
            query.page.cursor = list.next_cursor;
            if query.page.cursor.is_none() {
                break;
            }
        }
        trace.sessions.sort_by(|left, right| {
            (&left.first_seen_at, &left.session_id).cmp(&(&right.first_seen_at, &right.session_id))
        });
        trace.providers = receivers(&trace.sessions);
        Ok(Some(trace).filter(|trace| trace.occurrences > 0))
    }

    fn trace_session(&self, session: &SessionView, trace: &mut SecretTrace) -> Result<()> {
        let mut traced = TracedSession {
            session_id: session.session_id.clone(),
            source: session.source.clone(),
            provider_label: session.provider_label,
            title: session.title.clone(),
            parent_session_id: session.parent_session_id.clone(),
            parent_kind: session.parent_kind.clone(),
            machine: None,
            first_seen_at: None,
            last_seen_at: None,
            occurrences: 0,
            places: BTreeSet::new(),
        };
        let whole = TranscriptQuery { full: true, branch: Branch::All, ..TranscriptQuery::default() };
        self.transcript(session, whole, &mut |entry| {
            trace_entry(&entry, &mut traced, trace);
            Ok(())
        })?;
        if traced.occurrences > 0 {
            traced.machine = self.archive.session_machine(&session.source, &session.session_id)?;
            trace.occurrences += traced.occurrences;
            widen(&mut trace.first_seen_at, &mut trace.last_seen_at, traced.first_seen_at.as_ref());
            widen(&mut trace.first_seen_at, &mut trace.last_seen_at, traced.last_seen_at.as_ref());
            trace.machines.extend(traced.machine.clone());
            trace.sessions.push(traced);
        }
        Ok(())
    }
}

fn trace_entry(entry: &Entry, traced: &mut TracedSession, trace: &mut SecretTrace) {
    let mut files: Vec<Shown> = Vec::new();
    for block in &entry.blocks {
        if let BlockView::ToolCall { files: touched, .. } = block {
            files.extend(touched.iter().map(|file| file.path.clone()));
        }
    }
    each_text_of(entry, &mut |place, text, tool| {
        let count = text.matches(&trace.mark).count() as u64;
        if count == 0 {
            return;
        }
        traced.occurrences += count;
        traced.places.insert(place.to_owned());
        widen(&mut traced.first_seen_at, &mut traced.last_seen_at, entry.at.as_ref());
        let is_first = match (&trace.entered, &entry.at) {
            (None, _) => true,
            (Some(known), Some(at)) => known.at.as_ref().is_none_or(|known| at < known),
            (Some(_), None) => false,
        };
        if is_first {
            trace.entered = Some(SecretEntry {
                session_id: traced.session_id.clone(),
                at: entry.at.clone(),
                place: place.to_owned(),
                tool: tool.cloned(),
                files: files.clone(),
            });
        }
    });
    for block in &entry.blocks {
        let BlockView::ToolCall { kind, input, files, .. } = block else { continue };
        if !input.value().to_string().contains(&trace.mark) {
            continue;
        }
        trace.in_commands |= *kind == "shell";
        let written = files.iter().filter(|file| file.operation != "read");
        trace.written_files.extend(written.map(|file| file.path.clone()));
    }
}

/// Timestamps sort as strings.
fn widen(first: &mut Option<String>, last: &mut Option<String>, at: Option<&String>) {
    let Some(at) = at else { return };
    if first.as_ref().is_none_or(|first| at < first) {
        *first = Some(at.clone());
    }
    if last.as_ref().is_none_or(|last| at > last) {
        *last = Some(at.clone());
    }
}

fn receivers(sessions: &[TracedSession]) -> Vec<SecretReceiver> {
    let mut receivers: Vec<SecretReceiver> = Vec::new();
    for session in sessions {
        match receivers.iter_mut().find(|known| known.provider_label == session.provider_label) {
            Some(known) => known.sessions += 1,
            // Sessions are in the order of time.
            None => receivers.push(SecretReceiver {
                provider_label: session.provider_label,
                first_received_at: session.first_seen_at.clone(),
                sessions: 1,
            }),
        }
    }
    receivers
}
