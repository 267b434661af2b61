//! Talks to a provider through its page: groups of requests, retries, and when to stop and ask the user.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::browser::{BrowserSetup, LiveBrowser};
use super::devtools::Lost;
use super::pace::{Pace, RETRIES, SESSION_LEFT};
use annals_core::{Error, Time};
use annals_sources::{Judged, Live, LiveAnswer, LiveRequest};

/// How long the browser may take to hand over a response once the page has it: some are a hundred megabytes.
const HANDED_OVER: Duration = Duration::from_secs(60);

/// Seconds that a run waits when the provider asks for it.
const LONGEST_WAIT: u32 = 90;

/// Why a run ends early. Everything fetched so far is kept.
#[derive(Debug)]
pub enum Stop {
    /// The user has to act.
    Manual {
        what: String,
        link: String,
    },
    /// The window was closed, or the browser crashed.
    BrowserClosed,
    Unreachable,
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

pub struct Talk {
    live: &'static dyn Live,
    browser: LiveBrowser,
    origin: String,
    /// Display name of the provider.
    label: &'static str,
    pace: Pace,
    now: fn() -> Time,
    /// When the session expires, if known.
    ends: Option<Time>,
    /// The account that is logged in, if known.
    pub owner: String,
    last: Option<Instant>,
    /// Number of requests so far.
    pub request_count: u64,
}

/// What the page reports about the session. Its credentials stay in the page.
#[derive(Debug, Clone, Default)]
struct Session {
    logged_in: bool,
    reached: bool,
    changed: bool,
    challenge: bool,
    ends: Option<Time>,
    owner: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// As long as a retry may help.
    Patiently,
    /// Refusals are expected here: return them.
    NotRefusals,
}

impl Talk {
    /// Opens the page. The user may still have to log in.
    pub fn open(
        live: &'static dyn Live,
        label: &'static str,
        setup: &BrowserSetup,
        origin: String,
        pace: Pace,
        now: fn() -> Time,
    ) -> Result<Talk, Stop> {
        let browser = LiveBrowser::start(setup)?;
        let (ends, last, owner) = (None, None, String::new());
        let mut talk = Talk { live, browser, origin, label, pace, now, ends, owner, last, request_count: 0 };
        let address = format!("{}/", talk.origin);
        match talk.browser.open(&address) {
            Ok(()) => Ok(talk),
            Err(Lost::Closed) => Err(Stop::BrowserClosed),
            Err(Lost::Late | Lost::Refused(_)) => Err(Stop::Unreachable),
        }
    }

    /// Stops unless the user is logged in with a session that lasts long enough.
    pub fn check_session(&mut self) -> Result<(), Stop> {
        let session = self.read_session()?;
        self.ends = session.ends;
        if !session.reached {
            return Err(Stop::Unreachable);
        }
        if session.challenge && !session.logged_in {
            return Err(self.challenge_stop());
        }
        if !session.logged_in {
            return Err(self.manual_stop("log in"));
        }
        self.owner = session.owner;
        self.check_end()
    }

    /// Waits until the user has logged in.
    pub fn wait_for_login(&mut self, patience: Duration) -> Result<(), Stop> {
        let deadline = Instant::now() + patience;
        loop {
            // The page navigates away and back during a login.
            match self.read_session() {
                Ok(session) if session.logged_in => return Ok(()),
                Err(Stop::BrowserClosed) => return Err(Stop::BrowserClosed),
                Ok(_) | Err(_) => {}
            }
            if Instant::now() >= deadline {
                return Err(self.manual_stop("log in"));
            }
            std::thread::sleep(Duration::from_millis(700));
        }
    }

    /// Sends a group of requests in parallel and retries those that may still succeed; one response for each.
    pub fn send(
        &mut self,
        requests: &[LiveRequest],
        retry: Retry,
    ) -> Result<Vec<(Judged, LiveAnswer)>, Stop> {
        self.send_as("ask", requests, retry)
    }

    /// Fetches the bytes behind the link in each response, one character per byte.
    pub fn fetch_bytes(&mut self, requests: &[LiveRequest]) -> Result<Vec<(Judged, LiveAnswer)>, Stop> {
        self.send_as("bytes", requests, Retry::Patiently)
    }

    pub fn close(self) {
        self.browser.close();
    }

    pub fn challenge_stop(&self) -> Stop {
        self.manual_stop("complete the check shown on the page")
    }

    fn send_as(
        &mut self,
        how: &str,
        requests: &[LiveRequest],
        retry: Retry,
    ) -> Result<Vec<(Judged, LiveAnswer)>, Stop> {
        let mut answers: Vec<(Judged, LiveAnswer)> =
            vec![(Judged::Late, LiveAnswer::default()); requests.len()];
        let mut open: Vec<usize> = (0..requests.len()).collect();
        let (mut tries, mut renewed) = (0, false);
        loop {
            self.check_end()?;
            self.pause();
            let limit = self.pace.limit();
            let scripts: Vec<String> = open
                .iter()
                .map(|at| {
                    let (path, body) = (json!(requests[*at].path), json!(requests[*at].body));
                    match how {
                        "bytes" => format!("annals.bytes({path}, {})", limit.as_millis()),
                        _ => format!("annals.ask({path}, {body}, {})", limit.as_millis()),
                    }
                })
                .collect();
            self.request_count += scripts.len() as u64;
            let results = self.browser.run(&scripts, limit + HANDED_OVER);
            self.last = Some(Instant::now());
            let (mut retries, mut expired, mut navigated) = (Vec::new(), false, false);
            for (at, result) in open.iter().copied().zip(results) {
                let (judged, answer) = match result {
                    Ok(value) => {
                        let answer = LiveAnswer::of(&value);
                        (self.live.judge(&answer), answer)
                    }
                    Err(Lost::Closed) => return Err(Stop::BrowserClosed),
                    Err(Lost::Late) => (Judged::Late, LiveAnswer::default()),
                    Err(Lost::Refused(_)) => {
                        navigated = true;
                        (Judged::Late, LiveAnswer::default())
                    }
                };
                let helps = match judged {
                    Judged::Good | Judged::Missing | Judged::Forbidden | Judged::TooLarge => false,
                    Judged::Refused => retry == Retry::Patiently,
                    Judged::Expired => {
                        expired = true;
                        true
                    }
                    Judged::Challenge | Judged::Broken | Judged::Late | Judged::Unreachable => true,
                };
                if helps {
                    retries.push(at);
                }
                answers[at] = (judged, answer);
            }
            if expired {
                // Tokens are renewed in the background: retry only with a new one.
                let session = self.read_session()?;
                self.ends = session.ends;
                if !session.reached {
                    return Err(Stop::Unreachable);
                }
                if !session.logged_in || !session.changed || renewed {
                    return Err(self.manual_stop("log in again"));
                }
                renewed = true;
                open = retries;
                continue;
            }
            let requested = retries.iter().map(|at| answers[*at].1.retry_after).max().unwrap_or(0);
            // What must wait longer is for another run.
            if retries.is_empty() || tries >= RETRIES || requested > LONGEST_WAIT {
                break;
            }
            std::thread::sleep(self.pace.wait(tries).max(self.pace.second * requested));
            tries += 1;
            if navigated {
                self.check_session()?;
            }
            open = retries;
        }
        // A broken connection or a redirect looks like a lost network, and must not stop all other requests.
        if answers.iter().any(|(judged, _)| *judged == Judged::Unreachable) {
            let session = self.read_session()?;
            self.ends = session.ends;
            if !session.reached {
                return Err(Stop::Unreachable);
            }
        }
        Ok(answers)
    }

    fn read_session(&mut self) -> Result<Session, Stop> {
        let script = format!("annals.session({})", json!(self.origin));
        let limit = self.pace.limit() + HANDED_OVER;
        let mut result = self.browser.run(std::slice::from_ref(&script), limit).pop();
        if !matches!(result, Some(Ok(_) | Err(Lost::Closed))) {
            // The page was reloaded: inject its script first.
            result = Some(
                self.browser
                    .enter(self.live.script())
                    .and_then(|()| self.browser.run(&[script], limit).pop().unwrap_or(Err(Lost::Closed))),
            );
        }
        let value = match result {
            Some(Ok(value)) => value,
            Some(Err(Lost::Late | Lost::Refused(_))) => return Err(Stop::Unreachable),
            Some(Err(Lost::Closed)) | None => return Err(Stop::BrowserClosed),
        };
        let is = |name: &str| value[name].as_bool().unwrap_or(false);
        let ends = value["ends"].as_i64().filter(|ends| *ends > 0).map(Time::from_seconds);
        Ok(Session {
            logged_in: is("logged_in"),
            reached: value.get("reached").is_none_or(|reached| *reached == Value::Bool(true)),
            changed: is("changed"),
            challenge: is("challenge"),
            ends,
            owner: value["owner"].as_str().unwrap_or_default().to_owned(),
        })
    }

    /// A session about to expire is read once more: it may have been renewed.
    fn check_end(&mut self) -> Result<(), Stop> {
        let left = i64::try_from(SESSION_LEFT.as_micros()).unwrap_or(i64::MAX);
        let is_short =
            |ends: Option<Time>, now: Time| ends.is_some_and(|ends| ends.micros() - now.micros() < left);
        if !is_short(self.ends, (self.now)()) {
            return Ok(());
        }
        let session = self.read_session()?;
        if !session.reached {
            return Err(Stop::Unreachable);
        }
        self.ends = session.ends;
        match is_short(self.ends, (self.now)()) || !session.logged_in {
            true => Err(self.manual_stop("log in again: the session ends within five minutes")),
            false => Ok(()),
        }
    }

    /// Waits between two groups of requests.
    fn pause(&self) {
        let passed = self.last.map_or(self.pace.pause(), |last| last.elapsed());
        std::thread::sleep(self.pace.pause().saturating_sub(passed));
    }

    pub fn manual_stop(&self, what: &str) -> Stop {
        Stop::Manual { what: format!("{}: {what}", self.label), link: format!("{}/", self.origin) }
    }
}
