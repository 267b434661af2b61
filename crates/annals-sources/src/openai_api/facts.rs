//! Facts about a session from its traces.

use serde_json::Value;

use super::exchange::ModelResponse;
use super::trace::Trace;
use annals_core::{SessionFacts, Time};

#[derive(Default)]
pub struct SessionNotes {
    facts: SessionFacts,
    /// The requested model, used if no response names one.
    requested_model: Option<String>,
}

impl SessionNotes {
    pub fn note(
        &mut self,
        trace: &Trace<'_>,
        answer: &ModelResponse<'_>,
        moments: [Option<Time>; 2],
        requested_model: Option<&str>,
    ) {
        self.requested_model = self.requested_model.take().or_else(|| requested_model.map(str::to_owned));
        let facts = &mut self.facts;
        for at in moments.into_iter().flatten() {
            facts.started_at = Some(facts.started_at.map_or(at, |first| first.min(at)));
            facts.last_at = facts.last_at.max(Some(at));
        }
        let model = answer.model.as_deref();
        if let Some(model) = model.filter(|model| !facts.models.iter().any(|known| known == model)) {
            facts.models.push(model.to_owned());
        }
        let form = trace.form.name();
        facts.entrypoint.get_or_insert_with(|| form.to_owned());
        gather(facts, "forms", form);
        for name in [&answer.conversation, &trace.of] {
            if let Some(conversation) = name.as_deref().filter(|id| id.starts_with("conv_")) {
                facts.native.insert("conversation_id".into(), Value::from(conversation));
            }
        }
        if let Some(custom_id) = &trace.custom_id {
            facts.native.insert("custom_id".into(), Value::from(custom_id.as_str()));
        }
        if let Some(tier) = &answer.service_tier {
            gather(facts, "service_tiers", tier);
        }
        if let Some(metadata) = answer.metadata.filter(|metadata| metadata.bytes().len() < 2_000) {
            facts.native.insert("metadata".into(), metadata.value());
        }
        facts.native.extend(trace.native.clone());
    }

    /// Uses the first prompt as the title.
    pub fn note_prompt(&mut self, line: &str) {
        if self.facts.first_prompt.is_none() && !line.is_empty() {
            self.facts.first_prompt = Some(line.to_owned());
        }
    }

    pub fn facts(&self) -> SessionFacts {
        let mut facts = self.facts.clone();
        if facts.models.is_empty() {
            facts.models.extend(self.requested_model.clone());
        }
        facts
    }
}

fn gather(facts: &mut SessionFacts, name: &str, value: &str) {
    let list = facts.native.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|known| known == value)) {
        list.push(Value::from(value));
    }
}
