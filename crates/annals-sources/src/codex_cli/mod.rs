//! Codex CLI: transcripts of every era, thread table, prompt history and names.

mod authored;
mod authorship;
mod blocks;
mod calls;
mod chain;
mod document;
mod drift;
mod footprint;
mod history;
mod manifest;
mod meta;
mod outcome;
mod patch;
mod reads;
mod requests;
mod rollout;
mod rules;
mod sidecars;
mod starlark;
mod streams;
mod tape;
mod usage;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::home::authored::WholeFileReader;
use crate::home::kept::KeptReader;
use crate::json::{Json, Line};
use crate::{AgentClient, FileContext, Home, Reader, Recorder, ServerForm, ServerList, Settings, Source};
use annals_core::{Block, Manifest};

pub struct CodexCli;

impl Source for CodexCli {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn homes(&self, settings: &dyn Settings) -> Vec<Home> {
        let home = settings.get("CODEX_HOME").map(Into::into);
        let sessions = settings.get("CODEX_SESSIONS_PATH").or_else(|| settings.get("CODEX_SESSIONS_DIR"));
        let follows_links = settings.flag("ANNALS_CODEX_FOLLOW_LINKS");
        let default = settings.user_home().map(|user| user.join(".codex"));
        match (home, sessions) {
            (None, None) => {
                default.into_iter().map(|root| Home { root, follows_links, ..Home::default() }).collect()
            }
            (home, sessions) => {
                let whole = home.map(|root| Home { root, follows_links, ..Home::default() });
                let bare = sessions.map(|root| bare_folder(Path::new(&root)));
                match (whole, bare) {
                    // The folder inside the home is the home's own.
                    (Some(whole), Some(bare)) if bare.root.starts_with(&whole.root) => vec![whole],
                    (whole, bare) => whole.into_iter().chain(bare).collect(),
                }
            }
        }
    }

    fn logical_path(&self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.strip_prefix("rollout-") {
            Some(rest) => format!("rollout-{}", rest.strip_suffix(".zst").unwrap_or(rest)),
            None => path.to_owned(),
        }
    }

    fn agent_client(&self, settings: &dyn Settings) -> Option<AgentClient> {
        let root: PathBuf = match settings.get("CODEX_HOME") {
            Some(root) => root.into(),
            None => settings.user_home()?.join(".codex"),
        };
        let form = ServerForm::Toml { key: "mcp_servers" };
        let servers = Some(ServerList { file: root.join("config.toml"), form, holds_credentials: false });
        Some(AgentClient { servers, skills: Some(root.join("skills")) })
    }

    fn reader(&self, name: &str, file: &FileContext, saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "rollout" => Box::new(rollout::RolloutReader::new(file, saved)),
            "rollout_document" => Box::new(document::DocumentReader::new(file)),
            "authored" => {
                let (stream, key) = authored::place(&file.path);
                Box::new(WholeFileReader::new(stream, key, file))
            }
            "spawn_edges" => Box::new(sidecars::RowReader::new("spawn_edges", file)),
            "agent_job_items" => Box::new(sidecars::RowReader::new("agent_job_items", file)),
            "thread_dynamic_tools" => Box::new(sidecars::RowReader::new("thread_dynamic_tools", file)),
            "projects" => Box::new(sidecars::RowReader::new("projects", file)),
            "project_roots" => Box::new(sidecars::RowReader::new("project_roots", file)),
            "thread_sections" => Box::new(sidecars::RowReader::new("thread_sections", file)),
            "thread_attachments" => Box::new(sidecars::RowReader::new("thread_attachments", file)),
            "agent_jobs" => Box::new(sidecars::RowReader::new("agent_jobs", file)),
            "goals" => Box::new(sidecars::RowReader::new("goals", file)),
            "queued_prompts" => Box::new(sidecars::RowReader::new("queued_prompts", file)),
            "memory_drafts" => Box::new(sidecars::RowReader::new("memory_drafts", file)),
            // Other files may be beside the rules.
            "rules" if file.path.ends_with(".rules") => Box::new(rules::RulesReader::new(file)),
            "history" => Box::new(history::reader()),
            "history_list" => Box::new(history::list_reader()),
            "session_index" => Box::new(sidecars::NameReader::new(saved)),
            "thread_row" => Box::new(sidecars::ThreadReader::default()),
            _ => Box::new(KeptReader),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(*line)).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        history::record(stream, bytes).or_else(|| authored::record(stream, key, bytes))
    }

    fn response_id(&self, line: &[u8]) -> Option<String> {
        Json::parse(line)?.get("payload")?.get_text("response_id").map(Into::into)
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn is_co_author(&self, name: &str, address: &str) -> bool {
        address.ends_with("@openai.com") && name.to_ascii_lowercase().contains("codex")
    }

    fn recorder(&self) -> Option<&'static dyn Recorder> {
        Some(&tape::CodexTape)
    }
}

/// A folder given as the sessions folder; when it turns out to be a whole home, it is taken as one.
fn bare_folder(root: &Path) -> Home {
    let prefix = if root.join("sessions").is_dir() { "" } else { "sessions" };
    Home { root: root.to_owned(), prefix, ..Home::default() }
}
