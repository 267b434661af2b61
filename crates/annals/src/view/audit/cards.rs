//! Source cards: what each source has, and how to set it up.

use serde::Serialize;
use utoipa::ToSchema;

use super::status::{DiskState, used_sources};
use crate::view::door::Door;
use annals_core::{Result, Retention, Scope, Shown, Time};
use annals_store::Store;

#[derive(Debug, Serialize, ToSchema)]
pub struct SourceCard {
    pub source: &'static str,
    pub provider_label: &'static str,
    pub source_status: String,
    pub reason: Shown,
    pub setup_hint: &'static str,
    pub source_path: Option<Shown>,
    pub session_count: i64,
    pub message_count: i64,
    pub last_activity_at: Option<String>,
    pub last_scanned_at: Option<String>,
    pub files: i64,
    pub bytes: i64,
    pub gaps_open: i64,
    /// Days after which the client deletes transcripts, and how many of those archived it deletes within a week.
    pub retention_days: Option<i64>,
    pub deleted_soon: i64,
    /// The same within thirty days: what would be lost without an archive.
    pub deleted_this_month: i64,
}

/// One card a source; where the archive has several homes of it, their sums.
pub fn cards(
    scope: &Scope,
    store: Option<&Store>,
    door: &Door,
    disk: &[DiskState],
    now: Time,
) -> Result<Vec<SourceCard>> {
    let instances = match store {
        Some(store) => store.instances(scope)?,
        None => Vec::new(),
    };
    let mut cards = Vec::new();
    for source in used_sources(scope, store)? {
        let manifest = source.manifest();
        let homes = disk.iter().filter(|(name, ..)| *name == manifest.source);
        let mut card = SourceCard {
            source: manifest.source,
            provider_label: manifest.label,
            source_status: "unavailable".into(),
            reason: Shown::new("no data found"),
            setup_hint: manifest.setup_hint,
            source_path: None,
            session_count: 0,
            message_count: 0,
            last_activity_at: None,
            last_scanned_at: None,
            files: 0,
            bytes: 0,
            gaps_open: 0,
            retention_days: None,
            deleted_soon: 0,
            deleted_this_month: 0,
        };
        let archived = store.map_or(Ok(Vec::new()), |store| store.homes(scope, Some(manifest.source)))?;
        for home in &archived {
            card.source_path = Some(door.raw(&home.root));
            card.source_status.clone_from(&home.status);
            card.reason = door.raw(&home.reason);
        }
        for (_, path, status, reason) in homes {
            card.source_path = Some(door.text(path));
            card.source_status.clone_from(status);
            card.reason = door.text(reason);
        }
        let mut last_activity: Option<Time> = None;
        let mut last_scanned: Option<Time> = None;
        for instance in instances.iter().filter(|instance| instance.source == manifest.source) {
            card.session_count += instance.sessions;
            card.message_count += instance.messages;
            card.files += instance.files;
            card.bytes += instance.bytes;
            card.gaps_open += instance.gaps;
            last_activity = last_activity.max(instance.last_activity);
            last_scanned = last_scanned.max(instance.last_scanned);
            if let (Some(store), Some(retention)) = (store, &manifest.retention) {
                let days = days_kept(scope, store, instance.id, retention)?;
                let idle_since = |within: i64| {
                    let before = now.micros().saturating_sub((days - within).saturating_mul(DAY));
                    store.count_idle_since(scope, instance.id, Time::from_micros(before))
                };
                card.retention_days = Some(card.retention_days.map_or(days, |shortest| shortest.min(days)));
                card.deleted_soon += idle_since(WARN_DAYS)?;
                card.deleted_this_month += idle_since(MONTH_DAYS)?;
            }
        }
        card.last_activity_at = last_activity.map(Time::rfc3339);
        card.last_scanned_at = last_scanned.map(Time::rfc3339);
        let answers = card.session_count > 0 && card.source_status != "error";
        if answers {
            if card.source_status != "available" {
                card.reason = Shown::new("the client's files are gone; showing archived data");
            }
            card.source_status = "available".into();
        }
        cards.push(card);
    }
    Ok(cards)
}

/// Sessions that the client deletes within this many days are worth a word.
const WARN_DAYS: i64 = 7;
const MONTH_DAYS: i64 = 30;
const DAY: i64 = 86_400_000_000;

/// What the client's own settings say, as they were captured.
fn days_kept(scope: &Scope, store: &Store, instance: i64, retention: &Retention) -> Result<i64> {
    let settings = store.captured_whole(scope, instance, retention.file)?;
    let settings = settings.and_then(|raw| serde_json::from_slice::<serde_json::Value>(raw.expose()).ok());
    let days =
        settings.as_ref().and_then(|settings| settings.get(retention.key)).and_then(|days| days.as_i64());
    Ok(days.unwrap_or(retention.default_days).clamp(0, 1_000_000))
}
