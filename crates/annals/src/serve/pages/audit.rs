//! The audit page: what was found, kept and not understood for each source, and gaps with their next retry.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::{Frame, Theme, render};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::api::parameters::{Nothing, Params};
use crate::view;
use crate::view::format;
use crate::view::{Audit, ForgettingAudit, GapQuery, Paging, Unaccounted, View};
use annals_core::Result;

/// Most gaps and lines listed.
const LISTED: usize = 100;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    frame: Frame,
    tab: &'static str,
    sources: Vec<SourceHtml>,
    /// What, source, why, status, attempts, next retry.
    gaps: Vec<(String, String, String, String, i64, String)>,
    more_gaps: bool,
    /// When, why, sessions, bytes, hashes, state.
    forgotten: Vec<[String; 6]>,
    index: String,
}

struct SourceHtml {
    name: &'static str,
    label: &'static str,
    state: &'static str,
    percent: String,
    empty: bool,
    /// Layer, then found, kept, unknown, malformed, left out, forgotten.
    layers: Vec<(&'static str, [String; 6])>,
    unknown: Vec<(String, String)>,
    /// Files that nothing reads: path and size.
    unaccounted: Vec<(String, String)>,
    unknown_files: Vec<(String, String)>,
    /// Kind, treatment, files, bytes, reason.
    stores: Vec<(String, String, String, String, String)>,
    /// Table, rows, state, reason.
    tables: Vec<(String, String, &'static str, &'static str)>,
    malformed: Vec<(String, String)>,
    types: Vec<(String, String, String, String)>,
    surface: Vec<(&'static str, &'static str, String, &'static str)>,
    streams: Vec<(&'static str, u64, String, String)>,
}

pub(super) async fn page(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let theme = Theme::of(&headers);
    render(app, caller, move |view| audit_page(view, theme).map(Some)).await
}

fn audit_page(view: &View<'_>, theme: Theme) -> Result<AuditPage> {
    let (mut sources, mut labels) = (Vec::new(), Vec::new());
    for source in view.used_sources()? {
        let captured = view.captured(source)?;
        let audit = view.audit(source, &captured)?;
        labels.push((audit.source, audit.provider_label));
        sources.push(source_html(&audit));
    }
    let page = Paging { limit: LISTED as i64, cursor: None };
    let missing = view::MISSING.iter().map(ToString::to_string).collect();
    let query = GapQuery { source: None, statuses: missing, page };
    let gaps = view.gaps(&query)?;
    let index = view.index_audit()?;
    Ok(AuditPage {
        frame: Frame::new("/audit", "Audit", theme),
        tab: "audit",
        sources,
        more_gaps: gaps.next_cursor.is_some(),
        gaps: gaps
            .gaps
            .into_iter()
            .map(|gap| {
                let label = labels.iter().find(|(name, _)| *name == gap.source);
                let label = label.map_or(gap.source.clone(), |(_, label)| (*label).to_owned());
                let why = format!("{}: {}", gap.why.replace('_', " "), gap.reason);
                (gap.key.to_string(), label, why, gap.status, gap.attempts, gap.eta)
            })
            .collect(),
        forgotten: view.forgettings()?.iter().map(forgotten_row).collect(),
        index: format!(
            "{} in {}, {} on disk.",
            format::counted(index.passages, "passage"),
            format::counted(index.segments, "segment"),
            format::size(index.bytes)
        ),
    })
}

fn forgotten_row(one: &ForgettingAudit) -> [String; 6] {
    let state = match (&one.expires_at, one.is_complete) {
        (Some(until), _) => format!("in the trash until {}", format::minute(until)),
        (None, true) => "gone".to_owned(),
        (None, false) => "not complete".to_owned(),
    };
    [
        format::minute(&one.forgotten_at),
        one.reason.clone(),
        format::number(one.account["sessions"].as_i64().unwrap_or(0)),
        format::size(one.account["bytes"].as_u64().unwrap_or(0)),
        format::number(one.hashes),
        state,
    ]
}

fn file_list(files: &[Unaccounted]) -> Vec<(String, String)> {
    let size = |bytes: u64| format::size(i64::try_from(bytes).unwrap_or(i64::MAX));
    let mut list: Vec<(String, String)> =
        files.iter().take(LISTED).map(|file| (file.path.to_string(), size(file.bytes))).collect();
    if files.len() > LISTED {
        list.push(("…".to_owned(), format!("{} more", files.len() - LISTED)));
    }
    list
}

fn source_html(audit: &Audit) -> SourceHtml {
    let number = |number: u64| format::number(i64::try_from(number).unwrap_or(i64::MAX));
    let size = |bytes: u64| format::size(i64::try_from(bytes).unwrap_or(i64::MAX));
    let lines = &audit.lines;
    let (files, bytes) = (&audit.files, &audit.bytes);
    let types = audit.types.iter().flat_map(|(status, kinds)| {
        kinds.iter().map(move |(kind, sum)| {
            (kind.clone(), status.clone(), format::number(sum.lines), format::size(sum.bytes))
        })
    });
    let listed = |fields: Vec<String>| match fields.len() {
        0 => "–".to_owned(),
        1..=6 => fields.join(", "),
        more => format!("{} and {} more", fields[..5].join(", "), more - 5),
    };
    SourceHtml {
        name: audit.source,
        label: audit.provider_label,
        state: if audit.percent.is_none_or(|percent| percent >= 100.0) { "ok" } else { "failed" },
        percent: audit.percent.map_or_else(|| "nothing found".to_owned(), |percent| format!("{percent} %")),
        empty: files.found == 0 && lines.found == 0,
        layers: vec![
            (
                "files",
                [files.found, files.kept, files.unaccounted, files.gaps, files.left_out, files.forgotten]
                    .map(number),
            ),
            (
                "bytes",
                [bytes.found, bytes.kept, bytes.unaccounted, bytes.gaps, bytes.left_out, bytes.forgotten]
                    .map(size),
            ),
            (
                "lines",
                [
                    lines.found,
                    lines.kept.lines,
                    lines.unknown.lines,
                    lines.malformed.lines,
                    lines.skipped.lines,
                    lines.forgotten.lines,
                ]
                .map(format::number),
            ),
        ],
        unknown: audit
            .unknown
            .iter()
            .take(LISTED)
            .map(|line| {
                let client = line.client_version.as_ref().map_or(String::new(), |v| format!(", client {v}"));
                (line.kind.to_string(), format!("{}{client}", format::counted(line.lines, "line")))
            })
            .collect(),
        unaccounted: file_list(&audit.unaccounted),
        unknown_files: file_list(&audit.unknown_files),
        stores: audit
            .stores
            .iter()
            .map(|line| {
                let treatment = line.treatment.replace('_', " ");
                let (files, bytes) = (number(line.files), size(line.bytes));
                (line.store.to_string(), treatment, files, bytes, line.reason.to_string())
            })
            .collect(),
        tables: audit
            .tables
            .iter()
            .map(|line| {
                let table = format!("{}/{}", line.database, line.table);
                let state = if line.read { "read" } else { "not read" };
                (table, format::number(line.rows), state, line.reason)
            })
            .collect(),
        malformed: audit
            .malformed
            .iter()
            .take(LISTED)
            .map(|line| (line.path.to_string(), format!("{} at byte {}", line.what, number(line.offset))))
            .collect(),
        types: types.collect(),
        surface: audit
            .surface
            .iter()
            .map(|line| {
                let surface = line.surface;
                (surface.item, surface.state.label(), format::number(line.count), surface.reason)
            })
            .collect(),
        streams: audit
            .streams
            .iter()
            .map(|stream| {
                let undeclared = listed(stream.undeclared.iter().cloned().collect());
                let unfilled = listed(stream.never_filled.iter().map(|name| (*name).to_owned()).collect());
                (stream.stream, stream.sampled, undeclared, unfilled)
            })
            .collect(),
    }
}
