//! Records as a stream of messages that other programs can read and resume.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::cli::commands::records::{find_stream, recorded_source};
use crate::cli::{Context, Outcome, now};
use crate::view::RecordsQuery;
use annals_core::{Error, Result, Stream};
use annals_sources::{Source, of_archive, registry};

/// Exports streams (`SOURCE` or `SOURCE/STREAM`, all if there are none), or what changed since the states in a file.
pub fn run(context: &mut Context, names: &[String], state: Option<&Path>) -> Result<Outcome> {
    let streams = streams_of(names)?;
    let states = match state {
        Some(path) => read_states(path)?,
        None => HashMap::new(),
    };
    let Some(store) = context.archive()? else {
        context.output.json_line(&done(0))?;
        return Ok(Outcome::Nothing);
    };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let emitted_at = now().rfc3339();
    let mut total = 0;
    for (source, stream) in streams {
        let name = format!("{}/{}", source.manifest().source, stream.name);
        let cursor = states.get(&name).cloned();
        let query = RecordsQuery { cursor, full: true, ..RecordsQuery::all(source, stream) };
        context.output.json_line(&json!({
            "type": "SCHEMA",
            "stream": name,
            "mode": view.records_mode(&query)?,
            "primary_key": stream.key_fields(),
            "cursor_field": stream.cursor_field,
            "consent_time_field": stream.consent_time_field,
            "schema": stream.schema(),
        }))?;
        let end = view.records(&query, &mut |record| {
            let is_gone = record.removed || record.deleted_at.is_some();
            context.output.json_line(&json!({
                "type": "RECORD",
                "stream": name,
                "key": record.key,
                "emitted_at": emitted_at,
                "op": if is_gone { "delete" } else { "upsert" },
                "version": record.version,
                "deleted_at": record.deleted_at,
                "data": record.data,
            }))
        })?;
        total += end.count;
        context.output.json_line(
            &json!({ "type": "STATE", "stream": name, "cursor": end.state, "records": end.count }),
        )?;
    }
    context.output.json_line(&done(total))?;
    Ok(Outcome::Done)
}

fn done(count: u64) -> Value {
    json!({ "type": "DONE", "status": "succeeded", "records_emitted": count })
}

fn streams_of(names: &[String]) -> Result<Vec<(&'static dyn Source, &'static Stream)>> {
    let all =
        |source: &'static dyn Source| source.manifest().streams.iter().map(move |stream| (source, stream));
    if names.is_empty() {
        return Ok(registry().iter().copied().chain([of_archive()]).flat_map(all).collect());
    }
    let mut found = Vec::new();
    for name in names {
        match name.split_once('/') {
            Some((source, stream)) => {
                let source = recorded_source(source)?;
                found.push((source, find_stream(source, stream)?));
            }
            None => found.extend(all(recorded_source(name)?)),
        }
    }
    Ok(found)
}

/// The last cursor of each stream; other messages are skipped.
fn read_states(path: &Path) -> Result<HashMap<String, String>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(format!("cannot read {}: {error}", path.display())))?;
    let mut states = HashMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |_| Error::new(format!("{}:{}: not a JSON message", path.display(), number + 1));
        let message: Value = serde_json::from_str(line).map_err(wrong)?;
        if message["type"] != "STATE" {
            continue;
        }
        if let (Some(stream), Some(cursor)) = (message["stream"].as_str(), message["cursor"].as_str()) {
            states.insert(stream.to_owned(), cursor.to_owned());
        }
    }
    Ok(states)
}
