//! `annals records`: the native records of a stream.

use clap::Args;
use serde_json::json;

use crate::cli::ui::time;
use crate::cli::{Context, Outcome, now};
use crate::view::{RecordsQuery, find_recorded_source};
use annals_core::{Error, Result, Stream};
use annals_sources::{Source, of_programs};

#[derive(Args)]
pub struct RecordsArguments {
    /// Stream to print, for example SOURCE/messages (`annals manifest SOURCE` lists the streams), or CONNECTOR/STREAM
    #[arg(value_name = "SOURCE/STREAM")]
    stream: String,
    /// Print only records with this key; of a mutable stream, all versions
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Print only records from then on, by the cursor field of the stream (2026-03-01, 7d, yesterday)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Continue after a page, or print what changed since a list: its `next_cursor` or its `state`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
    /// Print at most N records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print one JSON record per line (the default)
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Print complete texts instead of previews
    #[arg(long)]
    full: bool,
}

pub fn run(context: &mut Context, options: &RecordsArguments) -> Result<Outcome> {
    let query = read(context, options)?;
    let Some(store) = context.archive()? else {
        if context.json {
            context
                .output
                .fragment("{\"records\":[],\"next_cursor\":null,\"state\":null,\"mode\":\"full\"}\n")?;
        }
        return Ok(Outcome::Nothing);
    };
    let door = context.door(&store)?;
    let view = context.view(&store, &door);
    let json = context.json && !options.jsonl;
    if json {
        context.output.fragment("{\"records\":[")?;
    }
    let mut first = true;
    let end = view.records(&query, &mut |record| {
        if json {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            return context.output.fragment(&format!("{comma}{}", serde_json::to_string(&record)?));
        }
        context.output.json_line(&record)
    })?;
    if json {
        let rest = json!({ "next_cursor": end.next_cursor, "state": end.state, "mode": end.mode });
        let rest = serde_json::to_string(&rest)?;
        context.output.fragment(&format!("],{}\n", rest.trim_start_matches('{')))?;
    }
    Ok(if end.count == 0 { Outcome::Nothing } else { Outcome::Done })
}

fn read(context: &Context, options: &RecordsArguments) -> Result<RecordsQuery> {
    let (source, stream) = options.stream.split_once('/').ok_or_else(|| {
        Error::new(format!("not a stream: {:?}", options.stream))
            .hint("use SOURCE/STREAM; `annals sources` lists sources, `annals manifest SOURCE` their streams")
    })?;
    if let Some(query) = of_connector(context, options, source, stream)? {
        return Ok(query);
    }
    let source = recorded_source(source)?;
    let stream = find_stream(source, stream)?;
    Ok(RecordsQuery { key: options.key.clone(), ..selected(options, source, stream)? })
}

/// What the options select of a stream.
fn selected(
    options: &RecordsArguments,
    source: &'static dyn Source,
    stream: &'static Stream,
) -> Result<RecordsQuery> {
    Ok(RecordsQuery {
        since: options.since.as_deref().map(|text| time::parse(text, now())).transpose()?,
        limit: options.limit,
        cursor: options.cursor.clone(),
        full: options.full,
        ..RecordsQuery::all(source, stream)
    })
}

/// A source, or the archive itself.
pub fn recorded_source(name: &str) -> Result<&'static dyn Source> {
    find_recorded_source(name).map_or_else(|| super::sync::parse_source(name), Ok)
}

/// A stream of a source by its name.
pub fn find_stream(source: &'static dyn Source, stream: &str) -> Result<&'static Stream> {
    let manifest = source.manifest();
    manifest.stream(stream).ok_or_else(|| {
        let known: Vec<&str> = manifest.streams.iter().map(|stream| stream.name).collect();
        Error::new(format!("unknown stream {stream:?} of {}", manifest.source))
            .hint(format!("known streams: {}", known.join(", ")))
    })
}

/// One stream of an outside connector: part of the `records` stream of all connectors.
fn of_connector(
    context: &Context,
    options: &RecordsArguments,
    name: &str,
    stream: &str,
) -> Result<Option<RecordsQuery>> {
    let source = of_programs();
    let Some(store) = context.archive()?.filter(|_| find_recorded_source(name).is_none()) else {
        return Ok(None);
    };
    let manifest = source.manifest();
    let known = store.known_instance(manifest.source, &context.config.machine, name)?;
    let Some((_, records)) = known.zip(manifest.stream("records")) else { return Ok(None) };
    let within = format!("{name}/{stream}/");
    Ok(Some(RecordsQuery {
        key: options.key.as_ref().map(|key| format!("{within}{key}")),
        within: Some(within),
        ..selected(options, source, records)?
    }))
}
