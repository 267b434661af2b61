//! Which traces of a container belong to one session, and which archived session they continue.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::references::{BatchHalf, BatchPart, References, chain_name, half_name, half_of, several};
use crate::KnownRecords;
use annals_core::{ContentKey, Result, Time};

/// All traces of a container, joined into sessions by their references.
#[derive(Default)]
pub struct Sessions {
    traces: Vec<KnownTrace>,
    by_element: HashMap<ContentKey, usize>,
    by_name: HashMap<String, usize>,
    /// The traces of a session, once all are known.
    parts: Option<BTreeMap<usize, Vec<usize>>>,
    decided: HashMap<usize, SessionFile>,
    pub warnings: Vec<String>,
}

/// The session that a trace is added to.
#[derive(Debug, Clone)]
pub struct SessionFile {
    pub session: String,
    /// Another batch has an open request with the same custom id.
    pub several: bool,
}

struct KnownTrace {
    element: ContentKey,
    /// Another trace of the same session, or itself.
    with: usize,
    at: Option<Time>,
    references: References,
}

impl Sessions {
    pub fn add(&mut self, element: ContentKey, at: Option<Time>, references: References) {
        if self.by_element.contains_key(&element) {
            return;
        }
        self.parts = None;
        let number = self.traces.len();
        let names = references.names.clone();
        self.by_element.insert(element, number);
        self.traces.push(KnownTrace { element, with: number, at, references });
        for name in names {
            let known = *self.by_name.entry(name).or_insert(number);
            self.join(known, number);
        }
    }

    /// Whether an element can only be identified by its bytes.
    pub fn is_nameless(&self, element: ContentKey) -> bool {
        let trace = self.by_element.get(&element).map(|number| &self.traces[*number]);
        trace.is_some_and(|trace| trace.references.names.is_empty())
    }

    /// Decides the session of an element that was added.
    pub fn home(&mut self, element: ContentKey, archive: &dyn KnownRecords) -> Result<Option<SessionFile>> {
        let Some(number) = self.by_element.get(&element).copied() else { return Ok(None) };
        if self.parts.is_none() {
            self.join_continuations();
            self.join_batches();
            let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for number in 0..self.traces.len() {
                parts.entry(self.root(number)).or_default().push(number);
            }
            for part in parts.values_mut() {
                part.sort_by_key(|number| (self.traces[*number].at, *number));
            }
            self.parts = Some(parts);
        }
        let root = self.root(number);
        if let Some(home) = self.decided.get(&root) {
            return Ok(Some(home.clone()));
        }
        let part = self.parts.as_ref().and_then(|parts| parts.get(&root)).cloned().unwrap_or_default();
        let home = self.decide(&part, archive)?;
        self.decided.insert(root, home.clone());
        Ok(Some(home))
    }

    fn decide(&mut self, part: &[usize], archive: &dyn KnownRecords) -> Result<SessionFile> {
        let find = |name: &str| archive.session_of("references", name);
        for number in part {
            let trace = &self.traces[*number];
            let names = trace.references.names.iter().cloned();
            let nameless = Some(element_name(trace.element)).filter(|_| trace.references.names.is_empty());
            for name in names.chain(nameless) {
                if let Some(session) = find(&name)? {
                    return Ok(SessionFile { session, several: false });
                }
            }
        }
        for line in part.iter().flat_map(|number| &self.traces[*number].references.before) {
            if let Some(session) = find(&chain_name(*line))? {
                return Ok(SessionFile { session, several: false });
            }
        }
        let halves: HashSet<BatchHalf> =
            part.iter().filter_map(|number| self.batch_part(*number)).map(|batch| batch.half).collect();
        let mut open_elsewhere = false;
        if halves.len() == 1 {
            for batch in part.iter().filter_map(|number| self.traces[*number].references.batch.as_ref()) {
                let other = match batch.half {
                    BatchHalf::Request => BatchHalf::Response,
                    BatchHalf::Response => BatchHalf::Request,
                };
                if find(&several(&batch.custom_id))?.is_some() {
                    if batch.half == BatchHalf::Response {
                        let id = &batch.custom_id;
                        self.warnings.push(format!(
                            "{id}: several batches use this id, so its response is a separate session"
                        ));
                    }
                } else if let Some(session) = open(&find, other, &batch.custom_id)? {
                    return Ok(SessionFile { session, several: false });
                }
                open_elsewhere |= open(&find, batch.half, &batch.custom_id)?.is_some();
            }
        }
        Ok(SessionFile {
            session: self.new_name(part),
            several: open_elsewhere && halves.contains(&BatchHalf::Request),
        })
    }

    /// The id of a conversation, of a session or of the first response, or whatever is available.
    fn new_name(&self, part: &[usize]) -> String {
        let names = || part.iter().flat_map(|number| &self.traces[*number].references.names);
        let session = || names().find_map(|name| name.strip_prefix("session:"));
        let conversation = names().find(|name| name.starts_with("conv_")).map(String::as_str);
        if let Some(name) = conversation.or_else(session).or_else(|| names().next().map(String::as_str)) {
            return name.strip_prefix("items:").unwrap_or(name).to_owned();
        }
        let Some(first) = part.first().map(|number| &self.traces[*number]) else { return "trace".to_owned() };
        let hash = first.element.hex();
        match &first.references.batch {
            Some(batch) => format!("{}-{}", batch.custom_id, &hash[..8]),
            None => format!("trace-{hash}"),
        }
    }

    /// A request that repeats the conversation of another trace continues it: the last such trace before it.
    fn join_continuations(&mut self) {
        let mut ends: HashMap<ContentKey, Vec<usize>> = HashMap::new();
        for (number, trace) in self.traces.iter().enumerate() {
            for line in &trace.references.after {
                ends.entry(*line).or_default().push(number);
            }
        }
        for number in 0..self.traces.len() {
            let trace = &self.traces[number];
            let earlier = |other: &usize| {
                let in_time = trace.at.zip(self.traces[*other].at).is_none_or(|(at, other)| other <= at);
                *other != number && in_time
            };
            let found = trace.references.before.iter().find_map(|line| {
                let candidates = ends.get(line)?.iter().copied().filter(|other| earlier(other));
                candidates.max_by_key(|other| (self.traces[*other].at, *other))
            });
            if let Some(found) = found {
                self.join(found, number);
            }
        }
    }

    /// Joins a request and a response with the same custom id if there is exactly one matching pair.
    fn join_batches(&mut self) {
        let mut halves: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for number in 0..self.traces.len() {
            if let Some(batch) = self.batch_part(number) {
                halves.entry(batch.custom_id.clone()).or_default().push(number);
            }
        }
        for (custom_id, numbers) in halves {
            let of = |half: BatchHalf| {
                let of_half =
                    |number: &usize| self.batch_part(*number).is_some_and(|batch| batch.half == half);
                numbers.iter().copied().filter(of_half).collect::<Vec<_>>()
            };
            let (requests, responses) = (of(BatchHalf::Request), of(BatchHalf::Response));
            let mut apart = 0;
            for response in &responses {
                let folder = |number: usize| self.batch_part(number).map(|batch| batch.folder.as_str());
                // Files in one folder are more likely to be of the same batch.
                let fitting = |with: &[usize], one: usize| {
                    let mut found: Vec<usize> =
                        with.iter().copied().filter(|other| self.fit(*other, one)).collect();
                    if found.len() > 1 {
                        found.retain(|other| folder(*other) == folder(one));
                    }
                    found
                };
                match fitting(&requests, *response).as_slice() {
                    [request] if fitting(&responses, *request).len() == 1 => self.join(*request, *response),
                    [] => {}
                    _ => apart += 1,
                }
            }
            if apart > 0 {
                self.warnings.push(format!(
                    "{custom_id}: several batches use this id, so its responses are separate sessions; import each batch with its responses"
                ));
            }
        }
    }

    /// Whether the models match: a response names the requested model, perhaps with a date.
    fn fit(&self, one: usize, other: usize) -> bool {
        let model = |number: usize| self.batch_part(number).and_then(|batch| batch.model.as_deref());
        match (model(one), model(other)) {
            (Some(one), Some(other)) => one.starts_with(other) || other.starts_with(one),
            _ => true,
        }
    }

    fn batch_part(&self, number: usize) -> Option<&BatchPart> {
        self.traces[number].references.batch.as_ref()
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.traces[one.max(other)].with = one.min(other);
    }

    fn root(&mut self, mut number: usize) -> usize {
        while self.traces[number].with != number {
            let above = self.traces[self.traces[number].with].with;
            self.traces[number].with = above;
            number = above;
        }
        number
    }
}

/// The name of an element without references: its hash.
pub fn element_name(element: ContentKey) -> String {
    format!("element:{}", element.hex())
}

/// The session that has this half of a batch call, but not the other.
fn open(
    find: &dyn Fn(&str) -> Result<Option<String>>,
    has: BatchHalf,
    custom_id: &str,
) -> Result<Option<String>> {
    let other = match has {
        BatchHalf::Request => BatchHalf::Response,
        BatchHalf::Response => BatchHalf::Request,
    };
    let Some(session) = find(&half_name(has, custom_id))? else { return Ok(None) };
    let closed = find(&half_of(other, custom_id, &session))?.is_some();
    Ok(Some(session).filter(|_| !closed))
}
