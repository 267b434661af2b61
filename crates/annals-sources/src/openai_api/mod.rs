//! OpenAI API: calls in the user's own files: API objects, batches, LiteLLM logs, HAR files.

mod blocks;
mod body;
mod clean;
mod drift;
mod exchange;
mod facts;
mod form;
mod intake;
mod manifest;
mod reader;
mod references;
mod sessions;
mod steps;
mod stream;
#[cfg(test)]
mod tests;
mod tools;
mod trace;
mod usage;

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::home::kept::KeptReader;
use crate::import::captures;
use crate::json::{Json, Line};
use crate::{FileContext, Import, Intake, IntakeOptions, Reader, Settings, Source};
use annals_core::{Block, Manifest};

pub struct OpenAiApi;

impl Source for OpenAiApi {
    fn manifest(&self) -> &'static Manifest {
        &manifest::MANIFEST
    }

    fn reader(&self, name: &str, file: &FileContext, _saved: Option<&str>) -> Box<dyn Reader> {
        match name {
            "trace" => Box::new(reader::TraceReader::new()),
            other => captures::reader(other, &file.path).unwrap_or_else(|| Box::new(KeptReader)),
        }
    }

    fn line_blocks(&self, lines: &[Line<'_>]) -> Vec<Block> {
        lines.iter().flat_map(|line| blocks::blocks(line.bytes())).collect()
    }

    fn record(&self, stream: &str, key: &str, bytes: &[u8]) -> Option<Value> {
        let object = Json::parse(bytes).map(Json::object)?;
        let form = form::Form::of(&object).map(form::Form::name);
        (stream == "references").then(|| json!({"id": key, "form": form}))
    }

    fn response_id(&self, _line: &[u8]) -> Option<String> {
        None
    }

    fn native(&self, bytes: &[u8]) -> Map<String, Value> {
        blocks::native(bytes)
    }

    fn import(&self) -> Option<&'static dyn Import> {
        Some(&OpenAiApi)
    }
}

impl Import for OpenAiApi {
    fn intake(&self, _options: IntakeOptions, settings: &dyn Settings) -> Box<dyn Intake> {
        let hosts =
            settings.list("OPENAI_TRACES_HOSTS").iter().map(|host| host.to_ascii_lowercase()).collect();
        Box::new(intake::TraceIntake::new(hosts))
    }

    fn drop_folders(&self, settings: &dyn Settings) -> Vec<PathBuf> {
        settings.get("OPENAI_TRACES_DIR").map(Into::into).into_iter().collect()
    }
}
