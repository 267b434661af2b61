//! Files besides conversations: cards of sessions, the list of tasks, and what the interface of older clients showed, which has
//! the usage of their requests.

use std::sync::Arc;

use super::markup::words_in;
use super::messages::cost_in;
use super::places::place_of;
use crate::home::title::title_of;
use crate::json::{Json, Line};
use crate::{Facts, FileContext, Reader};
use annals_core::{ContentKey, Item, Picodollars, SessionFacts, Span, Time, Tokens, Usage, Verdict};

/// The only provider of older clients that counts what was cached as input too.
const COUNTS_CACHED: &str = "openai";

/// What the interface showed.
const SHOWN: &[&str] = &[
    "api_req_finished",
    "api_req_retried",
    "api_req_started",
    "browser_action",
    "browser_action_launch",
    "browser_action_result",
    "checkpoint_created",
    "clineignore_error",
    "command",
    "command_output",
    "completion_result",
    "deleted_api_reqs",
    "diff_error",
    "error",
    "error_retry",
    "generate_explanation",
    "hook",
    "info",
    "load_mcp_documentation",
    "mcp_notification",
    "mcp_response",
    "mcp_server_request_started",
    "mcp_server_response",
    "reasoning",
    "shell_integration_warning",
    "subagent",
    "task",
    "task_progress",
    "text",
    "tool",
    "use_mcp_server",
    "user_feedback",
    "user_feedback_diff",
];

type SessionFact = (String, SessionFacts);

/// Reads documents that only say something about sessions.
pub struct CardReader {
    read: fn(&str, Json<'_>) -> Option<Vec<SessionFact>>,
    session: String,
    facts: Vec<SessionFact>,
}

impl CardReader {
    /// `sessions/<session>/<session>.json`
    pub fn of_session(file: &FileContext) -> CardReader {
        CardReader { read: session_card, session: place_of(&file.path).session, facts: Vec::new() }
    }

    /// `tasks/<task>/task_metadata.json`
    pub fn of_task(file: &FileContext) -> CardReader {
        CardReader { read: task_metadata, session: place_of(&file.path).session, facts: Vec::new() }
    }

    /// `state/taskHistory.json`
    pub fn of_tasks() -> CardReader {
        CardReader { read: task_history, session: String::new(), facts: Vec::new() }
    }
}

impl Reader for CardReader {
    fn read(&mut self, _offset: u64, line: Line<'_>, _out: &mut Vec<Item>) -> Verdict {
        let Some(card) = line.json() else { return Verdict::Malformed("not JSON".into()) };
        match (self.read)(&self.session, card) {
            Some(facts) => {
                self.facts = facts;
                Verdict::Kept("card".into())
            }
            None => Verdict::Unknown("card of another form".into()),
        }
    }

    fn save(&self) -> String {
        String::new()
    }

    fn facts(&self) -> Vec<Facts> {
        let facts = self.facts.iter();
        facts
            .map(|(session, facts)| Facts { session: session.as_str().into(), rank: 5, facts: facts.clone() })
            .collect()
    }
}

fn text_in(json: Json<'_>, name: &str) -> Option<String> {
    json.get_text(name).filter(|text| !text.is_empty()).map(|text| text.into_owned())
}

/// Titles are prompts, with the client's markup around them.
fn title_in(json: Json<'_>, name: &str) -> Option<String> {
    let text = text_in(json, name)?;
    Some(title_of(words_in(&text).unwrap_or(&text))).filter(|title| !title.is_empty())
}

fn session_card(session: &str, card: Json<'_>) -> Option<Vec<SessionFact>> {
    let metadata = card.get("metadata").filter(|metadata| metadata.is_object());
    card.get("session_id")?;
    let time = |name: &str| card.get_text(name).and_then(|text| Time::parse(&text));
    let git = metadata.and_then(|metadata| metadata.get("git"));
    let origin = metadata.and_then(|metadata| metadata.get("sessionHistoryOrigin"));
    let cost = metadata.and_then(|metadata| cost_in(metadata, "totalCost"));
    let mut facts = SessionFacts {
        cwd: text_in(card, "cwd"),
        title: metadata.and_then(|metadata| title_in(metadata, "title")),
        first_prompt: title_in(card, "prompt"),
        entrypoint: text_in(card, "source"),
        client_version: origin.and_then(|origin| text_in(origin, "version")),
        models: text_in(card, "model").into_iter().collect(),
        git_branch: git.and_then(|git| text_in(git, "branch")),
        git_url: git.and_then(|git| text_in(git, "url")),
        cost_usd: cost.map(Picodollars::dollars),
        started_at: time("started_at"),
        ended_at: time("ended_at"),
        ..SessionFacts::default()
    };
    for name in ["status", "exit_code", "interactive", "provider", "team_name"] {
        if let Some(value) = card.get(name).filter(|value| !value.is_null()) {
            facts.native.insert(name.into(), value.value());
        }
    }
    Some(vec![(session.to_owned(), facts)])
}

fn task_metadata(session: &str, card: Json<'_>) -> Option<Vec<SessionFact>> {
    card.is_object().then_some(())?;
    let environments = card.get("environment_history");
    let last = environments.and_then(|list| list.items().last());
    let models = card.get("model_usage");
    let mut facts = SessionFacts {
        client_version: last.and_then(|last| text_in(last, "cline_version")),
        ..SessionFacts::default()
    };
    for model in models.iter().flat_map(|models| models.items()).filter_map(|used| text_in(used, "model_id"))
    {
        if !facts.models.contains(&model) {
            facts.models.push(model);
        }
    }
    Some(vec![(session.to_owned(), facts)])
}

/// The only place where older clients note the directory of a task.
fn task_history(_session: &str, list: Json<'_>) -> Option<Vec<SessionFact>> {
    list.is_array().then_some(())?;
    let tasks = list.items().filter_map(|task| {
        let id = text_in(task, "id")?;
        let cost = cost_in(task, "totalCost");
        let facts = SessionFacts {
            cwd: text_in(task, "cwdOnTaskInitialization"),
            first_prompt: title_in(task, "task"),
            models: text_in(task, "modelId").into_iter().collect(),
            cost_usd: cost.map(Picodollars::dollars),
            started_at: id.parse().ok().map(Time::from_millis),
            ..SessionFacts::default()
        };
        Some((id, facts))
    });
    Some(tasks.collect())
}

/// `ui_messages.json`: of what the interface showed, only the usage of requests is nowhere else.
pub struct ShownReader {
    session: Arc<str>,
    has_usage: bool,
}

impl ShownReader {
    pub fn new(file: &FileContext) -> ShownReader {
        ShownReader { session: place_of(&file.path).session.into(), has_usage: false }
    }

    fn request(
        &self,
        span: Span,
        shown: Json<'_>,
        (model, provider): (Option<&str>, Option<&str>),
    ) -> Option<Item> {
        let text = shown.get_text("text")?;
        let request = Json::parse(text.as_bytes()).filter(|request| request.is_object())?;
        let number = |name: &str| request.get_integer(name).unwrap_or(0).clamp(0, 1 << 40);
        let (input, cached) = (number("tokensIn"), number("cacheReads"));
        let is_part = provider.is_none_or(|provider| provider == COUNTS_CACHED) && cached <= input;
        let tokens = Tokens {
            input: if is_part { input - cached } else { input },
            output: number("tokensOut"),
            cache_read: cached,
            cache_write: number("cacheWrites"),
            ..Tokens::default()
        };
        let at = shown.get_integer("ts");
        let moment = at.unwrap_or_default().to_le_bytes();
        let cost = cost_in(request, "cost");
        (tokens.total() > 0 || cost.is_some()).then(|| {
            Item::Usage(Usage {
                session: self.session.clone(),
                span,
                at: at.map(Time::from_millis),
                key: ContentKey::of(&[b"cline request", self.session.as_bytes(), &moment]),
                inherited: false,
                model: model.map(Into::into),
                again: false,
                tokens,
                cost,
            })
        })
    }
}

impl Reader for ShownReader {
    fn read(&mut self, offset: u64, line: Line<'_>, out: &mut Vec<Item>) -> Verdict {
        let Some(list) = line.json().filter(|list| list.is_array()) else {
            return Verdict::Malformed("not a JSON list".into());
        };
        let (mut model, mut provider) = (None, None);
        for shown in list.items() {
            if let Some(info) = shown.get("modelInfo") {
                model = text_in(info, "modelId").or(model);
                provider = text_in(info, "providerId").or(provider);
            }
            let kind = shown.get_text("say").unwrap_or_default();
            if kind == "api_req_started" {
                let within = shown.bytes().as_ptr() as usize - line.bytes().as_ptr() as usize;
                let span = Span { offset: offset + within as u64, length: shown.bytes().len() as u64 };
                let request = self.request(span, shown, (model.as_deref(), provider.as_deref()));
                self.has_usage |= request.is_some();
                out.extend(request);
            } else if !kind.is_empty() && !SHOWN.contains(&kind.as_ref()) {
                out.push(Item::Drift(format!("shown {kind}")));
            }
        }
        Verdict::Kept("shown messages".into())
    }

    fn save(&self) -> String {
        String::new()
    }

    /// The rows of a file go with it from the sessions that it is a part of.
    fn facts(&self) -> Vec<Facts> {
        let part = || Facts { session: self.session.clone(), rank: 5, facts: SessionFacts::default() };
        self.has_usage.then(part).into_iter().collect()
    }
}
