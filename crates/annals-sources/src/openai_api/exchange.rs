//! Request and response, read from the bodies of a call.

use super::body::TraceBody;
use super::steps::TraceStep;
use super::trace::moment;
use super::{steps, stream};
use crate::json::Json;
use annals_core::{MessageKind, Role, Time};

/// A request, or a list of messages or items.
#[derive(Debug, Default)]
pub struct ModelRequest<'t> {
    pub steps: Vec<TraceStep<'t>>,
    pub model: Option<String>,
    /// The id of the previous response.
    pub previous: Option<String>,
    pub conversation: Option<String>,
}

impl<'t> ModelRequest<'t> {
    pub fn read(body: &'t TraceBody<'_>) -> ModelRequest<'t> {
        let mut request = ModelRequest::default();
        let Some(json) = body.json() else {
            // Requests in LiteLLM logs may be plain text.
            if !stream::is_stream(body.text()) && !body.text().trim_ascii().is_empty() {
                steps::plain(body.text(), &mut request.steps);
            }
            return request;
        };
        if json.is_array() {
            json.items().for_each(|item| steps::item(item, &mut request.steps));
            return request;
        }
        if json.is_string() {
            steps::text(json, Role::User, MessageKind::Prompt, &mut request.steps);
            return request;
        }
        let object = json.object();
        let text = |name: &str| object.get_text(name).map(|text| text.into_owned());
        request.model = text("model");
        request.previous = text("previous_response_id");
        request.conversation = object.get("conversation").and_then(conversation);
        if let Some(instructions) = object.get("instructions") {
            steps::text(instructions, Role::System, MessageKind::Injected, &mut request.steps);
        }
        if let Some(messages) = object.get("messages") {
            messages.items().for_each(|message| steps::chat_message(message, &mut request.steps));
        }
        if let Some(input) = object.get("input") {
            steps::text(input, Role::User, MessageKind::Prompt, &mut request.steps);
            input.items().for_each(|item| steps::item(item, &mut request.steps));
        }
        let bare = object.get("messages").or_else(|| object.get("input")).is_none();
        if bare && (object.get("role").is_some() || object.get("type").is_some()) {
            steps::item(json, &mut request.steps);
        }
        request
    }
}

/// A response, streamed or not.
#[derive(Debug, Default)]
pub struct ModelResponse<'t> {
    pub id: Option<String>,
    pub model: Option<String>,
    pub at: Option<Time>,
    pub previous: Option<String>,
    pub conversation: Option<String>,
    /// The instructions that the response repeats.
    pub instructions: Vec<TraceStep<'t>>,
    /// One list of steps for each choice; responses have one.
    pub choices: Vec<Vec<TraceStep<'t>>>,
    /// The stream broke off.
    pub unfinished: bool,
    /// Items of a list that was requested.
    pub listed: Vec<TraceStep<'t>>,
    pub failures: Vec<TraceStep<'t>>,
    pub usage: Option<Json<'t>>,
    pub service_tier: Option<String>,
    pub metadata: Option<Json<'t>>,
}

impl<'t> ModelResponse<'t> {
    pub fn read(body: &'t TraceBody<'_>) -> ModelResponse<'t> {
        let mut answer = ModelResponse::default();
        match body.json() {
            Some(json) => answer.object(json),
            None if stream::is_stream(body.text()) => answer.stream(body.text()),
            None => {}
        }
        answer
    }

    fn object(&mut self, json: Json<'t>) {
        let object = json.object();
        if let Some(data) = object.get("data").filter(|data| data.is_array()) {
            data.items().for_each(|item| steps::item(item, &mut self.listed));
        }
        if let Some(error) = object.get("error") {
            steps::failure(error, &mut self.failures);
        }
        if object.get("choices").or_else(|| object.get("output")).or_else(|| object.get("usage")).is_none() {
            return;
        }
        let text = |name: &str| object.get_text(name).map(|text| text.into_owned());
        self.id = text("id").filter(|id| !id.is_empty());
        self.model = text("model").filter(|model| !model.is_empty());
        self.at = object.get("created").or_else(|| object.get("created_at")).and_then(moment);
        self.previous = text("previous_response_id");
        self.conversation = object.get("conversation").and_then(conversation);
        self.usage = object.get("usage").filter(|usage| usage.is_object());
        self.service_tier = text("service_tier");
        self.metadata = object.get("metadata").filter(|metadata| metadata.bytes().len() > 2);
        if let Some(instructions) = object.get("instructions") {
            steps::text(instructions, Role::System, MessageKind::Injected, &mut self.instructions);
            instructions.items().for_each(|item| steps::item(item, &mut self.instructions));
        }
        for choice in object.get("choices").into_iter().flat_map(Json::items) {
            let mut steps_of_choice = Vec::new();
            if let Some(message) = choice.get("message") {
                steps::chat_message(message, &mut steps_of_choice);
            } else if let Some(text) = choice.get("text") {
                steps::text(text, Role::Assistant, MessageKind::Answer, &mut steps_of_choice);
            }
            self.choices.push(steps_of_choice);
        }
        if let Some(output) = object.get("output") {
            let mut steps_of_choice = Vec::new();
            output.items().for_each(|item| steps::item(item, &mut steps_of_choice));
            self.choices.push(steps_of_choice);
        }
        if let Some(cut) = object.get("incomplete_details") {
            steps::failure(cut, &mut self.failures);
        }
    }

    fn stream(&mut self, text: &'t [u8]) {
        let streamed = stream::response(text);
        self.unfinished = !streamed.finished;
        if let Some(response) = streamed.response {
            self.object(response);
            if self.unfinished {
                self.choices.clear();
            }
        }
        if let Some(error) = streamed.error {
            steps::failure(error, &mut self.failures);
        }
        let mut steps_of_choice = Vec::new();
        streamed.items.iter().for_each(|item| steps::item(*item, &mut steps_of_choice));
        streamed.unfinished.iter().for_each(|bytes| steps::unfinished(bytes, &mut steps_of_choice));
        self.choices.extend(Some(steps_of_choice).filter(|steps_of_choice| !steps_of_choice.is_empty()));
        for (event, _) in stream::events(text) {
            let object = event.object();
            if object.get("choices").is_none() {
                continue;
            }
            let named = |name: &str| {
                object.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned())
            };
            self.id = self.id.take().or_else(|| named("id"));
            self.model = self.model.take().or_else(|| named("model"));
            self.at = self.at.or_else(|| object.get("created").and_then(moment));
            self.usage = object.get("usage").filter(|usage| usage.is_object()).or(self.usage);
            self.service_tier = self.service_tier.take().or_else(|| named("service_tier"));
        }
        for choice in stream::choices(text).values() {
            self.unfinished = !choice.finished;
            let mut steps_of_choice = Vec::new();
            steps::streamed_choice(choice, &mut steps_of_choice);
            self.choices.push(steps_of_choice);
        }
    }
}

/// An id, or an object with one.
fn conversation(value: Json<'_>) -> Option<String> {
    value.text().or_else(|| value.get_text("id")).map(|id| id.into_owned())
}
