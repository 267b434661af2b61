//! Imports trace files: recognises them by content, removes credentials, and assigns each trace to a session.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::clean::clean;
use super::exchange::{ModelRequest, ModelResponse};
use super::form::Form;
use super::references::References;
use super::sessions::{Sessions, element_name};
use super::trace::{Trace, host_and_path, time_in_id};
use crate::json::Json;
use crate::{Capture, ElementBody, Intake, Judgement, KnownRecords, Member, Shape, Taking, path_part};
use annals_core::{ContentKey, Result, Time};

/// Traces are sorted by time within a buffer of this many bytes.
const HELD: usize = 64 << 20;

pub struct TraceIntake {
    /// Hosts of gateways, besides those of the provider.
    gateways: Vec<String>,
    /// Header fields of the current container.
    container: Map<String, Value>,
    sessions: Sessions,
    /// The first and the last item of each file whose items do not name their conversation.
    lists: HashMap<String, ItemList>,
    waiting: Vec<PendingTrace>,
    waiting_bytes: usize,
    taken: i64,
    left_out: BTreeMap<String, u64>,
}

struct ItemList {
    name: String,
    first: Option<Time>,
    last: Option<Time>,
}

struct PendingTrace {
    session: String,
    at: Option<Time>,
    /// Sorts a request without a time before its response.
    answers: bool,
    number: i64,
    header: Map<String, Value>,
    text: Vec<u8>,
}

/// The classification of an element.
enum Classified<'e> {
    Trace(Box<Trace<'e>>),
    /// Recognised but not kept, with the reason.
    LeftOut(&'static str),
    Unknown,
}

impl TraceIntake {
    pub fn new(gateways: Vec<String>) -> TraceIntake {
        TraceIntake {
            gateways,
            container: Map::new(),
            sessions: Sessions::default(),
            lists: HashMap::new(),
            waiting: Vec::new(),
            waiting_bytes: 0,
            taken: 0,
            left_out: BTreeMap::new(),
        }
    }

    fn classify<'e>(&self, member: &Member<'_>, element: &'e [u8]) -> Classified<'e> {
        let Some(object) = Json::parse(element).filter(|json| json.is_object()).map(Json::object) else {
            return Classified::Unknown;
        };
        let Some(form) = Form::of(&object) else { return Classified::Unknown };
        if let Some(why) = form.left_out() {
            return Classified::LeftOut(why);
        }
        if form == Form::Har {
            let request = object.get("request").map(Json::object);
            let url = request.as_ref().and_then(|request| request.get_text("url")).unwrap_or_default();
            if let Some(why) = self.reason_if_foreign(&url) {
                return Classified::LeftOut(why);
            }
        }
        match Trace::read(element, 0, member.name) {
            Some(trace) if form == Form::Har && trace.request.is_none() && !has_content(&trace) => {
                Classified::LeftOut("calls without a request or response")
            }
            Some(trace) => Classified::Trace(Box::new(trace)),
            None => Classified::Unknown,
        }
    }

    /// Why a call in a HAR file does not belong to this source.
    fn reason_if_foreign(&self, url: &str) -> Option<&'static str> {
        let (host, path) = host_and_path(url);
        let host = host.to_ascii_lowercase();
        let own = host == "api.openai.com"
            || host.ends_with(".api.openai.com")
            || host.ends_with(".openai.azure.com");
        if !own && !self.gateways.contains(&host) {
            return Some("calls to other hosts");
        }
        let called = path
            .split('/')
            .any(|part| matches!(part, "completions" | "responses" | "conversations" | "embeddings"));
        (!called).then_some("calls to other endpoints")
    }

    fn release(&mut self) -> Vec<Capture<'static>> {
        self.waiting_bytes = 0;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by(|a, b| {
            let order = |waiting: &PendingTrace| (waiting.at, waiting.answers, waiting.number);
            a.session.cmp(&b.session).then_with(|| order(a).cmp(&order(b)))
        });
        let captures = waiting.into_iter().map(|waiting| Capture {
            path: format!("traces/{}.json-seq", path_part(&waiting.session)),
            store: "traces",
            reader: "trace",
            header: waiting.header,
            body: ElementBody::Text(Cow::Owned(waiting.text)),
            counts: true,
        });
        captures.collect()
    }
}

impl Intake for TraceIntake {
    fn judge(&mut self, member: &Member<'_>) -> Judgement {
        if is_flow_file(member.head) {
            return Judgement::LeaveOut("mitmproxy flows; save them with `hardump` and import the HAR file");
        }
        let fields = member.first_fields();
        let text = |name: &str| {
            let value =
                fields.iter().find(|(field, _)| *field == name.as_bytes()).and_then(|(_, value)| *value);
            value.and_then(Json::text).unwrap_or_default().into_owned()
        };
        let has = |name: &str| {
            let value = fields.iter().find(|(field, _)| *field == name.as_bytes());
            value.is_some_and(|(_, value)| value.is_none_or(|value| !value.is_null()))
        };
        let take = |what, shape| Judgement::Take(Taking { what, shape, order: 0, has_secrets: true });
        if fields.first().is_some_and(|(name, _)| *name == b"log") && contains(member.head, b"\"entries\"") {
            return take("a HAR", Shape::Within(&["log", "entries"]));
        }
        if has("data") && matches!(text("object").as_str(), "list" | "") {
            let first = fields_in_data(member.head);
            let inside = Form::by_names(
                &|name| first.iter().any(|(field, value)| field == name && value.as_deref() != Some("")),
                &|name| {
                    first
                        .iter()
                        .find(|(field, _)| field == name)
                        .and_then(|(_, value)| value.clone())
                        .unwrap_or_default()
                },
            );
            if inside.is_some() {
                return take("OpenAI list", Shape::Within(&["data"]));
            }
        }
        let found = Form::by_names(&has, &text).or_else(|| among_first(member.head));
        match found.map(|form| (form, form.left_out())) {
            Some((_, Some(why))) => Judgement::LeaveOut(why),
            Some((form, None)) => take(plural_name(form), Shape::Elements),
            None => Judgement::Unknown,
        }
    }

    fn begin(&mut self, container: &Map<String, Value>) {
        self.container.clone_from(container);
    }

    fn surveys_first(&self) -> bool {
        true
    }

    fn survey(&mut self, member: &Member<'_>, element: &[u8]) {
        let Classified::Trace(trace) = self.classify(member, element) else { return };
        let request = trace.request.as_ref().map(ModelRequest::read).unwrap_or_default();
        let answer = trace.response.as_ref().map(ModelResponse::read).unwrap_or_default();
        let mut references = References::of(&trace, &request, &answer);
        let at = time_of(&trace, &answer);
        if trace.form == Form::Item {
            let name = references.names.last().cloned().unwrap_or_default();
            let list = self.lists.entry(list_name(member)).or_insert(ItemList { name, first: at, last: at });
            list.last = at;
            if trace.of.is_none() {
                references.names.push(format!("items:{}", list.name));
            }
        }
        if let Some(batch) = &mut references.batch {
            batch.folder =
                member.name.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default();
        }
        self.sessions.add(ContentKey::of(&[element]), at, references);
    }

    fn take<'e>(
        &mut self,
        member: &Member<'_>,
        element: &'e [u8],
        archive: &dyn KnownRecords,
    ) -> Result<Option<Vec<Capture<'e>>>> {
        let trace = match self.classify(member, element) {
            Classified::Trace(trace) => trace,
            Classified::LeftOut(why) => {
                *self.left_out.entry(format!("{}: {why}", member.name)).or_default() += 1;
                return Ok(Some(Vec::new()));
            }
            Classified::Unknown => return Ok(None),
        };
        let key = ContentKey::of(&[element]);
        let Some(home) = self.sessions.home(key, archive)? else { return Ok(None) };
        let answer = trace.response.as_ref().map(ModelResponse::read).unwrap_or_default();
        let at = time_of(&trace, &answer);
        self.taken += 1;
        let backwards = self.lists.get(&list_name(member)).is_some_and(|list| list.last < list.first);
        let number = if backwards && trace.form == Form::Item { -self.taken } else { self.taken };
        let mut header = self.container.clone();
        header.insert("member".to_owned(), Value::from(member.name));
        header.insert("session".to_owned(), Value::from(home.session.as_str()));
        if self.sessions.is_nameless(key) {
            header.insert("element".to_owned(), Value::from(element_name(key)));
        }
        if home.several {
            header.insert("several".to_owned(), Value::from(true));
        }
        let text = clean(element).into_owned();
        self.waiting_bytes += text.len();
        let answers = trace.response.is_some();
        self.waiting.push(PendingTrace { session: home.session, at, answers, number, header, text });
        let released = if self.waiting_bytes > HELD { self.release() } else { Vec::new() };
        Ok(Some(released))
    }

    fn finish(&mut self, _archive: &dyn KnownRecords) -> Result<Vec<Capture<'static>>> {
        Ok(self.release())
    }

    fn take_warnings(&mut self) -> Vec<String> {
        let left_out = std::mem::take(&mut self.left_out).into_iter();
        let left_out = left_out.map(|(what, count)| format!("{what}: {count} skipped"));
        left_out.chain(std::mem::take(&mut self.sessions.warnings)).collect()
    }
}

/// Whether the response is worth keeping without a request: a retrieved response, or items of a conversation.
fn has_content(trace: &Trace<'_>) -> bool {
    let answer = trace.response.as_ref().map(ModelResponse::read).unwrap_or_default();
    let listed = trace.of.is_some() && !answer.listed.is_empty();
    listed || answer.id.is_some() || answer.usage.is_some()
}

fn time_of(trace: &Trace<'_>, answer: &ModelResponse<'_>) -> Option<Time> {
    trace.started_at.or(answer.at).or_else(|| {
        let item = trace.request.as_ref().filter(|_| trace.form == Form::Item)?;
        time_in_id(&item.json()?.get_text("id")?)
    })
}

/// Includes the container, as several containers may have files with the same name.
fn list_name(member: &Member<'_>) -> String {
    format!("{} {}", member.size, member.name)
}

fn plural_name(form: Form) -> &'static str {
    match form {
        Form::Har => "HAR entries",
        Form::BatchRequest => "batch requests",
        Form::BatchResponse => "batch responses",
        Form::LiteLlm => "LiteLLM logs",
        Form::Helicone => "Helicone rows",
        Form::Langfuse => "Langfuse rows",
        Form::Completion => "chat completions",
        Form::StoredMessage => "stored completion messages",
        Form::Response => "responses",
        Form::Conversation => "conversations",
        Form::Item => "conversation items",
    }
}

/// The first form among the complete objects of the head; a file may start with something else.
fn among_first(head: &[u8]) -> Option<Form> {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    if text.starts_with(b"[") {
        let inside = text.get(1..).unwrap_or_default();
        let mut rest = inside;
        loop {
            let start = rest.iter().position(|byte| *byte == b'{')?;
            let object = Json::parse_first(&rest[start..])?.object();
            if let Some(form) = Form::of(&object) {
                return Some(form);
            }
            rest = rest.get(start + object.bytes().len()..)?;
        }
    }
    text.split(|byte| *byte == b'\n').find_map(|line| Form::of(&Json::parse_first(line)?.object()))
}

/// Names and texts of the first object in `data`, as far as the head has them.
fn fields_in_data(head: &[u8]) -> Vec<(String, Option<String>)> {
    let Some(at) = memchr::memmem::find(head, b"\"data\"") else { return Vec::new() };
    let rest = &head[at + b"\"data\"".len()..];
    let Some(open) = rest.iter().position(|byte| *byte == b'{') else { return Vec::new() };
    let fields = Json::fields_of_start(&rest[open..]).into_iter();
    let read = fields.map(|(name, value)| {
        let text = value.map(|value| match value.is_null() {
            true => String::new(),
            false => value.text().map_or_else(|| "…".to_owned(), |text| text.into_owned()),
        });
        (String::from_utf8_lossy(name).into_owned(), text)
    });
    read.collect()
}

/// Recognises flow files of mitmproxy, which have lengths before values.
fn is_flow_file(head: &[u8]) -> bool {
    let digits = head.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..10).contains(&digits) && head.get(digits) == Some(&b':') && contains(head, b"7:version;")
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}
