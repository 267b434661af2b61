//! The part of an audit that is not on disk: what imports found in their containers, and what was requested from
//! providers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::view::context::View;
use annals_core::Result;
use annals_sources::Source;

/// Files and bytes in containers, by what happened to them.
#[derive(Debug, Default)]
pub struct Imported {
    pub kept: (u64, u64),
    /// By reason.
    pub left_out: BTreeMap<String, (u64, u64)>,
    pub unknown: Vec<(String, u64)>,
    /// Requested from the provider: items and bytes fetched. The size of what is still missing is unknown.
    pub fetched: (u64, u64),
    pub gaps: u64,
}

impl View<'_> {
    pub fn imported(&self, source: &'static dyn Source) -> Result<Imported> {
        let mut imported = Imported::default();
        if source.import().is_none() {
            return Ok(imported);
        }
        let mut contents = self.archive.contents();
        self.archive.each_record(source.manifest().source, "imports", None, (0, 0), &mut |record| {
            let bytes =
                contents.span_of_version(record.file, record.file_version, record.encoding, record.span)?;
            let account: Value = serde_json::from_slice(bytes.expose()).unwrap_or_default();
            let name = account["name"].as_str().unwrap_or_default();
            for member in account["members"].as_array().into_iter().flatten() {
                let size = member["bytes"].as_u64().unwrap_or(0);
                let text = |field: &str| member[field].as_str().unwrap_or_default();
                match text("verdict") {
                    "taken" => imported.kept = (imported.kept.0 + 1, imported.kept.1 + size),
                    // Its members are reported one by one.
                    "opened" => {}
                    "unknown" => imported.unknown.push((format!("{name}: {}", text("name")), size)),
                    _ => {
                        let sum = imported.left_out.entry(text("what").to_owned()).or_default();
                        *sum = (sum.0 + 1, sum.1 + size);
                    }
                }
            }
            Ok(true)
        })?;
        if source.live().is_some() {
            let account = self.archive.live_account(source.manifest().source)?;
            (imported.fetched, imported.gaps) = ((account.things, account.bytes), account.gaps);
            if account.given_up > 0 {
                let why = "could not be fetched: see `annals gaps --all`";
                imported.left_out.entry(why.to_owned()).or_default().0 += account.given_up;
            }
        }
        Ok(imported)
    }
}
