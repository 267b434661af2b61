//! One element as a trace: request, response, and the fields of the log around them.

use serde_json::{Map, Value};

use super::body::TraceBody;
use super::form::{Form, stored_message};
use crate::json::{Json, Object};
use annals_core::Time;

/// A call in a log of any form.
pub struct Trace<'a> {
    pub form: Form,
    pub request: Option<TraceBody<'a>>,
    pub response: Option<TraceBody<'a>>,
    /// The error in the log.
    pub error: Option<TraceBody<'a>>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The provider's id of the response, where the log has one.
    pub response_id: Option<String>,
    /// The conversation, response or completion that messages and items belong to.
    pub of: Option<String>,
    /// The session of LiteLLM, or its group of requests.
    pub session: Option<String>,
    pub custom_id: Option<String>,
    pub model: Option<String>,
    pub cost: Option<f64>,
    /// Tokens from the log, as opposed to the response.
    pub usage: Option<Json<'a>>,
    /// Further native fields for the session.
    pub native: Map<String, Value>,
}

impl<'a> Trace<'a> {
    /// `element` starts at `offset` of its file; `member` is the name of the file that it came from.
    pub fn read(element: &'a [u8], offset: u64, member: &str) -> Option<Trace<'a>> {
        let json = Json::parse(element)?;
        let object = json.object();
        let form = Form::of(&object)?;
        let mut trace = Trace {
            form,
            request: None,
            response: None,
            error: None,
            started_at: None,
            ended_at: None,
            response_id: None,
            of: None,
            session: None,
            custom_id: None,
            model: None,
            cost: None,
            usage: None,
            native: Map::new(),
        };
        let place = ElementPlace { element, offset };
        match form {
            Form::Har => trace.har(&place, &object),
            Form::BatchRequest => {
                trace.custom_id = text(&object, "custom_id");
                let embeds = text(&object, "url").is_some_and(|url| url.ends_with("/embeddings"));
                trace.request = object.get("body").filter(|_| !embeds).map(|body| place.body(body));
            }
            Form::BatchResponse => trace.batch_response(&place, &object),
            Form::LiteLlm => trace.litellm(&place, &object, json),
            Form::StoredMessage => {
                trace.of = text(&object, "id").and_then(|id| stored_message(&id).map(str::to_owned));
                trace.request = Some(place.body(json));
            }
            Form::Item => {
                trace.of = text(&object, "conversation_id").or_else(|| id_in(member));
                trace.request = Some(place.body(json));
            }
            Form::Conversation => {
                trace.of = text(&object, "id");
                trace.started_at = object.get("created_at").and_then(moment);
                trace.note("metadata", object.get("metadata"));
                trace.request = object.get("items").map(|items| place.body(items));
            }
            Form::Completion | Form::Response => trace.response = Some(place.body(json)),
            Form::Helicone | Form::Langfuse => {}
        }
        Some(trace)
    }

    /// Whether the element is a list of messages or items, not a call.
    pub fn is_dump(&self) -> bool {
        match self.form {
            Form::StoredMessage | Form::Item | Form::Conversation => true,
            Form::Har => self.request.is_none() && self.of.is_some(),
            Form::BatchRequest
            | Form::BatchResponse
            | Form::LiteLlm
            | Form::Helicone
            | Form::Langfuse
            | Form::Completion
            | Form::Response => false,
        }
    }

    fn har(&mut self, place: &ElementPlace<'a>, entry: &Object<'a>) {
        let request = entry.get("request").map(Json::object);
        let response = entry.get("response").map(Json::object);
        self.started_at = text(entry, "startedDateTime").and_then(|at| read_time(&at));
        let took = entry.get_integer("time").unwrap_or(0).clamp(0, 86_400_000);
        self.ended_at = self.started_at.map(|at| Time::from_micros(at.micros() + took * 1_000));
        let url = request.as_ref().and_then(|request| text(request, "url")).unwrap_or_default();
        let (host, path) = host_and_path(&url);
        self.native.insert("host".into(), Value::from(host));
        if path.ends_with("/messages") || path.ends_with("_items") || path.ends_with("/items") {
            self.of = id_in(path);
        }
        let sent =
            request.as_ref().and_then(|request| request.get("postData")).and_then(|post| post.get("text"));
        let got = response.as_ref().and_then(|response| response.get("content")).and_then(|c| c.get("text"));
        // The input of an embedding is not a conversation.
        self.request = sent.filter(|_| !path.ends_with("/embeddings")).map(|sent| place.body(sent));
        self.response = got.map(|got| place.body(got));
        self.model = id_behind(path, "deployments").map(str::to_owned);
    }

    fn batch_response(&mut self, place: &ElementPlace<'a>, line: &Object<'a>) {
        self.custom_id = text(line, "custom_id");
        self.note("batch_request_id", line.get("id"));
        let response = line.get("response").filter(|response| response.is_object());
        self.response = response.and_then(|response| response.get("body")).map(|body| place.body(body));
        self.note("request_id", response.and_then(|response| response.get("request_id")));
        self.error = line.get("error").map(|error| place.body(error));
    }

    fn litellm(&mut self, place: &ElementPlace<'a>, log: &Object<'a>, whole: Json<'a>) {
        let named =
            |names: &[&str]| names.iter().find_map(|name| text(log, name)).filter(|id| !id.is_empty());
        self.response_id = named(&["id", "request_id", "litellm_call_id"]);
        self.session = named(&["session_id", "litellm_session_id", "trace_id", "litellm_trace_id"]);
        self.started_at = ["startTime", "start_time"].iter().find_map(|name| moment(log.get(name)?));
        self.ended_at = ["endTime", "end_time"].iter().find_map(|name| moment(log.get(name)?));
        self.model = named(&["model", "model_group"]).map(|model| {
            let plain = model.strip_prefix("openai/").or_else(|| model.strip_prefix("azure/"));
            plain.unwrap_or(&model).to_owned()
        });
        self.cost = ["response_cost", "spend"].iter().find_map(|name| log.get(name)?.value().as_f64());
        self.usage = log.get("prompt_tokens").map(|_| whole);
        let filled = |value: &Json<'a>| value.bytes().len() > 4;
        let proxied = log.get("proxy_server_request").filter(|request| request.is_object());
        let proxied = proxied.and_then(|request| request.get("body").or(Some(request)));
        let input = log.get("messages").filter(filled).or_else(|| log.get("input").filter(filled));
        let embeds = text(log, "call_type").is_some_and(|call| call.contains("embedding"));
        let input = input.or(proxied).filter(|input| filled(input) && !embeds);
        self.request = input.map(|input| place.body(input));
        self.response = log.get("response").filter(filled).map(|response| place.body(response));
        let failed = text(log, "status").is_some_and(|status| status == "failure");
        let error =
            log.get("error_information").or_else(|| log.get("error_str")).or_else(|| log.get("exception"));
        self.error = error.filter(|_| failed).map(|error| place.body(error));
        for name in [
            "call_type",
            "custom_llm_provider",
            "model_group",
            "api_base",
            "user",
            "end_user",
            "team_id",
            "status",
            "request_tags",
        ] {
            self.note(name, log.get(name));
        }
    }

    fn note(&mut self, name: &str, value: Option<Json<'_>>) {
        let is_distinctive = value
            .filter(|value| !matches!(value.bytes(), b"\"\"" | b"{}" | b"[]") && value.bytes().len() < 2_000);
        if let Some(value) = is_distinctive {
            self.native.insert(name.to_owned(), value.value());
        }
    }
}

struct ElementPlace<'a> {
    element: &'a [u8],
    offset: u64,
}

impl<'a> ElementPlace<'a> {
    fn body(&self, value: Json<'a>) -> TraceBody<'a> {
        TraceBody::new(self.element, self.offset, value)
    }
}

/// The host of an address, and its path without the query.
pub fn host_and_path(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit('@').next().unwrap_or(host);
    (host.split(':').next().unwrap_or(host), path)
}

/// Reads seconds since 1970, or any format in which logs write times.
pub fn moment(value: Json<'_>) -> Option<Time> {
    if let Some(text) = value.text() {
        return read_time(&text);
    }
    let seconds = value.value().as_f64().filter(|seconds| (0.0..1e11).contains(seconds))?;
    Some(Time::from_micros((seconds * 1e6).round() as i64))
}

/// The id of a conversation, response or completion in a file name or address.
pub fn id_in(name: &str) -> Option<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let words = name.split(|letter: char| !plain(letter));
    let mut found = words.rev().filter_map(|word| {
        ["conv_", "resp_", "chatcmpl-"].iter().find_map(|start| word.find(start).map(|at| &word[at..]))
    });
    found.next().map(|id| {
        let id = id.trim_end_matches(['-', '_']);
        let cut = if id.starts_with("chatcmpl-") { None } else { id.find('-') };
        cut.map_or(id, |cut| &id[..cut]).to_owned()
    })
}

/// Ids of responses and items start with their creation time in seconds, in hexadecimal.
pub fn time_in_id(id: &str) -> Option<Time> {
    let (_, rest) = id.split_once('_')?;
    let seconds = i64::from_str_radix(rest.get(..8)?, 16).ok()?;
    // From 2023 until eight digits overflow.
    (rest.len() >= 32 && seconds > 1_672_531_200).then(|| Time::from_seconds(seconds))
}

fn id_behind<'p>(path: &'p str, word: &str) -> Option<&'p str> {
    let mut parts = path.split('/').skip_while(|part| *part != word);
    parts.nth(1).filter(|part| !part.is_empty())
}

fn text(object: &Object<'_>, name: &str) -> Option<String> {
    object.get_text(name).map(|text| text.into_owned())
}

/// Logs may leave out the `T` and the offset, which means UTC.
fn read_time(text: &str) -> Option<Time> {
    let text = text.trim().replacen(' ', "T", 1);
    let offset = text.get(19..).is_some_and(|rest| rest.contains(['+', '-', 'Z', 'z']));
    Time::parse(&if offset { text } else { format!("{text}Z") })
}

#[cfg(test)]
mod tests {
    use super::{host_and_path, id_in, moment};
    use crate::json::Json;

    #[test]
    fn times_are_read_however_they_are_written() {
        let expected = moment(Json::parse(b"1772450000.25").unwrap()).unwrap();
        for text in [
            "\"2026-03-02T11:13:20.25Z\"",
            "\"2026-03-02T11:13:20.250+00:00\"",
            "\"2026-03-02 11:13:20.250000\"",
            "\"2026-03-02T12:13:20.25+01:00\"",
        ] {
            assert_eq!(moment(Json::parse(text.as_bytes()).unwrap()), Some(expected), "{text}");
        }
        for text in ["\"\"", "\"soon\"", "-1", "1e300", "null", "{}"] {
            assert_eq!(moment(Json::parse(text.as_bytes()).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn names_contain_the_conversation_of_items() {
        assert_eq!(id_in("dump/conv_12ab.items.json").as_deref(), Some("conv_12ab"));
        assert_eq!(id_in("/v1/responses/resp_9/input_items").as_deref(), Some("resp_9"));
        assert_eq!(id_in("/v1/chat/completions/chatcmpl-Ab-1/messages").as_deref(), Some("chatcmpl-Ab-1"));
        assert_eq!(id_in("conv_1-items.json").as_deref(), Some("conv_1"));
        assert_eq!(id_in("items.json"), None);
    }

    #[test]
    fn addresses_are_split() {
        assert_eq!(
            host_and_path("https://api.openai.com/v1/responses?x=1"),
            ("api.openai.com", "/v1/responses")
        );
        assert_eq!(host_and_path("https://u:p@a.b:8443/c"), ("a.b", "/c"));
        assert_eq!(host_and_path(""), ("", ""));
    }
}
