//! A thin client of the Chrome DevTools protocol over two pipes: commands out, responses by number. No other program
//! can open them, and when they break, the browser closes.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

/// Conversations of hundreds of megabytes arrive as one message.
const LONGEST_MESSAGE: u64 = 1 << 30;
/// How long a read blocks before deadlines are checked.
const GLANCE: Duration = Duration::from_millis(100);
/// Ends a message.
const END: u8 = 0;

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The browser is gone: closed by the user, or crashed.
    Closed,
    /// Timed out.
    Late,
    /// The browser returned an error: the page navigated away, or its script failed.
    Refused(String),
}

pub struct DevTools {
    commands: PipeWriter,
    messages: Receiver<Vec<u8>>,
    next: u64,
    answers: HashMap<u64, Result<Value, Lost>>,
    given_up: HashSet<u64>,
    /// How often a page reported that its content was loaded.
    loaded: u64,
}

impl DevTools {
    /// Talks over these pipes, of which the browser has the other ends.
    pub fn new(commands: PipeWriter, responses: PipeReader) -> DevTools {
        let (sender, messages) = sync_channel(1);
        std::thread::spawn(move || read_messages(BufReader::new(responses), &sender));
        DevTools { commands, messages, next: 0, answers: HashMap::new(), given_up: HashSet::new(), loaded: 0 }
    }

    /// Sends a command, to a page if it has a session; returns its number.
    pub fn send(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Result<u64, Lost> {
        self.next += 1;
        let mut command = Map::from_iter([
            ("id".to_owned(), Value::from(self.next)),
            ("method".to_owned(), Value::from(method)),
            ("params".to_owned(), parameters),
        ]);
        command.extend(session.map(|session| ("sessionId".to_owned(), Value::from(session))));
        let mut message = Value::Object(command).to_string().into_bytes();
        message.push(END);
        self.commands.write_all(&message).map_err(|_| Lost::Closed)?;
        Ok(self.next)
    }

    /// Waits for the response to a command; other responses that arrive first are kept.
    pub fn wait(&mut self, number: u64, deadline: Instant) -> Result<Value, Lost> {
        loop {
            if let Some(answer) = self.answers.remove(&number) {
                return answer;
            }
            if Instant::now() >= deadline {
                self.given_up.insert(number);
                return Err(Lost::Late);
            }
            self.receive()?;
        }
    }

    pub fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
        deadline: Instant,
    ) -> Result<Value, Lost> {
        let number = self.send(session, method, parameters)?;
        self.wait(number, deadline)
    }

    /// Navigates to an address and waits until its document is loaded.
    pub fn navigate(&mut self, session: &str, address: &str, deadline: Instant) -> Result<(), Lost> {
        let before = self.loaded;
        let result = self.call(Some(session), "Page.navigate", json!({"url": address}), deadline)?;
        if let Some(why) = result.get("errorText").and_then(Value::as_str) {
            return Err(Lost::Refused(why.to_owned()));
        }
        while self.loaded == before {
            if Instant::now() >= deadline {
                return Err(Lost::Late);
            }
            self.receive()?;
        }
        Ok(())
    }

    /// Reads one message, if one arrives soon.
    fn receive(&mut self) -> Result<(), Lost> {
        let message = match self.messages.recv_timeout(GLANCE) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(Lost::Closed),
        };
        let text = String::from_utf8_lossy(&message);
        let text = text.as_ref();
        let Ok(mut message) = serde_json::from_str::<Value>(text) else {
            // An unreadable response is still one: its caller must not wait forever.
            if let Some(number) = number_in(text) {
                self.answers.insert(number, Err(Lost::Refused("response is not JSON".into())));
            }
            return Ok(());
        };
        if let Some(number) = message.get("id").and_then(Value::as_u64) {
            let answer = match message.get("error").and_then(|error| error.get("message")) {
                Some(why) => Err(Lost::Refused(why.as_str().unwrap_or_default().to_owned())),
                None => Ok(message.get_mut("result").map(Value::take).unwrap_or_default()),
            };
            // Drop late responses, which may be large.
            if !self.given_up.remove(&number) {
                self.answers.insert(number, answer);
            }
            return Ok(());
        }
        match message.get("method").and_then(Value::as_str) {
            Some("Page.domContentEventFired") => self.loaded += 1,
            Some("Inspector.targetCrashed" | "Target.detachedFromTarget") => return Err(Lost::Closed),
            _ => {}
        }
        Ok(())
    }
}

/// `{"id":12,…`
fn number_in(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("{\"id\":")?;
    let digits = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..digits].parse().ok()
}

/// Passes on messages until the pipe breaks, or nobody wants them any more.
fn read_messages(mut responses: impl BufRead, sender: &SyncSender<Vec<u8>>) {
    loop {
        let mut message = Vec::new();
        let read = responses.by_ref().take(LONGEST_MESSAGE).read_until(END, &mut message);
        if read.is_err() || message.pop() != Some(END) || sender.send(message).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{number_in, read_messages};

    #[test]
    fn messages_end_with_a_zero() {
        let (sender, messages) = std::sync::mpsc::sync_channel(9);
        read_messages(&b"{}\0{\"id\":1}\0{\"cut"[..], &sender);
        drop(sender);
        assert_eq!(messages.iter().collect::<Vec<_>>(), [b"{}".to_vec(), b"{\"id\":1}".to_vec()]);
    }

    #[test]
    fn the_number_of_an_answer_that_is_not_json() {
        assert_eq!(number_in("{\"id\":17,\"result\":{\"x\":\"\\ud800\"}}"), Some(17));
        assert_eq!(number_in("{\"method\":\"Page.loaded\"}"), None);
    }
}
