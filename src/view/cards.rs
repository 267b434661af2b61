//! Source cards: what each source of the registry has, and how to set it up when it has nothing.

use serde::Serialize;

use super::door::Door;
use crate::model::{Result, Scope, Shown, Time};
use crate::sources::registry;
use crate::store::Store;

#[derive(Debug, Serialize)]
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
}

/// What the disk says of a source's homes now: path, status and reason.
pub type DiskState = (&'static str, String, String, String);

/// One card a source; where the archive has several homes of it, their sums.
pub fn cards(
    scope: &Scope,
    store: Option<&Store>,
    door: &Door,
    disk: &[DiskState],
) -> Result<Vec<SourceCard>> {
    let instances = match store {
        Some(store) => store.instances(scope)?,
        None => Vec::new(),
    };
    let mut cards = Vec::new();
    for source in registry() {
        let manifest = source.manifest();
        let homes = disk.iter().filter(|(name, ..)| *name == manifest.source);
        let mut card = SourceCard {
            source: manifest.source,
            provider_label: manifest.label,
            source_status: "unavailable".into(),
            reason: Shown::new("nothing found"),
            setup_hint: manifest.setup_hint,
            source_path: None,
            session_count: 0,
            message_count: 0,
            last_activity_at: None,
            last_scanned_at: None,
            files: 0,
            bytes: 0,
            gaps_open: 0,
        };
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
        }
        card.last_activity_at = last_activity.map(Time::rfc3339);
        card.last_scanned_at = last_scanned.map(Time::rfc3339);
        let answers = card.session_count > 0 && card.source_status != "error";
        if answers {
            if card.source_status != "available" {
                card.reason = Shown::new("the client's files are gone; the archive still answers");
            }
            card.source_status = "available".into();
        }
        cards.push(card);
    }
    Ok(cards)
}
