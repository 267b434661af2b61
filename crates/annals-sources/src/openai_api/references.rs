//! The ids of a trace, and what links traces to a session.

use super::exchange::{ModelRequest, ModelResponse};
use super::form::Form;
use super::steps::{StepKind, TraceStep};
use super::trace::Trace;
use annals_core::{ContentKey, MessageKind, from_base64};

/// What identifies the session of a trace.
#[derive(Debug, Default)]
pub struct References {
    /// Traces that share a name are in one session; the first is the best name for a new session.
    pub names: Vec<String>,
    /// The conversation up to each answer that the request repeats, longest first.
    pub before: Vec<ContentKey>,
    /// The conversation at the end of this trace, for each choice.
    pub after: Vec<ContentKey>,
    pub batch: Option<BatchPart>,
}

/// The request or response of a call in a batch.
#[derive(Debug)]
pub struct BatchPart {
    pub custom_id: String,
    pub model: Option<String>,
    pub half: BatchHalf,
    /// The folder of its file within the import.
    pub folder: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchHalf {
    Request,
    Response,
}

impl References {
    pub fn of(trace: &Trace<'_>, request: &ModelRequest<'_>, answer: &ModelResponse<'_>) -> References {
        let own = answer.id.as_ref().or(trace.response_id.as_ref()).map(|id| plain_id(id));
        let conversation = request.conversation.as_ref().or(answer.conversation.as_ref()).cloned();
        let of = trace.of.clone();
        let session = trace.session.as_ref().map(|session| format!("session:{session}"));
        let previous = request.previous.as_ref().or(answer.previous.as_ref()).map(|id| plain_id(id));
        let item = trace.request.as_ref().filter(|_| trace.form == Form::Item);
        let item = item.and_then(|item| item.json()?.get_text("id").map(|id| id.into_owned()));
        let names = [conversation, of, session, own, previous, item].into_iter().flatten();
        let batch = trace.custom_id.as_ref().map(|custom_id| BatchPart {
            custom_id: custom_id.clone(),
            model: answer.model.as_ref().or(request.model.as_ref()).cloned(),
            half: if trace.form == Form::BatchRequest { BatchHalf::Request } else { BatchHalf::Response },
            folder: String::new(),
        });
        let (mut before, mut after) = (Vec::new(), Vec::new());
        if !request.steps.is_empty() && !trace.is_dump() {
            let mut line = start();
            for step in request.steps.iter().filter(|step| counts(step)) {
                line = next(line, step.content);
                if is_answer(step) {
                    before.push(line);
                }
            }
            before.reverse();
            for choice in answer.choices.iter().filter(|choice| !choice.is_empty()) {
                after.push(
                    choice
                        .iter()
                        .filter(|step| counts(step))
                        .fold(line, |line, step| next(line, step.content)),
                );
            }
        }
        References { names: names.collect(), before, after, batch }
    }

    /// All names by which later traces find this one.
    pub fn names(&self, session: &str) -> Vec<String> {
        let mut names = self.names.clone();
        names.extend(self.after.iter().map(|line| chain_name(*line)));
        if let Some(batch) = &self.batch {
            names.push(half_name(batch.half, &batch.custom_id));
            names.push(half_of(batch.half, &batch.custom_id, session));
        }
        names.dedup();
        names
    }
}

/// The empty chain of steps.
pub fn start() -> ContentKey {
    ContentKey::of(&[b"start"])
}

pub fn next(line: ContentKey, content: ContentKey) -> ContentKey {
    line.then(content.hex().as_bytes())
}

/// Whether a step is part of the chain. Requests repeat messages and calls; instructions may change, and reasoning is
/// often left out.
pub fn counts(step: &TraceStep<'_>) -> bool {
    match &step.kind {
        StepKind::Message { kind, .. } => matches!(kind, MessageKind::Prompt | MessageKind::Answer),
        StepKind::Call { .. } | StepKind::Result { .. } => true,
    }
}

/// The name of a chain of steps.
pub fn chain_name(line: ContentKey) -> String {
    format!("said:{}", line.hex())
}

pub fn half_name(half: BatchHalf, custom_id: &str) -> String {
    match half {
        BatchHalf::Request => format!("batch_request:{custom_id}"),
        BatchHalf::Response => format!("batch_response:{custom_id}"),
    }
}

pub fn half_of(side: BatchHalf, custom_id: &str, session: &str) -> String {
    format!("{}@{session}", half_name(side, custom_id))
}

/// The name that marks a custom id as open in several batches.
pub fn several(custom_id: &str) -> String {
    format!("batch_several:{custom_id}")
}

/// LiteLLM wraps ids of responses into its own: `resp_` and, in base64, `litellm:…;response_id:resp_1`.
pub fn plain_id(id: &str) -> String {
    let wrapped = id.strip_prefix("resp_").and_then(|rest| from_base64(rest.as_bytes()));
    let text = wrapped.and_then(|bytes| String::from_utf8(bytes).ok());
    let inside = text.as_deref().and_then(|text| text.rsplit_once("response_id:")).map(|(_, id)| id);
    inside.unwrap_or(id).to_owned()
}

fn is_answer(step: &TraceStep<'_>) -> bool {
    match &step.kind {
        StepKind::Message { kind, .. } => *kind == MessageKind::Answer,
        StepKind::Call { .. } => true,
        StepKind::Result { .. } => false,
    }
}
