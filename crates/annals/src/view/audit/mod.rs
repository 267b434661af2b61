//! The audit: what was found, kept and left out, and why; in files, bytes, lines, fields and provider coverage.

pub(super) mod accounts;
pub(super) mod cards;
pub(super) mod doctor;
pub(super) mod failures;
pub(super) mod gaps;
pub(super) mod imports;
pub(super) mod secret_trace;
pub(super) mod secrets;
pub(super) mod status;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::context::View;
use super::door::Door;
use super::records::RecordsQuery;
use accounts::Sum;
use annals_core::{FORGOTTEN_FILES, Result, Shown, Stream, Surface, Time, UNKNOWN_FILES};
use annals_sources::{REPOSITORIES, Source};
use annals_store::{FileRow, ForgettingState};
use imports::Imported;

/// Records per stream whose fields are compared with its declaration.
const SAMPLE: u64 = 200;

/// The files of a source on disk, as listed without opening any.
#[derive(Debug, Default)]
pub struct OnDisk {
    /// Path, size and kind of files to keep.
    pub found: Vec<(String, u64, Cow<'static, str>)>,
    /// Files, bytes, kind and reason of what is left out.
    pub left_out: Vec<(u64, u64, Cow<'static, str>, Cow<'static, str>)>,
    pub unaccounted: Vec<(String, u64)>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Audit {
    pub source: &'static str,
    pub provider_label: &'static str,
    /// Share of the bytes found that are kept or left out on purpose, or of the files if what is missing has no known
    /// size; 100 only if nothing is unknown or missing, null if nothing was found.
    pub percent: Option<f64>,
    pub files: Balance,
    pub bytes: Balance,
    pub lines: Lines,
    /// Lines by status and type.
    pub types: BTreeMap<String, BTreeMap<String, Sum>>,
    pub stores: Vec<StoreLine>,
    pub unaccounted: Vec<Unaccounted>,
    /// Files of unknown kind: kept, and read by nothing.
    pub unknown_files: Vec<Unaccounted>,
    pub unknown: Vec<LineType>,
    pub malformed: Vec<Malformed>,
    /// Every table of the client's databases, as the last sync found them.
    pub tables: Vec<TableLine>,
    pub streams: Vec<StreamAudit>,
    pub surface: Vec<SurfaceLine>,
}

/// found = kept + forgotten + left_out + unaccounted + gaps.
#[derive(Debug, Default, Clone, Copy, Serialize, ToSchema)]
pub struct Balance {
    pub found: u64,
    pub kept: u64,
    /// Of `kept`: no longer on disk, or not in a configured home.
    pub archived_only: u64,
    /// Forgotten on request, with all content.
    pub forgotten: u64,
    pub left_out: u64,
    pub unaccounted: u64,
    /// Declared but not captured yet.
    pub gaps: u64,
}

/// found = kept + unknown + malformed + skipped + forgotten.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Lines {
    pub found: i64,
    pub kept: Sum,
    pub unknown: Sum,
    pub malformed: Sum,
    pub skipped: Sum,
    /// Blanked on request, in files that are kept and in those that are not.
    pub forgotten: Sum,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct StoreLine {
    #[schema(value_type = String)]
    pub store: Cow<'static, str>,
    pub treatment: &'static str,
    pub reason: Shown,
    pub files: u64,
    pub bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Unaccounted {
    pub path: Shown,
    pub bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct LineType {
    pub kind: Shown,
    pub lines: i64,
    pub bytes: i64,
    /// The oldest client version whose transcripts contain it.
    pub client_version: Option<Shown>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Malformed {
    pub path: Shown,
    pub offset: u64,
    pub length: u64,
    pub what: Shown,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct TableLine {
    pub database: Shown,
    pub table: Shown,
    pub rows: i64,
    /// Whether its rows are kept as records.
    pub read: bool,
    pub reason: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct StreamAudit {
    pub stream: &'static str,
    /// Number of records compared.
    pub sampled: u64,
    pub undeclared: BTreeSet<String>,
    pub never_filled: BTreeSet<&'static str>,
    pub other_type: BTreeSet<String>,
    /// Fields that are previews in lists, and how to get the complete value.
    pub previews: BTreeMap<&'static str, &'static str>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct SurfaceLine {
    #[serde(flatten)]
    pub surface: Surface,
    pub count: i64,
}

impl View<'_> {
    pub fn audit(&self, source: &'static dyn Source, disk: &OnDisk) -> Result<Audit> {
        let manifest = source.manifest();
        let imported = self.imported(source)?;
        let Balances { files, bytes, archived_only } = self.balance(source, disk, &imported)?;
        let accounts = self.accounts(Some(manifest.source))?;
        let mut lines = Lines::default();
        let mut types: BTreeMap<String, BTreeMap<String, Sum>> = BTreeMap::new();
        for account in accounts.iter().filter(|account| !account.twin) {
            lines.found += account.lines;
            for (status, kinds) in &account.types {
                for (kind, more) in kinds {
                    let sum = types.entry(status.clone()).or_default().entry(kind.clone()).or_default();
                    *sum = Sum { lines: sum.lines + more.lines, bytes: sum.bytes + more.bytes };
                }
            }
            for (sum, more) in [
                (&mut lines.kept, account.kept),
                (&mut lines.unknown, account.unknown),
                (&mut lines.malformed, account.malformed),
                (&mut lines.skipped, account.skipped),
                (&mut lines.forgotten, account.forgotten),
            ] {
                sum.lines += more.lines;
                sum.bytes += more.bytes;
            }
        }
        let missing =
            bytes.unaccounted + bytes.gaps + (lines.unknown.bytes + lines.malformed.bytes).max(0) as u64;
        let malformed =
            self.archive.malformed_lines(manifest.source)?.into_iter().map(|(path, span, what)| Malformed {
                path: self.door.text(&path),
                offset: span.offset,
                length: span.length,
                what: self.door.text(&what),
            });
        let mut streams = Vec::new();
        for stream in manifest.streams {
            streams.push(self.stream_audit(source, stream)?);
        }
        let mut surface = Vec::new();
        for line in manifest.surface {
            let stream = manifest.stream(line.stream);
            let count = stream.map_or(Ok(0), |stream| {
                self.archive.count_stream(manifest.source, stream.name, stream.rows)
            })?;
            let document = line.live.map(|document| format!("live/{document}.json"));
            let is_fetched =
                document.is_some_and(|path| accounts.iter().any(|file| file.path.as_str() == path));
            let line = if is_fetched { line.once_collected() } else { *line };
            surface.push(SurfaceLine { surface: line, count });
        }
        Ok(Audit {
            source: manifest.source,
            provider_label: manifest.label,
            percent: (files.found > 0 || lines.found > 0)
                .then(|| percent(bytes.found, missing).min(percent(files.found, imported.gaps))),
            files,
            bytes,
            lines,
            types,
            stores: stores(self.door, disk, &imported, &archived_only),
            unaccounted: disk
                .unaccounted
                .iter()
                .chain(&imported.unknown)
                .map(|(path, bytes)| Unaccounted { path: self.door.text(path), bytes: *bytes })
                .collect(),
            unknown_files: self.unknown_files(source)?,
            unknown: self.unknown_kinds(source)?,
            malformed: malformed.collect(),
            tables: self.tables(source)?,
            streams,
            surface,
        })
    }
}

impl View<'_> {
    fn tables(&self, source: &'static dyn Source) -> Result<Vec<TableLine>> {
        let manifest = source.manifest();
        let mut lines = Vec::new();
        for (name, text) in self.archive.table_counts(manifest.source)? {
            let counted: Value = serde_json::from_str(&text).unwrap_or_default();
            let pattern = counted["pattern"].as_str().unwrap_or(&name);
            let database = counted["database"].as_str().unwrap_or_default();
            for (table, rows) in counted["tables"].as_object().into_iter().flatten() {
                let mut declared = manifest.databases.iter().filter(|declared| declared.pattern == pattern);
                let declared = declared.find(|declared| declared.tables().contains(&table.as_str()));
                lines.push(TableLine {
                    database: self.door.text(database),
                    table: self.door.text(table),
                    rows: rows.as_i64().unwrap_or(0),
                    read: declared.is_some_and(|declared| declared.is_read()),
                    reason: declared.map_or("unknown table", |declared| declared.why),
                });
            }
        }
        Ok(lines)
    }

    fn unknown_files(&self, source: &'static dyn Source) -> Result<Vec<Unaccounted>> {
        let files = self.archive.files(Some(source.manifest().source))?.into_iter();
        let unknown = files.filter(|file| file.store == UNKNOWN_FILES && !file.gone);
        let named = unknown.map(|file| Unaccounted {
            path: self.door.text(&file.path),
            bytes: u64::try_from(file.size).unwrap_or(0),
        });
        Ok(named.collect())
    }

    /// Kinds of lines and of their contents that no reader knows: they are kept, and shown as they are.
    pub fn unknown_kinds(&self, source: &'static dyn Source) -> Result<Vec<LineType>> {
        let unknown = self.archive.unknown_types(source.manifest().source)?.into_iter();
        let unknown = unknown.map(|unknown| LineType {
            kind: self.door.text(&unknown.kind),
            lines: unknown.lines,
            bytes: unknown.bytes,
            client_version: unknown.client_version.map(|version| self.door.text(&version)),
        });
        Ok(unknown.collect())
    }
}

/// What was forgotten, named by nothing but hashes.
#[derive(Debug, Serialize, ToSchema)]
pub struct ForgettingAudit {
    pub id: i64,
    pub forgotten_at: String,
    /// What was named: a session, project, time, text, secret, or a rule of the settings.
    pub reason: String,
    /// Until then it is in the trash.
    pub expires_at: Option<String>,
    /// False until an interrupted run is finished.
    pub is_complete: bool,
    /// Hashes that keep it from coming back.
    pub hashes: i64,
    /// Numbers only.
    pub account: Value,
}

impl View<'_> {
    pub fn forgettings(&self) -> Result<Vec<ForgettingAudit>> {
        let rows = self.archive.forgettings()?.into_iter().map(|row| {
            let mut account: Value = serde_json::from_str(&row.account).unwrap_or_default();
            if let Some(fields) = account.as_object_mut() {
                fields.remove("titles");
            }
            ForgettingAudit {
                id: row.id,
                forgotten_at: row.at.rfc3339(),
                reason: row.reason,
                expires_at: row.expires_at.map(Time::rfc3339),
                is_complete: row.state == ForgettingState::Done,
                hashes: row.hashes,
                account,
            }
        });
        Ok(rows.collect())
    }
}

/// What the text index contains, and what it leaves out.
#[derive(Debug, Serialize, ToSchema)]
pub struct IndexAudit {
    pub passages: i64,
    pub segments: i64,
    pub bytes: i64,
    /// Of these, fingerprints of code, used by `annals blame`.
    pub lineage_bytes: i64,
    pub indexed: &'static [&'static str],
    pub left_out: &'static [&'static str],
}

impl View<'_> {
    pub fn index_audit(&self) -> Result<IndexAudit> {
        let (segments, passages, bytes) = self.archive.index_size()?;
        Ok(IndexAudit {
            passages,
            segments,
            bytes,
            lineage_bytes: self.archive.fingerprint_size()?,
            indexed: &[
                "prompts, answers and thinking; prompts that only a client's history file has",
                "names and inputs of tool calls, and paths of the files they touched",
                "tool outputs, including those stored in separate files",
                "the newest version of skills, commands, prompts, rules, instructions and memory",
                "current session titles",
                "fingerprints of lines that tool calls wrote, and of a quarter of those they read",
            ],
            left_out: &[
                "text after the first 256 KiB of a message, input or output",
                "words longer than 64 letters, such as Base64 data",
                "context that the client adds, and its internal records",
                "images and settings",
                "copies in forks and resumed sessions: found only in the original session",
            ],
        })
    }

    /// The files that were there at the last sync, for callers who may not see the disk.
    pub fn captured(&self, source: &'static dyn Source) -> Result<OnDisk> {
        if source.import().is_some() {
            return Ok(OnDisk::default());
        }
        let files = self.archive.files(Some(source.manifest().source))?.into_iter();
        let files = files.filter(|file| !file.gone && !file.document);
        // Files of repositories are in the archive only.
        let files = files.filter(|file| !file.path.starts_with(REPOSITORIES));
        let found = files.map(|file| (file.path, u64::try_from(file.size).unwrap_or(0), file.store.into()));
        let mut disk = OnDisk { found: found.collect(), ..OnDisk::default() };
        for survey in self.archive.home_surveys(source.manifest().source)? {
            let left_out = survey.left_out.into_iter();
            let left_out = left_out.map(|left| (left.files, left.bytes, left.store.into(), left.why.into()));
            disk.left_out.extend(left_out);
            disk.unaccounted.extend(survey.unaccounted);
        }
        Ok(disk)
    }

    fn balance(&self, source: &'static dyn Source, disk: &OnDisk, imported: &Imported) -> Result<Balances> {
        let mut captured: HashMap<String, Vec<FileRow>> = HashMap::new();
        for file in self.archive.files(Some(source.manifest().source))? {
            captured.entry(file.path.clone()).or_default().push(file);
        }
        let (mut files, mut bytes) = (Balance::default(), Balance::default());
        let names = self.archive.forgotten_names()?;
        for (path, size, _) in &disk.found {
            // Several homes may contain a file of this name.
            let mut take = |path: &str| {
                let files = captured.get_mut(path)?;
                files.iter().position(|file| !file.gone).map(|at| files.swap_remove(at))
            };
            let is_forgotten = path.starts_with(FORGOTTEN_FILES);
            let captured_file = take(path);
            if is_forgotten || captured_file.is_none() && take(&names.file_name(path)).is_some() {
                files.forgotten += 1;
                bytes.forgotten += size;
                continue;
            }
            files.kept += u64::from(captured_file.is_some());
            files.gaps += u64::from(captured_file.is_none());
            *(if captured_file.is_some() { &mut bytes.kept } else { &mut bytes.gaps }) += size;
        }
        // Rows of databases are counted with their databases, files created by imports with what was imported.
        let rest = captured.into_values().flatten().filter(|file| !file.document);
        let mut archived_only = ArchivedOnly::new();
        for file in rest.filter(|_| source.import().is_none()) {
            let size = u64::try_from(file.size).unwrap_or(0);
            if file.path.starts_with(FORGOTTEN_FILES) {
                files.forgotten += 1;
                bytes.forgotten += size;
                continue;
            }
            for (sums, value) in [(&mut files, 1), (&mut bytes, size)] {
                sums.kept += value;
                sums.archived_only += value;
            }
            let why = match file.path.starts_with(REPOSITORIES) {
                true => "in repositories that sessions ran in",
                false => "no longer in a configured home",
            };
            let sum = archived_only.entry((file.store, why)).or_default();
            *sum = (sum.0 + 1, sum.1 + size);
        }
        for (count, size, ..) in &disk.left_out {
            files.left_out += count;
            bytes.left_out += size;
        }
        files.kept += imported.kept.0 + imported.fetched.0;
        bytes.kept += imported.kept.1 + imported.fetched.1;
        files.gaps += imported.gaps;
        for (count, size) in imported.left_out.values() {
            files.left_out += count;
            bytes.left_out += size;
        }
        let unaccounted = disk.unaccounted.iter().chain(&imported.unknown);
        files.unaccounted = unaccounted.clone().count() as u64;
        bytes.unaccounted = unaccounted.map(|(_, size)| size).sum();
        for sums in [&mut files, &mut bytes] {
            sums.found = sums.kept + sums.forgotten + sums.left_out + sums.unaccounted + sums.gaps;
        }
        Ok(Balances { files, bytes, archived_only })
    }
}

struct Balances {
    files: Balance,
    bytes: Balance,
    archived_only: ArchivedOnly,
}

/// Files and bytes that are in the archive but not in a configured home, by kind and reason.
type ArchivedOnly = BTreeMap<(String, &'static str), (u64, u64)>;

/// Never rounded up to 100.
fn percent(found: u64, missing: u64) -> f64 {
    if missing == 0 {
        return 100.0;
    }
    let share = 100.0 * (1.0 - missing as f64 / found.max(missing) as f64);
    (share * 100.0).floor().min(9_999.0) / 100.0
}

fn stores(door: &Door, disk: &OnDisk, imported: &Imported, archived_only: &ArchivedOnly) -> Vec<StoreLine> {
    let mut lines: BTreeMap<(&'static str, &str, &str), (u64, u64)> = BTreeMap::new();
    for (_, size, store) in &disk.found {
        let sum = lines.entry(("captured", store, "")).or_default();
        *sum = (sum.0 + 1, sum.1 + size);
    }
    for (files, bytes, store, why) in &disk.left_out {
        let sum = lines.entry(("left_out", store, why)).or_default();
        *sum = (sum.0 + files, sum.1 + bytes);
    }
    let lines = lines.into_iter().map(|((treatment, store, reason), (files, bytes))| StoreLine {
        store: store.to_owned().into(),
        treatment,
        reason: Shown::new(reason),
        files,
        bytes,
    });
    let imported_lines = [("imported files", imported.kept), ("provider responses", imported.fetched)];
    let imported_lines = imported_lines.into_iter().filter(|(_, (files, _))| *files > 0);
    let imported_lines = imported_lines.map(|(store, (files, bytes))| StoreLine {
        store: store.into(),
        treatment: "captured",
        reason: Shown::default(),
        files,
        bytes,
    });
    let others = imported.left_out.iter().map(|(why, (files, bytes))| StoreLine {
        store: "imported files".into(),
        treatment: "left_out",
        reason: door.text(why),
        files: *files,
        bytes: *bytes,
    });
    let archived_only = archived_only.iter().map(|((store, why), (files, bytes))| StoreLine {
        store: store.clone().into(),
        treatment: "captured",
        reason: Shown::new(*why),
        files: *files,
        bytes: *bytes,
    });
    lines.chain(archived_only).chain(imported_lines).chain(others).collect()
}

impl View<'_> {
    /// Compares the fields of records with those the manifest declares.
    fn stream_audit(&self, source: &'static dyn Source, stream: &'static Stream) -> Result<StreamAudit> {
        let query = RecordsQuery { limit: Some(SAMPLE), ..RecordsQuery::all(source, stream) };
        let mut audit = StreamAudit {
            stream: stream.name,
            sampled: 0,
            undeclared: BTreeSet::new(),
            never_filled: stream.declared().map(|field| field.name).collect(),
            other_type: BTreeSet::new(),
            previews: stream.declared().filter_map(|field| Some((field.name, field.preview?))).collect(),
        };
        // A stream that declares little more than its key returns its records as they were found.
        let open = stream.fields.len() <= 1;
        // Counted, not shown.
        let end = self.noting_nothing().records(&query, &mut |record| {
            for (name, value) in record.data.value().as_object().into_iter().flatten() {
                let Some(field) = stream.declared().find(|field| field.name == name) else {
                    if !open && !name.ends_with("_truncated") && !name.ends_with("_full_bytes") {
                        audit.undeclared.insert(name.clone());
                    }
                    continue;
                };
                if !value.is_null() {
                    audit.never_filled.remove(field.name);
                }
                if !field.kind.split('|').any(|kind| is_kind(value, kind)) {
                    audit.other_type.insert(format!("{name} is not {}", field.kind));
                }
            }
            Ok(())
        })?;
        audit.sampled = end.count;
        if audit.sampled == 0 {
            audit.never_filled.clear();
        }
        Ok(audit)
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        _ => false,
    }
}
