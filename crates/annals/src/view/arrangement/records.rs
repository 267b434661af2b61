//! Arrangements as records, for lists and exports.

use serde_json::json;

use crate::view::context::View;
use crate::view::door::Extent;
use crate::view::records::Envelope;
use annals_core::{ArrangedKind, Result, ShownJson, in_address};
use annals_store::ArrangementRow;

impl View<'_> {
    /// Visits records with their row ids: all versions of one key, or what counts of every key.
    pub(in crate::view) fn each_arrangement(
        &self,
        key: Option<&str>,
        from: (i64, i64),
        full: bool,
        visit: &mut dyn FnMut(Envelope, i64) -> Result<bool>,
    ) -> Result<()> {
        self.archive.each_arrangement(key.is_some(), from, &mut |row| {
            let record = self.arrangement_record(&row, full);
            match key.is_some_and(|key| key != record.key) {
                true => Ok(true),
                false => Ok(visit(record, row.id)?),
            }
        })?;
        Ok(())
    }

    fn arrangement_record(&self, row: &ArrangementRow, full: bool) -> Envelope {
        let of = &row.of;
        let parts = [of.kind.name(), &of.source, &of.target, &of.message, row.field.name(), &row.item];
        let parts = parts.map(|part| self.door.text(part).to_string());
        let key: Vec<String> =
            parts.iter().filter(|part| !part.is_empty()).map(|part| in_address(part)).collect();
        let key = key.join("/");
        let [kind, source, target, message, field, tag] = parts;
        let optional = |text: String| Some(text).filter(|text| !text.is_empty());
        let value = row.value.as_ref().map(|value| String::from_utf8_lossy(value.expose()).into_owned());
        let (value, full_bytes) = match &value {
            Some(value) => {
                let (shown, full_bytes) = self.door.preview(value, Extent::of(full));
                (Some(shown), full_bytes)
            }
            None => (None, None),
        };
        let at = row.at.rfc3339();
        let data = json!({
            "id": key,
            "at": at,
            "kind": kind,
            "source": optional(source),
            "target": target,
            "message_id": optional(message),
            "field": field,
            "tag": optional(tag),
            "value": value,
        });
        let is_session = matches!(of.kind, ArrangedKind::Session | ArrangedKind::Message);
        Envelope {
            key,
            version: row.version,
            session_id: is_session.then(|| of.target.clone()),
            deleted_at: value.is_none().then(|| at.clone()),
            at: Some(at),
            removed: false,
            truncated: full_bytes.is_some(),
            full_bytes,
            data: ShownJson::new(data),
        }
    }
}
