//! Talks to a provider through its page: groups of requests, retries, and when to stop and ask the user.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::browser::{BrowserSetup, LiveBrowser};
use super::devtools::Lost;
use super::pace::{Pace, RETRIES, SESSION_LEFT};
use annals_core::{Error, Time};
use annals_sources::{Judged, Live, LiveAnswer, LiveRequest};

/// How long the browser may take to hand an answer over, once the page has it: some have a hundred megabytes.
const HANDED_OVER: Duration = Duration::from_secs(60);

/// Why a run ends before all is done. What was had is kept.
#[derive(Debug)]
pub enum Stop {
    /// Only the owner can go on.
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
    fn from(problem: Error) -> Stop {
        Stop::Failed(problem)
    }
}

pub struct Talk {
    live: &'static dyn Live,
    browser: LiveBrowser,
    origin: String,
    /// What people call the provider.
    label: &'static str,
    pace: Pace,
    now: fn() -> Time,
    /// When the session ends, if it says.
    ends: Option<Time>,
    /// Whose session it is, if it says.
    pub owner: String,
    last: Option<Instant>,
    /// All requests so far.
    pub asked: u64,
}

/// What the page says about the session. Whatever opens it stays in the page.
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
    /// As long as it may help.
    Patiently,
    /// A refusal was to be expected: it is the answer.
    NotRefusals,
}

impl Talk {
    /// Opens the page. The owner may have to log in yet.
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
        let mut talk = Talk { live, browser, origin, label, pace, now, ends, owner, last, asked: 0 };
        let address = format!("{}/", talk.origin);
        match talk.browser.open(&address) {
            Ok(()) => Ok(talk),
            Err(Lost::Closed) => Err(Stop::BrowserClosed),
            Err(Lost::Late | Lost::Refused(_)) => Err(Stop::Unreachable),
        }
    }

    /// Stops unless somebody is logged in, for long enough.
    pub fn begin(&mut self) -> Result<(), Stop> {
        let session = self.session()?;
        self.ends = session.ends;
        if !session.reached {
            return Err(Stop::Unreachable);
        }
        if session.challenge && !session.logged_in {
            return Err(self.challenged());
        }
        if !session.logged_in {
            return Err(self.manual("log in"));
        }
        self.owner = session.owner;
        self.check_end()
    }

    /// Waits until the owner has logged in.
    pub fn wait_for_login(&mut self, patience: Duration) -> Result<(), Stop> {
        let deadline = Instant::now() + patience;
        loop {
            // The page goes elsewhere and back while somebody logs in.
            match self.session() {
                Ok(session) if session.logged_in => return Ok(()),
                Err(Stop::BrowserClosed) => return Err(Stop::BrowserClosed),
                Ok(_) | Err(_) => {}
            }
            if Instant::now() >= deadline {
                return Err(self.manual("log in"));
            }
            std::thread::sleep(Duration::from_millis(700));
        }
    }

    /// Asks a group at the same time, again what may help; one answer for each.
    pub fn ask(&mut self, requests: &[LiveRequest], retry: Retry) -> Result<Vec<(Judged, LiveAnswer)>, Stop> {
        self.ask_as("ask", requests, retry)
    }

    /// The bytes behind a link that a request answers with, one letter a byte.
    pub fn bytes(&mut self, requests: &[LiveRequest]) -> Result<Vec<(Judged, LiveAnswer)>, Stop> {
        self.ask_as("bytes", requests, Retry::Patiently)
    }

    pub fn close(self) {
        self.browser.close();
    }

    pub fn challenged(&self) -> Stop {
        self.manual("complete the check shown on the page")
    }

    fn ask_as(
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
            self.rest();
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
            self.asked += scripts.len() as u64;
            let told = self.browser.run(&scripts, limit + HANDED_OVER);
            self.last = Some(Instant::now());
            let (mut again, mut expired, mut astray) = (Vec::new(), false, false);
            for (at, told) in open.iter().copied().zip(told) {
                let (judged, answer) = match told {
                    Ok(value) => {
                        let answer = LiveAnswer::of(&value);
                        (self.live.judge(&answer), answer)
                    }
                    Err(Lost::Closed) => return Err(Stop::BrowserClosed),
                    Err(Lost::Late) => (Judged::Late, LiveAnswer::default()),
                    Err(Lost::Refused(_)) => {
                        astray = true;
                        (Judged::Late, LiveAnswer::default())
                    }
                };
                let helps = match judged {
                    Judged::Good | Judged::Missing | Judged::Forbidden => false,
                    Judged::Refused => retry == Retry::Patiently,
                    Judged::Expired => {
                        expired = true;
                        true
                    }
                    Judged::Challenge | Judged::Broken | Judged::Late | Judged::Unreachable => true,
                };
                if helps {
                    again.push(at);
                }
                answers[at] = (judged, answer);
            }
            if expired {
                // Tokens are renewed behind the page's back: only a new one is worth a try.
                let session = self.session()?;
                self.ends = session.ends;
                if !session.reached {
                    return Err(Stop::Unreachable);
                }
                if !session.logged_in || !session.changed || renewed {
                    return Err(self.manual("log in again"));
                }
                renewed = true;
                open = again;
                continue;
            }
            if again.is_empty() || tries >= RETRIES {
                break;
            }
            std::thread::sleep(self.pace.wait(tries));
            tries += 1;
            if astray {
                self.begin()?;
            }
            open = again;
        }
        // What breaks off or leads elsewhere looks the same as no network, and must not keep all others from being had.
        if answers.iter().any(|(judged, _)| *judged == Judged::Unreachable) {
            let session = self.session()?;
            self.ends = session.ends;
            if !session.reached {
                return Err(Stop::Unreachable);
            }
        }
        Ok(answers)
    }

    fn session(&mut self) -> Result<Session, Stop> {
        let script = format!("annals.session({})", json!(self.origin));
        let limit = self.pace.limit() + HANDED_OVER;
        let mut told = self.browser.run(std::slice::from_ref(&script), limit).pop();
        if !matches!(told, Some(Ok(_) | Err(Lost::Closed))) {
            // The page is new: its script goes in first.
            told = Some(
                self.browser
                    .enter(self.live.script())
                    .and_then(|()| self.browser.run(&[script], limit).pop().unwrap_or(Err(Lost::Closed))),
            );
        }
        let value = match told {
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

    /// A session that is about to end is read again once: it may have been renewed.
    fn check_end(&mut self) -> Result<(), Stop> {
        let left = i64::try_from(SESSION_LEFT.as_micros()).unwrap_or(i64::MAX);
        let is_short =
            |ends: Option<Time>, now: Time| ends.is_some_and(|ends| ends.micros() - now.micros() < left);
        if !is_short(self.ends, (self.now)()) {
            return Ok(());
        }
        let session = self.session()?;
        if !session.reached {
            return Err(Stop::Unreachable);
        }
        self.ends = session.ends;
        match is_short(self.ends, (self.now)()) || !session.logged_in {
            true => Err(self.manual("log in again: the session ends within five minutes")),
            false => Ok(()),
        }
    }

    /// The pause between two groups.
    fn rest(&self) {
        let passed = self.last.map_or(self.pace.pause(), |last| last.elapsed());
        std::thread::sleep(self.pace.pause().saturating_sub(passed));
    }

    pub fn manual(&self, what: &str) -> Stop {
        Stop::Manual { what: format!("{}: {what}", self.label), link: format!("{}/", self.origin) }
    }
}
