//! Recognises the forms of trace files by the names of their fields.

use crate::json::Object;

/// The form of one element of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// An entry of a HAR.
    Har,
    BatchRequest,
    BatchResponse,
    /// A log line or spend log of LiteLLM.
    LiteLlm,
    Helicone,
    Langfuse,
    Completion,
    /// A message of a stored completion.
    StoredMessage,
    Response,
    Conversation,
    /// An item of a conversation, or of a response's input.
    Item,
}

impl Form {
    /// The first form that matches. Logs wrap objects of the API, so they come first.
    pub fn of(object: &Object<'_>) -> Option<Form> {
        Form::by_names(&|name| object.get(name).is_some(), &|name| {
            object.get_text(name).unwrap_or_default().into_owned()
        })
    }

    /// `has` returns whether a field exists, `text` its text.
    pub fn by_names(has: &dyn Fn(&str) -> bool, text: &dyn Fn(&str) -> String) -> Option<Form> {
        let all = |names: &[&str]| names.iter().all(|name| has(name));
        let any = |names: &[&str]| names.iter().any(|name| has(name));
        let found = match text("object").as_str() {
            _ if all(&["request", "response"]) && any(&["startedDateTime", "timings"]) => Form::Har,
            _ if has("custom_id") && all(&["body", "url"]) => Form::BatchRequest,
            _ if has("custom_id") && any(&["response", "error"]) => Form::BatchResponse,
            _ if has("litellm_call_id") => Form::LiteLlm,
            _ if all(&["call_type", "startTime"])
                && any(&["model_group", "spend", "custom_llm_provider"]) =>
            {
                Form::LiteLlm
            }
            _ if has("request_id")
                && any(&["request_body", "signed_body_url"])
                && any(&["response_body", "request_path"]) =>
            {
                Form::Helicone
            }
            _ if any(&["trace_id", "traceId"]) && any(&["provided_model_name", "providedModelName"]) => {
                Form::Langfuse
            }
            "chat.completion" => Form::Completion,
            "response" => Form::Response,
            "conversation" => Form::Conversation,
            "" if has("role") && stored_message(&text("id")).is_some() => Form::StoredMessage,
            "" | "conversation.item" if item_id(&text("id")) && any(&["type", "role"]) => Form::Item,
            _ => return None,
        };
        Some(found)
    }

    /// A user-facing name.
    pub fn name(self) -> &'static str {
        match self {
            Form::Har => "HAR entry",
            Form::BatchRequest => "batch request",
            Form::BatchResponse => "batch response",
            Form::LiteLlm => "LiteLLM log",
            Form::Helicone => "Helicone row",
            Form::Langfuse => "Langfuse row",
            Form::Completion => "chat completion",
            Form::StoredMessage => "stored message",
            Form::Response => "response",
            Form::Conversation => "conversation",
            Form::Item => "conversation item",
        }
    }

    /// Why elements of this form are not kept.
    pub fn left_out(self) -> Option<&'static str> {
        match self {
            Form::Helicone => Some("Helicone exports are not supported yet"),
            Form::Langfuse => Some("Langfuse exports are not supported yet"),
            Form::Har
            | Form::BatchRequest
            | Form::BatchResponse
            | Form::LiteLlm
            | Form::Completion
            | Form::StoredMessage
            | Form::Response
            | Form::Conversation
            | Form::Item => None,
        }
    }
}

/// The completion that a stored message belongs to: `chatcmpl-x-0` is the first of `chatcmpl-x`.
pub fn stored_message(id: &str) -> Option<&str> {
    let (completion, number) = id.rsplit_once('-')?;
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (numbered && completion.starts_with("chatcmpl-") && completion.len() > "chatcmpl-".len())
        .then_some(completion)
}

/// Ids of items start with their type: `msg_`, `fc_`, `rs_`, `ws_`, `mcp_` and others.
fn item_id(id: &str) -> bool {
    let known = [
        "msg", "fc", "fco", "rs", "ws", "fs", "ci", "ig", "mcp", "mcpl", "mcpr", "mcpa", "cu", "cuo", "lsh",
        "lsho", "ctc", "ctco", "sh", "sho", "apc", "apco", "cmp", "ts", "tso",
    ];
    id.split_once('_').is_some_and(|(kind, rest)| known.contains(&kind) && !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Form;
    use crate::json::Json;

    #[test]
    fn forms_are_distinguished() {
        let cases = [
            (r#"{"startedDateTime":"x","request":{},"response":{}}"#, Some(Form::Har)),
            (
                r#"{"custom_id":"a","method":"POST","url":"/v1/responses","body":{}}"#,
                Some(Form::BatchRequest),
            ),
            (
                r#"{"id":"batch_req_1","custom_id":"a","response":{"body":{}},"error":null}"#,
                Some(Form::BatchResponse),
            ),
            (r#"{"id":"batch_req_1","custom_id":"a","response":null,"error":{}}"#, Some(Form::BatchResponse)),
            (r#"{"litellm_call_id":"a","object":"chat.completion"}"#, Some(Form::LiteLlm)),
            (r#"{"call_type":"acompletion","startTime":1.5,"model_group":"m"}"#, Some(Form::LiteLlm)),
            (r#"{"request_id":"a","request_body":{},"response_body":{}}"#, Some(Form::Helicone)),
            (r#"{"trace_id":"a","provided_model_name":"m","type":"GENERATION"}"#, Some(Form::Langfuse)),
            (r#"{"object":"chat.completion","id":"chatcmpl-1"}"#, Some(Form::Completion)),
            (r#"{"object":"response","id":"resp_1"}"#, Some(Form::Response)),
            (r#"{"object":"conversation","id":"conv_1"}"#, Some(Form::Conversation)),
            (r#"{"id":"chatcmpl-abc-0","role":"user","content":"x"}"#, Some(Form::StoredMessage)),
            (r#"{"id":"msg_1","type":"message","role":"user","content":[]}"#, Some(Form::Item)),
            (r#"{"messages":[{"role":"user","content":"x"}]}"#, None),
            (r#"{"object":"embedding"}"#, None),
            (r#"{"id":"chatcmpl-abc","role":"user"}"#, None),
            (r#"{"type":"user","uuid":"1"}"#, None),
        ];
        for (text, form) in cases {
            assert_eq!(Form::of(&Json::parse(text.as_bytes()).unwrap().object()), form, "{text}");
        }
    }
}
