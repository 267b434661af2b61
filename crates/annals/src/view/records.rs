//! Native records of a stream, as its manifest declares them.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::context::View;
use super::door::Extent;
use super::paging::{Paging, read_numbers, write_numbers};
use super::session::branches::Kin;
use super::session::entry_builder::EntryBuilder;
use super::session::list::{SessionQuery, SessionView, session_cursor};
use annals_core::{ContentKey, Result, Rows, ShownJson, Stream, Time};
use annals_sources::Source;
use annals_store::{CallRow, Contents, MessageRow, RecordRow, RowPlace, SessionFilter};

pub struct RecordsQuery {
    pub source: &'static dyn Source,
    pub stream: &'static Stream,
    pub key: Option<String>,
    /// Only records whose keys begin with this.
    pub within: Option<String>,
    pub limit: Option<u64>,
    /// Continue after this record.
    pub cursor: Option<String>,
    pub full: bool,
}

/// Some records of a stream, and where the next ones start.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordPage {
    pub records: Vec<ShownJson>,
    pub next_cursor: Option<String>,
}

impl View<'_> {
    pub fn record_page(&self, query: &RecordsQuery) -> Result<RecordPage> {
        let limit = query.limit.unwrap_or(u64::MAX - 1);
        let wider = RecordsQuery {
            limit: Some(limit + 1),
            cursor: query.cursor.clone(),
            key: query.key.clone(),
            within: query.within.clone(),
            ..*query
        };
        let (mut records, mut last, mut next_cursor) = (Vec::new(), None, None);
        self.each(&wider, &mut |record, cursor| {
            if records.len() as u64 == limit {
                next_cursor = last.take();
            } else {
                records.push(record);
                last = Some(cursor);
            }
            Ok(())
        })?;
        Ok(RecordPage { records, next_cursor })
    }

    /// Hands out records one at a time.
    pub fn records(
        &self,
        query: &RecordsQuery,
        visit: &mut dyn FnMut(ShownJson) -> Result<()>,
    ) -> Result<u64> {
        self.each(query, &mut |record, _| visit(record))
    }

    /// Each record comes with the cursor that leads behind it.
    fn each(
        &self,
        query: &RecordsQuery,
        visit: &mut dyn FnMut(ShownJson, String) -> Result<()>,
    ) -> Result<u64> {
        let source = query.source.manifest().source;
        let builder = EntryBuilder { view: self, source: query.source, full: query.full, changes: false };
        let mut contents = self.archive.contents();
        let mut count = 0;
        let mut hand_out = |record: ShownJson, cursor: String| -> Result<bool> {
            visit(record, cursor)?;
            count += 1;
            Ok(query.limit.is_none_or(|limit| count < limit))
        };
        match query.stream.rows {
            Rows::Sessions | Rows::Agents => {
                let filter = SessionFilter {
                    source: Some(source.into()),
                    id: query.key.clone(),
                    with_agents: true,
                    only_agents: query.stream.rows == Rows::Agents,
                    ..SessionFilter::default()
                };
                let limit = i64::try_from(query.limit.unwrap_or(500)).unwrap_or(500).clamp(1, 501);
                let mut page = SessionQuery {
                    filter,
                    page: Paging { limit, cursor: query.cursor.clone() },
                    brief: false,
                };
                'pages: loop {
                    let list = self.sessions(&page)?;
                    // The filter takes the start of an id too; a key is whole.
                    let is_asked = |id: &str| query.key.as_deref().is_none_or(|key| key == id);
                    for session in list.sessions.iter().filter(|session| is_asked(&session.session_id)) {
                        if !hand_out(session_record(query, session)?, session_cursor(session))? {
                            break 'pages;
                        }
                    }
                    page.page.cursor = list.next_cursor;
                    if page.page.cursor.is_none() {
                        break;
                    }
                }
            }
            Rows::Messages => {
                let key = query
                    .key
                    .as_deref()
                    .map(|key| ContentKey::from_hex(key).unwrap_or(ContentKey::of(&[key.as_bytes()])));
                let mut kin = Kin::default();
                self.archive.each_message(source, key, row_place(query)?, &mut |row| {
                    let cursor = write_numbers(&[row.session_id, row.file, row.span.offset as i64]);
                    Ok(hand_out(message_record(&builder, query, &mut contents, &mut kin, &row)?, cursor)?)
                })?;
            }
            Rows::Calls => {
                self.archive.each_call(source, query.key.as_deref(), row_place(query)?, &mut |row| {
                    let cursor = write_numbers(&[row.session_id, row.file, row.span.offset as i64]);
                    Ok(hand_out(call_record(&builder, &mut contents, &row)?, cursor)?)
                })?;
            }
            Rows::Records => {
                let [after] = query.cursor.as_deref().map_or(Ok([0]), read_numbers)?;
                self.archive.each_record(
                    source,
                    query.stream.name,
                    query.key.as_deref(),
                    after,
                    &mut |row| {
                        if query.within.as_deref().is_some_and(|start| !row.key.starts_with(start)) {
                            return Ok(true);
                        }
                        let cursor = write_numbers(&[row.id]);
                        Ok(hand_out(plain_record(&builder, query.stream.name, &mut contents, &row)?, cursor)?)
                    },
                )?;
            }
        }
        Ok(count)
    }
}

fn row_place(query: &RecordsQuery) -> Result<RowPlace> {
    let [session, file, place] = query.cursor.as_deref().map_or(Ok([0, 0, -1]), read_numbers)?;
    Ok(RowPlace(session, file, place))
}

/// The declared fields: from the session itself, else from what only this client knows.
fn session_record(query: &RecordsQuery, session: &SessionView) -> Result<ShownJson> {
    let common = serde_json::to_value(session)?;
    let nothing = Value::Null;
    let native = session.native.as_ref().map_or(&nothing, ShownJson::value);
    let mut record = Map::new();
    for field in query.stream.fields {
        let value = match field.from.strip_prefix("native.") {
            Some(name) => native.get(name),
            None => common.get(field.from).or_else(|| native.get(field.from)),
        };
        record.insert(field.name.into(), value.cloned().unwrap_or(Value::Null));
    }
    Ok(ShownJson::new(Value::Object(record)))
}

fn message_record(
    builder: &EntryBuilder<'_>,
    query: &RecordsQuery,
    contents: &mut Contents<'_>,
    kin: &mut Kin,
    row: &MessageRow,
) -> Result<ShownJson> {
    let entry = builder.message(contents, row)?;
    let bytes = contents.span(row.file, row.span)?;
    let native = builder.view.door.json(Value::Object(query.source.native(bytes.expose())));
    let mut record = json!({
        "id": entry.id,
        "session_id": row.session,
        "role": entry.role,
        "kind": entry.kind,
        "at": entry.at,
        "model": entry.model,
        "copied": row.copied,
        "blocks": entry.blocks,
        "native": native,
    });
    if let Some((node, children)) = kin.of(builder.view.archive, row)? {
        record["parent_id"] = json!(node.parent.map(ContentKey::hex));
        record["children_ids"] = json!(children.into_iter().map(ContentKey::hex).collect::<Vec<_>>());
        record["on_current_branch"] = json!(node.current);
    }
    Ok(ShownJson::new(record))
}

fn call_record(builder: &EntryBuilder<'_>, contents: &mut Contents<'_>, row: &CallRow) -> Result<ShownJson> {
    let parts = builder.view.archive.call_parts(builder.source.manifest().source, &[row])?;
    let input = builder.input(contents, row)?;
    let output = builder.output_from(contents, row, parts.output(row))?;
    let mut record = json!({
        "id": row.key.hex(),
        "session_id": row.session,
        "call_id": builder.view.door.text(&row.call_id),
        "name": row.name,
        "kind": row.kind.name(),
        "title": builder.view.door.raw(&row.title),
        "at": row.at.map(Time::rfc3339),
        "model": row.model,
        "ok": row.ok,
        "exit_code": row.exit_code,
        "duration_ms": row.duration_ms,
        "parent_call": parts.parent(row).map(ContentKey::hex),
        "copied": row.copied,
        "files": builder.files(parts.touches(row)),
    });
    let mut put = |name: &str, text: Value| {
        let (shown, full_bytes) = builder.view.door.json_preview(text, Extent::of(builder.full));
        record[name] = json!(shown);
        if let Some(full_bytes) = full_bytes {
            record[format!("{name}_truncated")] = Value::from(true);
            record[format!("{name}_full_bytes")] = Value::from(full_bytes);
        }
    };
    put("input", input);
    put("output", output.map_or(Value::Null, Value::from));
    Ok(ShownJson::new(record))
}

fn plain_record(
    builder: &EntryBuilder<'_>,
    stream: &str,
    contents: &mut Contents<'_>,
    row: &RecordRow,
) -> Result<ShownJson> {
    let bytes = contents.span_of_version(row.file, row.file_version, row.encoding, row.span)?;
    let special = builder.source.record(stream, &row.key, bytes.expose());
    let mut data = special
        .map(Ok)
        .unwrap_or_else(|| serde_json::from_slice(bytes.expose()))
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes.expose()).into_owned()));
    complete(builder, stream, row, &mut data)?;
    let (data, full_bytes) = builder.view.door.json_preview(data, Extent::of(builder.full));
    let mut record = json!({
        "key": builder.view.door.text(&row.key),
        "version": row.version,
        "session_id": row.session,
        "at": row.at.map(Time::rfc3339),
        "deleted_at": row.deleted_at.map(Time::rfc3339),
        "data": data,
    });
    if let Some(full_bytes) = full_bytes {
        record["truncated"] = Value::from(true);
        record["full_bytes"] = Value::from(full_bytes);
    }
    Ok(ShownJson::new(record))
}

/// Fills what a record declares and its own bytes do not say: project, time of the last change, size and hash.
fn complete(builder: &EntryBuilder<'_>, stream: &str, row: &RecordRow, data: &mut Value) -> Result<()> {
    let is_open = |data: &Value, name: &str| data.get(name).is_some_and(Value::is_null);
    let archive = builder.view.archive;
    if is_open(data, "updated_at") {
        data["updated_at"] = json!(row.at.map(Time::rfc3339));
    }
    if is_open(data, "project_path") {
        let folders = archive.folders_beside(row.file)?;
        data["project_path"] = json!(builder.source.project_of(stream, &row.key, &folders));
    }
    if is_open(data, "size")
        && let Some(path) = builder.source.content_of(stream, &row.key)
        && let Some((size, hash)) = archive.content_beside(row.file, &path)?
    {
        data["size"] = json!(size);
        data["hash"] = json!(hash);
    }
    Ok(())
}
