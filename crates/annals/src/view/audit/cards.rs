//! Source cards: what each source has, and how to set it up.

use serde::Serialize;
use utoipa::ToSchema;

use super::status::{DiskState, sources_of_people, weight};
use crate::view::context::View;
use crate::view::door::Door;
use annals_core::{InstanceId, Manifest, Result, Retention, Shown, SourceStatus, Time};
use annals_store::SessionFilter;

#[derive(Debug, Serialize, ToSchema)]
pub struct SourceCard {
    pub source: &'static str,
    pub provider_label: &'static str,
    #[schema(value_type = String)]
    pub source_status: SourceStatus,
    pub reason: Shown,
    pub setup_hint: &'static str,
    pub source_path: Option<Shown>,
    /// Sessions as lists count them: sub-agents belong to the session that started them, hidden ones are left out.
    pub session_count: i64,
    /// Messages of these sessions.
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

impl SourceCard {
    /// Its client was not found on this machine, and nothing of it is archived.
    pub fn is_absent(&self) -> bool {
        self.source_status == SourceStatus::Unavailable && self.files == 0 && self.session_count == 0
    }

    /// The cards of sources that exist, and those of the others. If none exists, all are shown.
    pub fn fold(cards: &[SourceCard]) -> (Vec<&SourceCard>, Vec<&SourceCard>) {
        let (absent, present): (Vec<_>, Vec<_>) = cards.iter().partition(|card| card.is_absent());
        if present.is_empty() { (absent, present) } else { (present, absent) }
    }
}

impl View<'_> {
    /// One card per source; several homes of a source are added up.
    pub fn cards(&self) -> Result<Vec<SourceCard>> {
        let instances = self.archive.instances()?;
        let totals = self.archive.source_totals(&SessionFilter::default())?;
        let mut cards = Vec::new();
        for source in self.used_sources()? {
            let manifest = source.manifest();
            let mut card = empty_card(manifest);
            let homes = self.archive.homes(Some(manifest.source))?;
            if let Some(home) = homes.iter().max_by_key(|home| weight(home.status)) {
                card.source_path = Some(self.door.raw(&home.root));
                card.source_status = home.status;
                card.reason = self.door.raw(&home.reason);
            }
            card.apply_disk_state(self.door, self.disk);
            if let Some((_, sessions, messages)) = totals.iter().find(|(of, ..)| of == manifest.source) {
                (card.session_count, card.message_count) = (*sessions, *messages);
            }
            let mut has_sessions = false;
            let mut last_activity: Option<Time> = None;
            let mut last_scanned: Option<Time> = None;
            for instance in instances.iter().filter(|instance| instance.source == manifest.source) {
                has_sessions |= instance.sessions > 0;
                card.files += instance.files;
                card.bytes += instance.bytes;
                card.gaps_open += instance.gaps;
                last_activity = last_activity.max(instance.last_activity);
                last_scanned = last_scanned.max(instance.last_scanned);
                if let Some(retention) = &manifest.retention {
                    let days = self.retention_days(instance.id, retention)?;
                    let idle_since = |within: i64| {
                        let before = self.now.micros().saturating_sub((days - within).saturating_mul(DAY));
                        self.archive.count_idle_since(instance.id, Time::from_micros(before))
                    };
                    card.retention_days =
                        Some(card.retention_days.map_or(days, |shortest| shortest.min(days)));
                    card.deleted_soon += idle_since(WARN_DAYS)?;
                    card.deleted_this_month += idle_since(MONTH_DAYS)?;
                }
            }
            card.last_activity_at = last_activity.map(Time::rfc3339);
            card.last_scanned_at = last_scanned.map(Time::rfc3339);
            let answers = has_sessions && card.source_status != SourceStatus::Error;
            if answers {
                if card.source_status != SourceStatus::Available {
                    card.reason = Shown::new("the client's files are gone; showing archived data");
                }
                card.source_status = SourceStatus::Available;
            }
            cards.push(card);
        }
        Ok(cards)
    }

    /// The retention from the client's own settings, as captured.
    fn retention_days(&self, instance: InstanceId, retention: &Retention) -> Result<i64> {
        let settings = self.archive.newest_content(instance, retention.file)?;
        let settings =
            settings.and_then(|raw| serde_json::from_slice::<serde_json::Value>(raw.expose()).ok());
        let days =
            settings.as_ref().and_then(|settings| settings.get(retention.key)).and_then(|days| days.as_i64());
        Ok(days.unwrap_or(retention.default_days).clamp(0, 1_000_000))
    }
}

/// The cards before anything was captured, from the state on disk.
pub fn cards_without_archive(door: &Door, disk: &[DiskState]) -> Vec<SourceCard> {
    let cards = sources_of_people().map(|source| {
        let mut card = empty_card(source.manifest());
        card.apply_disk_state(door, disk);
        card
    });
    cards.collect()
}

impl SourceCard {
    /// Applies the current state of the source's homes on disk, if known.
    fn apply_disk_state(&mut self, door: &Door, disk: &[DiskState]) {
        let homes = disk.iter().filter(|(name, ..)| *name == self.source);
        // Of several, the one that the card is already about.
        let is_same = |path: &str| Some(door.text(path)) == self.source_path;
        let shown = homes.max_by_key(|(_, path, status, _)| (weight(*status), is_same(path)));
        let Some((_, path, status, reason)) = shown else { return };
        self.source_path = Some(door.text(path));
        // What the last sync found in it says more than that it is there.
        let known = matches!(self.source_status, SourceStatus::Empty | SourceStatus::Unsupported);
        if !(known && *status == SourceStatus::Available) {
            self.source_status = *status;
            self.reason = door.text(reason);
        }
    }
}

fn empty_card(manifest: &'static Manifest) -> SourceCard {
    SourceCard {
        source: manifest.source,
        provider_label: manifest.label,
        source_status: SourceStatus::Unavailable,
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
    }
}

/// A warning is shown for sessions that the client deletes within this many days.
const WARN_DAYS: i64 = 7;
const MONTH_DAYS: i64 = 30;
const DAY: i64 = 86_400_000_000;
