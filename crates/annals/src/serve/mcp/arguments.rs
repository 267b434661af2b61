//! What the tools take. Their JSON schemas are made from these types, so that a schema cannot say anything else.

use std::sync::Arc;

use rmcp::model::JsonObject;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::text::{LARGEST_BUDGET, SMALLEST_BUDGET, USUAL_BUDGET};
use annals_core::{Error, Result};

/// How an answer is written; every tool takes these too.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OutputArguments {
    /// Longest answer in bytes, 1000 to 200000 (default 8000)
    #[schemars(range(min = SMALLEST_BUDGET, max = LARGEST_BUDGET))]
    pub max_bytes: Option<usize>,
    /// Continue where the previous answer ended: the cursor it gave
    pub cursor: Option<String>,
    /// Compact Markdown (default) or JSON
    pub format: Option<Format>,
}

impl OutputArguments {
    pub fn budget(&self) -> usize {
        self.max_bytes.unwrap_or(USUAL_BUDGET).clamp(SMALLEST_BUDGET, LARGEST_BUDGET)
    }

    pub fn is_json(&self) -> bool {
        matches!(self.format, Some(Format::Json))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Format {
    Markdown,
    Json,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    /// Words, "exact phrases", prefix*, -without; also file:PATH, tool:NAME, branch:NAME
    pub query: String,
    /// Directory of a project or part of its name; "*" searches all (default: the caller's folder)
    pub project: Option<String>,
    /// Only this assistant, as `list_sessions` names it
    pub source: Option<String>,
    /// Only what this side wrote
    pub role: Option<Role>,
    /// Only since then: 2026-03-01, 7d, yesterday
    pub since: Option<String>,
    /// Only before then
    pub until: Option<String>,
    /// Newest first instead of best first
    #[serde(default)]
    pub recent: bool,
    /// Also sessions that run now, such as the one that asks
    #[serde(default)]
    pub include_running: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Role {
    User,
    Assistant,
    Thinking,
    Tool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArguments {
    /// Id of a session, the start of one, or a citation annals://session/ID#STEP
    pub session: String,
    /// Start shortly before this step: its id or its number
    pub at: Option<String>,
    /// Everything (default), only prompts and answers, only calls that changed files, or only calls that failed
    pub view: Option<Part>,
    /// Complete texts and outputs instead of their beginnings
    #[serde(default)]
    pub full: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Part {
    All,
    Prompts,
    Edits,
    Failures,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ListArguments {
    /// Directory of a project or part of its name; "*" lists all (default: the caller's folder)
    pub project: Option<String>,
    /// Only this assistant
    pub source: Option<String>,
    /// Only sessions active since then: 2026-03-01, 7d, yesterday
    pub since: Option<String>,
    /// Only sessions that started before then
    pub until: Option<String>,
    /// Words of the title, the directory or the branch
    pub words: Option<String>,
    /// Only sessions in which a tool call failed
    pub failed: bool,
    /// Include sub-agents as separate sessions
    pub include_subagents: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BlameArguments {
    /// Path of the file, relative to the project or absolute
    pub file: String,
    /// First line, from 1
    #[schemars(range(min = 1))]
    pub start: Option<usize>,
    /// Last line
    #[schemars(range(min = 1))]
    pub end: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileArguments {
    /// Path of the file, relative to the project or absolute
    pub file: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct UsageArguments {
    /// Sum by this (default: day)
    pub by: Option<SumBy>,
    /// Number of days, including today; 0 for all (default: 30)
    #[schemars(range(min = 0, max = 36500))]
    pub days: Option<i64>,
    /// Only this directory and everything below it; "." is the caller's folder (default: all projects)
    pub project: Option<String>,
    /// Only this assistant
    pub source: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SumBy {
    Day,
    Model,
    Project,
    Session,
    Source,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LibraryArguments {
    /// Directory of a project; "*" lists those of all projects (default: the caller's folder)
    pub project: Option<String>,
    /// Only this kind, as the list names it: skills, memory_notes, project_instructions, …
    pub kind: Option<String>,
    /// Only this assistant
    pub source: Option<String>,
    /// Show the versions of this item instead of the list
    pub name: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecentArguments {
    /// Directory of a project or part of its name; "*" for all (default: the caller's folder)
    pub project: Option<String>,
    /// How far to look back: 7d, 2026-03-01 (default: no limit)
    pub since: Option<String>,
}

/// Splits what every tool takes from what this one takes.
pub fn parse<T: DeserializeOwned>(arguments: Option<Map<String, Value>>) -> Result<(T, OutputArguments)> {
    let mut own = arguments.unwrap_or_default();
    let mut shared = Map::new();
    for name in ["max_bytes", "cursor", "format"] {
        shared.extend(own.remove(name).map(|value| (name.to_owned(), value)));
    }
    let unclear = |error: serde_json::Error| {
        Error::bad_request(format!("invalid arguments: {error}")).hint("the tool's input schema lists them")
    };
    let own = serde_json::from_value(Value::Object(own)).map_err(unclear)?;
    let shared = serde_json::from_value(Value::Object(shared)).map_err(unclear)?;
    Ok((own, shared))
}

/// The schema of a tool's arguments and of those that every tool takes.
pub fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    let object = |mut schema: Value| {
        without_nulls(&mut schema);
        match schema {
            Value::Object(object) => object,
            _ => Map::new(),
        }
    };
    let mut own = object(SchemaGenerator::default().into_root_schema_for::<T>().into());
    let mut shared = object(SchemaGenerator::default().into_root_schema_for::<OutputArguments>().into());
    for name in ["$schema", "title", "description"] {
        own.remove(name);
    }
    let more = shared.remove("properties");
    let properties = own.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let (Value::Object(properties), Some(Value::Object(more))) = (properties, more) {
        properties.extend(more);
    }
    own.insert("additionalProperties".to_owned(), Value::Bool(false));
    Arc::new(own)
}

/// An argument that may be missing has the type it has if it is there: some models read nothing else.
fn without_nulls(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    object.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(values)) = object.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    object.extend(only);
                }
            }
            for name in ["default", "format"] {
                if object
                    .get(name)
                    .is_some_and(|value| value.is_null() || name == "format" && value.is_string())
                {
                    object.remove(name);
                }
            }
            object.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
