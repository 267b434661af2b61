//! Native records of a stream, as its manifest declares them, in one envelope for every stream.

mod cursor;

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use self::cursor::{Position, write_state};
use super::context::View;
use super::door::Extent;
use super::session::branches::RelatedIds;
use super::session::entry_builder::EntryBuilder;
use super::session::lines::{LineGraph, Lines};
use super::session::list::SessionView;
use annals_core::{AccessKind, Result, Rows, ShownJson, Stream, Time};
use annals_sources::Source;
use annals_store::{CallRow, Contents, MessageRow, RecordRow, RemovedKind, RemovedRow, RowPlace, RowsQuery};

#[derive(Clone)]
pub struct RecordsQuery {
    pub source: &'static dyn Source,
    pub stream: &'static Stream,
    pub key: Option<String>,
    /// Only records whose keys begin with this.
    pub within: Option<String>,
    /// Only records whose cursor field is at or after this time, or empty.
    pub since: Option<Time>,
    pub limit: Option<u64>,
    /// Continue after this record, or with what changed after this state.
    pub cursor: Option<String>,
    pub full: bool,
}

impl RecordsQuery {
    /// All records of a stream.
    pub fn all(source: &'static dyn Source, stream: &'static Stream) -> RecordsQuery {
        RecordsQuery {
            source,
            stream,
            key: None,
            within: None,
            since: None,
            limit: None,
            cursor: None,
            full: false,
        }
    }
}

/// Some records of a stream, and where the next ones start.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecordPage {
    pub records: Vec<ShownJson>,
    pub next_cursor: Option<String>,
    /// Cursor for what changes after this list; use it once `next_cursor` is null.
    pub state: String,
    /// `full` if the list has every record of the stream, `changes` if it starts from a state.
    pub mode: &'static str,
}

/// A record, and the cursor that leads behind it.
type Visit<'v> = dyn FnMut(Envelope, String) -> Result<()> + 'v;

/// What every record has, whatever its stream.
#[derive(Debug, Serialize)]
pub struct Envelope {
    pub key: String,
    pub version: i64,
    pub session_id: Option<String>,
    pub at: Option<String>,
    /// When it ended where it came from, or was found to be gone.
    pub deleted_at: Option<String>,
    /// Set if nothing is left of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_bytes: Option<u64>,
    pub data: ShownJson,
}

/// How a list of records ended.
pub struct RecordsEnd {
    pub count: u64,
    pub next_cursor: Option<String>,
    pub state: String,
    pub mode: &'static str,
}

impl View<'_> {
    pub fn record_page(&self, query: &RecordsQuery) -> Result<RecordPage> {
        let mut records = Vec::new();
        let end = self.records(query, &mut |record| {
            records.push(ShownJson::new(serde_json::to_value(record)?));
            Ok(())
        })?;
        Ok(RecordPage { records, next_cursor: end.next_cursor, state: end.state, mode: end.mode })
    }

    /// Visits records one at a time.
    pub fn records(
        &self,
        query: &RecordsQuery,
        visit: &mut dyn FnMut(Envelope) -> Result<()>,
    ) -> Result<RecordsEnd> {
        // One more tells whether there are more.
        let wider = RecordsQuery { limit: query.limit.map(|limit| limit.saturating_add(1)), ..query.clone() };
        let (mut count, mut last, mut next_cursor) = (0, None, None);
        let position = self.each_record(&wider, &mut |record, cursor| {
            if query.limit == Some(count) {
                next_cursor = last.take();
                return Ok(());
            }
            last = Some(cursor);
            count += 1;
            visit(record)
        })?;
        Ok(RecordsEnd { count, next_cursor, state: write_state(position.state), mode: position.mode() })
    }

    /// Whether a list has every record or what changed.
    pub fn records_mode(&self, query: &RecordsQuery) -> Result<&'static str> {
        Ok(Position::read(query.cursor.as_deref(), self.archive.state()?)?.mode())
    }

    fn each_record(&self, query: &RecordsQuery, visit: &mut Visit<'_>) -> Result<Position> {
        let position = Position::read(query.cursor.as_deref(), self.archive.state()?)?;
        let mut count = 0;
        let mut hand_out = |record: Envelope, cursor: String| -> Result<bool> {
            if query.since.is_none_or(|since| is_since(&record, query.stream.cursor_field, since)) {
                visit(record, cursor)?;
                count += 1;
            }
            Ok(query.limit.is_none_or(|limit| count < limit))
        };
        if self.removed_records(query, position, &mut hand_out)? {
            self.present_records(query, position, &mut hand_out)?;
        }
        Ok(position)
    }

    /// Whether more is wanted.
    fn removed_records(
        &self,
        query: &RecordsQuery,
        position: Position,
        hand_out: &mut dyn FnMut(Envelope, String) -> Result<bool>,
    ) -> Result<bool> {
        let kind = match query.stream.rows {
            Rows::Sessions | Rows::Agents => RemovedKind::Session,
            Rows::Messages => RemovedKind::Message,
            Rows::Calls => RemovedKind::Call,
            // Their ends are in the records themselves.
            Rows::Records | Rows::Arrangement => return Ok(true),
        };
        let Some(mut after) = position.removed_after else { return Ok(true) };
        let source = query.source.manifest().source;
        loop {
            let rows = self.archive.removed_rows(source, kind, position.changed_after, after)?;
            let Some(last) = rows.last() else { return Ok(true) };
            after = last.id;
            for row in rows {
                let cursor = position.behind_removed(row.id);
                if !hand_out(self.removed_record(kind, &row), cursor)? {
                    return Ok(false);
                }
            }
        }
    }

    fn present_records(
        &self,
        query: &RecordsQuery,
        position: Position,
        hand_out: &mut dyn FnMut(Envelope, String) -> Result<bool>,
    ) -> Result<()> {
        let source = query.source.manifest().source;
        let builder = EntryBuilder { view: self, source: query.source, full: query.full, changes: false };
        let mut contents = self.archive.contents();
        // `SESSION/ID` names a message or a call of one session, `ID` those of all.
        let is_row = matches!(query.stream.rows, Rows::Messages | Rows::Calls);
        let (session, key) = match query.key.as_deref().and_then(|key| key.rsplit_once('/')) {
            Some((session, key)) if is_row => (Some(session), Some(key)),
            _ => (None, query.key.as_deref()),
        };
        let (changed_after, after) = (position.changed_after, position.rows_after);
        let rows = RowsQuery { source, key, session, changed_after, after };
        match query.stream.rows {
            Rows::Sessions | Rows::Agents => {
                self.archive.each_session(&rows, query.stream.rows == Rows::Agents, &mut |row| {
                    let cursor = position.behind_row(RowPlace(row.id.0, 0, 0));
                    let session = self.whole_session(row)?;
                    Ok(hand_out(session_record(query, &session)?, cursor)?)
                })?;
            }
            Rows::Messages => {
                let (mut related, mut graph) = (RelatedIds::default(), LineGraph::default());
                self.archive.each_message(&rows, &mut |row| {
                    self.note_access(row.session_id, AccessKind::Records);
                    let place = RowPlace(row.session_id.0, row.file.0, row.span.offset as i64);
                    let record =
                        message_record(&builder, query, &mut contents, (&mut related, &mut graph), &row)?;
                    Ok(hand_out(record, position.behind_row(place))?)
                })?;
            }
            Rows::Calls => {
                let (mut related, mut graph) = (RelatedIds::default(), LineGraph::default());
                self.archive.each_call(&rows, &mut |row| {
                    self.note_access(row.session_id, AccessKind::Records);
                    let place = RowPlace(row.session_id.0, row.file.0, row.span.offset as i64);
                    let record = call_record(&builder, &mut contents, (&mut related, &mut graph), &row)?;
                    Ok(hand_out(record, position.behind_row(place))?)
                })?;
            }
            Rows::Records => {
                let stream = query.stream.name;
                let from = (changed_after, after.0);
                self.archive.each_record(source, stream, key, from, &mut |row| {
                    if query.within.as_deref().is_some_and(|start| !row.key.starts_with(start)) {
                        return Ok(true);
                    }
                    self.note_record_access(source, row.session.as_deref())?;
                    let cursor = position.behind_row(RowPlace(row.id, 0, 0));
                    Ok(hand_out(plain_record(&builder, stream, &mut contents, &row)?, cursor)?)
                })?;
            }
            Rows::Arrangement => {
                let from = (changed_after, after.0);
                self.each_arrangement(key, from, query.full, &mut |record, id| {
                    hand_out(record, position.behind_row(RowPlace(id, 0, 0)))
                })?;
            }
        }
        Ok(())
    }
}

/// Compares the cursor field: a time as text, or as seconds or milliseconds since 1970.
fn is_since(record: &Envelope, field: &str, since: Time) -> bool {
    const FIRST_MILLISECOND: i64 = 100_000_000_000;
    let at = match record.data.value().get(field) {
        Some(Value::String(text)) => Time::parse(text),
        Some(Value::Number(number)) => number.as_i64().map(|number| match number {
            FIRST_MILLISECOND.. => Time::from_millis(number),
            _ => Time::from_seconds(number),
        }),
        _ => None,
    };
    at.is_none_or(|at| at >= since)
}

/// The declared fields: from the session itself, or from its client-specific facts.
fn session_record(query: &RecordsQuery, session: &SessionView) -> Result<Envelope> {
    let mut common = serde_json::to_value(session)?;
    // What a person arranged is a stream of its own; a client may have names too.
    for arranged in ["name", "starred", "tags", "has_note", "note", "hidden"] {
        common.as_object_mut().map(|fields| fields.remove(arranged));
    }
    let nothing = Value::Null;
    let native = session.native.as_ref().map_or(&nothing, ShownJson::value);
    let mut data = Map::new();
    for field in query.stream.fields {
        let value = match field.from.strip_prefix("native.") {
            Some(name) => native.get(name),
            None => common.get(field.from).or_else(|| native.get(field.from)),
        };
        data.insert(field.name.into(), value.cloned().unwrap_or(Value::Null));
    }
    let id = session.session_id.clone();
    Ok(Envelope {
        at: session.started_at.clone().or_else(|| session.first_message_at.clone()),
        session_id: Some(id.clone()),
        ..Envelope::new(id, data)
    })
}

fn message_record(
    builder: &EntryBuilder<'_>,
    query: &RecordsQuery,
    contents: &mut Contents<'_>,
    (related, graph): (&mut RelatedIds, &mut LineGraph),
    row: &MessageRow,
) -> Result<Envelope> {
    let (view, source) = (builder.view, query.source);
    related.visit(view, row.session_id)?;
    let entry = builder.message(contents, row)?;
    let bytes = contents.span(row.file, row.span)?;
    let native = view.door.json(Value::Object(source.native(bytes.expose())));
    let own = view.door.json(Value::Object(source.message_fields(&row.session, bytes.expose())));
    let (mut line_ids, mut named) = (Vec::new(), None);
    for place in std::iter::once(row.clone()).chain(view.archive.duplicates(row)?) {
        let further = view.archive.message_lines(place.session_id, place.file, place.span.offset)?;
        for span in std::iter::once(place.span).chain(further) {
            let line = contents.span(place.file, span)?;
            let id = source.line_ids(line.expose()).map(|ids| ids.id);
            if id.is_some() && named.is_none() {
                named = Some(MessageRow { span, ..place.clone() });
            }
            line_ids.extend(id);
        }
    }
    line_ids.dedup();
    let calls = view.archive.calls_in(row)?;
    let call_ids: Vec<String> = calls.iter().map(|key| related.id(*key)).collect();
    let mut parent = match &named {
        Some(named) => graph.parent(&mut Lines { view, source, contents }, named)?,
        None => None,
    };
    let mut data = object(json!({
        "id": related.id(row.key),
        "session_id": row.session,
        "role": entry.role,
        "kind": entry.kind,
        "at": entry.at,
        "model": entry.model,
        "copied": row.copied,
        "blocks": entry.blocks,
        "call_ids": call_ids,
        "line_ids": line_ids,
        "native": native,
    }));
    data.extend(object(own.into_value()));
    if let Some((node, children)) = related.of(row) {
        parent = node.parent;
        data.insert("children_ids".into(), children.iter().map(|child| related.id(*child)).collect());
        data.insert("on_current_branch".into(), node.current.into());
    }
    data.insert("parent_id".into(), parent.map(|parent| related.id(parent)).into());
    let key = format!("{}/{}", row.session, related.id(row.key));
    Ok(Envelope { session_id: Some(row.session.clone()), at: entry.at, ..Envelope::new(key, data) })
}

fn call_record(
    builder: &EntryBuilder<'_>,
    contents: &mut Contents<'_>,
    (related, graph): (&mut RelatedIds, &mut LineGraph),
    row: &CallRow,
) -> Result<Envelope> {
    let view = builder.view;
    related.visit(view, row.session_id)?;
    let parts = view.archive.call_parts(builder.source.manifest().source, &[row])?;
    let input = builder.input(contents, row)?;
    let output = builder.output_from(contents, row, parts.output(row))?;
    let message = match view.archive.message_of_call(row)? {
        Some(place) => view.archive.message_at(row.session_id, row.file, place)?,
        None => None,
    };
    let mut line_ids = Vec::new();
    for span in [row.output, row.detail].into_iter().flatten() {
        let mut lines = Lines { view, source: builder.source, contents: &mut *contents };
        let id = graph.line_at(&mut lines, row.session_id, (row.file, span.offset))?;
        line_ids.extend(id.map(str::to_owned));
    }
    line_ids.dedup();
    let at = row.at.map(Time::rfc3339);
    let mut data = object(json!({
        "id": related.id(row.key),
        "session_id": row.session,
        "message_id": message.map(|message| related.id(message.key)),
        "call_id": view.door.text(&row.call_id),
        "name": row.name,
        "kind": row.kind.name(),
        "title": view.door.raw(&row.title),
        "at": at,
        "model": row.model,
        "ok": row.ok,
        "exit_code": row.exit_code,
        "duration_ms": row.duration_ms,
        "parent_call": parts.parent(row).map(|parent| related.id(parent)),
        "copied": row.copied,
        "files": builder.files(parts.touches(row)),
        "line_ids": line_ids,
    }));
    let mut put = |name: &str, text: Value| {
        let (shown, full_bytes) = view.door.json_preview(text, Extent::of(builder.full));
        data.insert(name.into(), json!(shown));
        if let Some(full_bytes) = full_bytes {
            data.insert(format!("{name}_truncated"), true.into());
            data.insert(format!("{name}_full_bytes"), full_bytes.into());
        }
    };
    put("input", input);
    put("output", output.map_or(Value::Null, Value::from));
    let key = format!("{}/{}", row.session, related.id(row.key));
    Ok(Envelope { session_id: Some(row.session.clone()), at, ..Envelope::new(key, data) })
}

fn plain_record(
    builder: &EntryBuilder<'_>,
    stream: &str,
    contents: &mut Contents<'_>,
    row: &RecordRow,
) -> Result<Envelope> {
    let bytes = contents.span_of_version(row.file, row.file_version, row.encoding, row.span)?;
    let special = builder.source.record(stream, &row.key, bytes.expose());
    let mut native = special
        .map(Ok)
        .unwrap_or_else(|| serde_json::from_slice(bytes.expose()))
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(bytes.expose()).into_owned()));
    complete(builder, stream, row, &mut native)?;
    let (key, at) = (builder.view.door.text(&row.key).to_string(), row.at.map(Time::rfc3339));
    let (shown, full_bytes) = builder.view.door.json_preview(native, Extent::of(builder.full));
    let mut data = match shown.into_value() {
        Value::Object(fields) => fields,
        // A list, or a text that is not JSON.
        value => Map::from_iter([("value".to_owned(), value)]),
    };
    // What is unique in the client's file need not be so in the stream.
    if let Some(own) = data.insert("id".into(), key.clone().into()).filter(|own| own.as_str() != Some(&*key))
    {
        data.insert("native_id".into(), own);
    }
    data.entry("at").or_insert(json!(at));
    Ok(Envelope {
        version: row.version,
        session_id: row.session.clone(),
        at,
        deleted_at: row.deleted_at.map(Time::rfc3339),
        truncated: full_bytes.is_some(),
        full_bytes,
        ..Envelope::new(key, data)
    })
}

/// Fills what a record declares and its own bytes do not say: project, time of the last change, size and hash.
fn complete(builder: &EntryBuilder<'_>, stream: &str, row: &RecordRow, data: &mut Value) -> Result<()> {
    let is_open = |data: &Value, name: &str| data.get(name).is_some_and(Value::is_null);
    let archive = builder.view.archive;
    if is_open(data, "updated_at") {
        data["updated_at"] = json!(row.at.map(Time::rfc3339));
    }
    if is_open(data, "conversation_id") {
        data["conversation_id"] = json!(row.session);
    }
    if is_open(data, "project_path") {
        let folders = archive.session_folders_of_home(row.file)?;
        data["project_path"] = json!(builder.source.project_of(stream, &row.key, &folders));
    }
    if is_open(data, "tool_use_id") {
        let call = archive.call_with_output(&format!("{stream}/{}", row.key))?;
        data["tool_use_id"] = json!(call.map(|call| call.call_id));
    }
    if is_open(data, "size")
        && let Some(path) = builder.source.content_of(stream, &row.key)
        && let Some((size, hash)) = archive.content_in_home(row.file, &path)?
    {
        data["size"] = json!(size);
        data["hash"] = json!(hash);
    }
    Ok(())
}

impl View<'_> {
    fn removed_record(&self, kind: RemovedKind, row: &RemovedRow) -> Envelope {
        let (key, data) = match kind {
            RemovedKind::Session => (row.session.clone(), json!({ "id": row.session })),
            RemovedKind::Message | RemovedKind::Call => {
                let id =
                    row.name.as_ref().map_or_else(|| row.key.hex(), |name| self.door.text(name).to_string());
                (format!("{}/{id}", row.session), json!({ "id": id, "session_id": row.session }))
            }
        };
        Envelope {
            session_id: Some(row.session.clone()),
            deleted_at: row.at.map(Time::rfc3339),
            removed: true,
            ..Envelope::new(key, object(data))
        }
    }
}

impl Envelope {
    fn new(key: String, data: Map<String, Value>) -> Envelope {
        Envelope {
            key,
            version: 1,
            session_id: None,
            at: None,
            deleted_at: None,
            removed: false,
            truncated: false,
            full_bytes: None,
            data: ShownJson::new(Value::Object(data)),
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
