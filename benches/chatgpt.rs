//! The import table: the cost of a 1 GB export, as one zip with one file of conversations.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::table::Row;
use super::{CODEX, Corpus, GIGABYTE, MEGABYTE, Outcome, SEED, Scratch, Settings, Sync};
use annals_testkit::corpora::generator::{DAY, FIRST_DAY, OUTPUT, PROSE, Plan, Project, Random, put, sizes};
use std::fmt::Write as _;

/// Average size of a conversation, in bytes.
const CONVERSATION: u64 = 150_000;

pub fn rows(scratch: &Scratch, settings: &Settings) -> Outcome<Vec<Row>> {
    let path = scratch.0.join("export.zip");
    let files = usize::try_from(settings.bytes / CONVERSATION).unwrap_or(usize::MAX).max(8);
    let started = Instant::now();
    let bytes = write_export(&path, &Plan { seed: SEED, bytes: settings.bytes, files })
        .map_err(|error| format!("writing the export: {error}"))?;
    let packed = super::file_size(&path)?;
    println!(
        "export: {files} conversations, {:.0} MB, {:.0} MB as a zip, written in {:.0} s",
        bytes as f64 / MEGABYTE,
        packed as f64 / MEGABYTE,
        started.elapsed().as_secs_f64()
    );
    let archive = scratch.0.join("export-archive");
    let corpus =
        Corpus { client: &CODEX, scratch: &scratch.0, home: scratch.0.join("nothing"), archive, bytes };
    let first = import(&corpus, &path)?;
    let share = corpus.database_bytes() as f64 / bytes as f64 * 100.0;
    let again = import(&corpus, &path)?;
    let per_gigabyte = |milliseconds: f64| milliseconds / 1e3 / (bytes as f64 / GIGABYTE);
    let dash = || "-".to_owned();
    Ok(vec![
        Row::new("import, CPU a GB", "s", per_gigabyte(first.cpu_milliseconds), Some(18.0), dash()),
        Row::new("import, wall clock a GB", "s", per_gigabyte(first.wall_milliseconds), None, dash()),
        Row::new("peak memory", "MB", first.peak_bytes / MEGABYTE, Some(300.0), dash()),
        Row::new("the same export again, CPU a GB", "s", per_gigabyte(again.cpu_milliseconds), None, dash()),
        Row::new("database, share of raw", "%", share, Some(45.0), dash()),
    ])
}

fn import(corpus: &Corpus<'_>, path: &Path) -> Outcome<Sync> {
    let path = path.to_str().ok_or("a path that is no text")?;
    corpus.run_measured(&["import", path, "--json"])
}

/// Conversations of the second generation, as one array on one line.
fn write_export(path: &Path, plan: &Plan) -> io::Result<u64> {
    let mut zip = ZipWriter::new(BufWriter::new(File::create(path)?));
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(true);
    zip.start_file("conversations.json", options)?;
    let project = Project::new(plan.seed, "/");
    let mut random = Random(plan.seed);
    let mut bytes = 0;
    for (number, size) in sizes(plan).into_iter().enumerate() {
        let mut text = String::from(if number == 0 { "[" } else { ", " });
        conversation(&mut text, &project, &mut random, number as u64, size);
        bytes += text.len() as u64;
        zip.write_all(text.as_bytes())?;
    }
    zip.write_all(b"]")?;
    zip.finish()?.flush()?;
    Ok(bytes + 1)
}

fn conversation(out: &mut String, project: &Project, random: &mut Random, number: u64, size: u64) {
    let (id, start) = (random.uuid4(), (FIRST_DAY + number * 3_600_000 % (200 * DAY)) as f64 / 1e3);
    let title = project.text(random, " %w %w of the %w", 12);
    put!(
        out,
        r#"{{"title": "{title}", "create_time": {start}, "update_time": {}, "mapping": {{"#,
        start + 9e3
    );
    let started = out.len() as u64;
    let mut parent = String::from("client-created-root");
    put!(out, r#""{parent}": {{"id": "{parent}", "message": null, "parent": null, "children": []}}"#);
    let mut at = start;
    let mut last = parent.clone();
    while (out.len() as u64) - started < size {
        at += 7.123_456;
        let kind = random.below(10);
        let (role, recipient) = match kind {
            0..=3 => ("user", "all"),
            4..=7 => ("assistant", "all"),
            8 => ("assistant", "python"),
            _ => ("tool", "all"),
        };
        let text = match kind {
            0..=3 => {
                let length = random.sized(40, 6);
                project.text(random, PROSE, length)
            }
            4..=7 => {
                let length = random.sized(400, 5);
                project.text(random, PROSE, length)
            }
            8 => {
                let length = random.sized(100, 4);
                project.text(random, OUTPUT, length).replace('\n', "")
            }
            _ => {
                let length = random.sized(200, 6);
                project.output(random, length)
            }
        };
        let content = match kind {
            8 => format!(r#"{{"content_type": "code", "language": "unknown", "text": "{text}"}}"#),
            9 => format!(r#"{{"content_type": "execution_output", "text": "{text}"}}"#),
            _ => format!(r#"{{"content_type": "text", "parts": ["{text}"]}}"#),
        };
        let node = random.uuid4();
        let (request, turn) = (random.uuid4(), random.uuid4());
        put!(
            out,
            r#", "{node}": {{"id": "{node}", "message": {{"id": "{node}", "author": {{"role": "{role}", "name": null, "metadata": {{}}}}, "create_time": {at}, "update_time": null, "content": {content}, "status": "finished_successfully", "end_turn": true, "weight": 1.0, "metadata": {{"request_id": "{request}", "message_source": null, "timestamp_": "absolute", "message_type": null, "turn_exchange_id": "{turn}", "model_slug": "gpt-5", "default_model_slug": "gpt-5", "finish_details": {{"type": "stop", "stop_tokens": [200002]}}, "is_complete": true, "citations": [], "content_references": [], "parent_id": "{parent}"}}, "recipient": "{recipient}", "channel": null}}, "parent": "{parent}", "children": []}}"#
        );
        // Now and then an answer is regenerated.
        if random.below(20) > 0 {
            parent = node.clone();
        }
        last = node;
    }
    put!(
        out,
        r#"}}, "moderation_results": [], "current_node": "{last}", "plugin_ids": null, "conversation_id": "{id}", "conversation_template_id": null, "gizmo_id": null, "gizmo_type": null, "is_archived": false, "is_starred": null, "safe_urls": [], "blocked_urls": [], "default_model_slug": "gpt-5", "conversation_origin": null, "voice": null, "async_status": null, "disabled_tool_ids": [], "is_do_not_remember": false, "memory_scope": "global_enabled", "id": "{id}"}}"#
    );
}
