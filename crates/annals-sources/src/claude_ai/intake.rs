//! Recognises the members of an export by what is in them, and splits them into captures.

use std::path::PathBuf;

use serde_json::Map;

use crate::import::sidecar::sidecar;
use crate::json::Json;
use crate::{
    Capture, ElementBody, Import, Intake, IntakeOptions, Judgement, KnownRecords, Member, Settings, Shape,
    Taking, path_part,
};
use annals_core::{Result, Time};

pub(super) struct Exports;

impl Import for Exports {
    fn intake(&self, _options: IntakeOptions, _settings: &dyn Settings) -> Box<dyn Intake> {
        Box::new(ExportIntake)
    }

    fn drop_folders(&self, _settings: &dyn Settings) -> Vec<PathBuf> {
        Vec::new()
    }
}

struct ExportIntake;

/// What an element is, by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Conversation,
    Project,
    Account,
    Memories,
}

fn kind_of(has: impl Fn(&str) -> bool) -> Option<Kind> {
    if has("chat_messages") {
        Some(Kind::Conversation)
    } else if has("uuid") && (has("docs") || has("prompt_template")) {
        Some(Kind::Project)
    } else if has("uuid") && has("email_address") {
        Some(Kind::Account)
    } else if has("conversations_memory") || has("project_memories") {
        Some(Kind::Memories)
    } else {
        None
    }
}

impl Intake for ExportIntake {
    fn judge(&mut self, member: &Member<'_>) -> Judgement {
        let fields = member.first_fields();
        let kind = kind_of(|name| fields.iter().any(|(field, _)| *field == name.as_bytes()));
        let what = match kind {
            Some(Kind::Conversation) => "conversations",
            Some(Kind::Project) => "projects",
            Some(Kind::Account) => "account",
            Some(Kind::Memories) => "memories",
            None if member.head.trim_ascii() == b"[]" && is_own_name(member.base_name()) => {
                return Judgement::LeaveOut("empty list");
            }
            None => return Judgement::Unknown,
        };
        Judgement::Take(Taking { what, shape: Shape::Elements, order: 1, has_secrets: false })
    }

    fn take<'e>(
        &mut self,
        _member: &Member<'_>,
        element: &'e [u8],
        _archive: &dyn KnownRecords,
    ) -> Result<Option<Vec<Capture<'e>>>> {
        Ok(capture(element).map(|capture| vec![capture]))
    }
}

/// Names that other exports do not use for lists.
fn is_own_name(name: &str) -> bool {
    matches!(name, "projects.json" | "users.json" | "memories.json")
}

fn capture(element: &[u8]) -> Option<Capture<'_>> {
    let json = Json::parse_first(element)?;
    let text = |name: &str| json.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned());
    let at = text("updated_at").or_else(|| text("created_at")).and_then(|text| Time::parse(&text));
    Some(match kind_of(|name| json.get(name).is_some())? {
        Kind::Conversation => Capture {
            path: format!("conversations/{}.json-seq", path_part(&text("uuid")?)),
            store: "conversations",
            reader: "conversation",
            header: Map::new(),
            body: ElementBody::Text(element.into()),
            counts: true,
        },
        Kind::Project => sidecar("projects", &text("uuid")?, at, element),
        Kind::Account => sidecar("account", &text("uuid")?, at, element),
        Kind::Memories => {
            sidecar("memories", &text("account_uuid").unwrap_or_else(|| "account".to_owned()), at, element)
        }
    })
}
