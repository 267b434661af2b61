//! A child process that communicates in lines: starts it, reads its output with a timeout, and terminates it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use super::wire::LONGEST_LINE;
use annals_core::{Error, Result};

/// Lines queued for processing. A program that prints more has to wait.
const WAITING: usize = 8;
/// Longest shown part of a line on standard error.
const SHOWN: usize = 2_000;
/// How long a program may take to exit after DONE.
pub const ENDING: Duration = Duration::from_secs(10);
/// How often to check whether the program is still running.
const GLANCE: Duration = Duration::from_millis(500);
/// How long to wait for output after the program exited: its children may keep its pipes open forever.
const DRAIN_TIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub enum Received {
    Line(Vec<u8>),
    /// The length of a line that is too long to be read.
    TooLong(u64),
    /// A line on standard error.
    Aside(String),
    /// Standard output ended.
    Ended,
    /// Nothing on standard output for the given time.
    Silence,
}

pub struct Program {
    child: Child,
    received: Receiver<Received>,
    /// None once standard input is closed.
    input: Option<Sender<String>>,
    /// When the last line arrived.
    last: Instant,
    /// The last line is being processed: that time does not count as silence.
    processing: bool,
    ended: Option<Instant>,
}

impl Program {
    /// Threads read and write, so that neither side blocks the other with both pipes full.
    pub fn start(program: &str, arguments: &[String], hidden: &[String]) -> Result<Program> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in hidden {
            command.env_remove(name);
        }
        // A process group, so that its children end with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| {
            Error::new(format!("cannot run {program}: {error}"))
                .hint("give the path of an executable, or a name in PATH")
        })?;
        let (sender, received) = sync_channel(WAITING);
        let (input, lines) = channel::<String>();
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::spawn(move || {
                for line in lines {
                    // A program that does not read its input is not an error.
                    if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
                        break;
                    }
                }
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let shown = |mut line: Vec<u8>| {
                    line.truncate(SHOWN);
                    Received::Aside(String::from_utf8_lossy(&line).trim_end().to_owned())
                };
                send_lines(stderr, &sender, shown, |_| Received::Aside("(very long line)".into()))
            });
        }
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                send_lines(stdout, &sender, Received::Line, Received::TooLong);
                // The receiver may be gone.
                drop(sender.send(Received::Ended));
            });
        }
        Ok(Program {
            child,
            received,
            input: Some(input),
            last: Instant::now(),
            processing: false,
            ended: None,
        })
    }

    pub fn send(&self, line: &str) {
        if let Some(input) = &self.input {
            // If the program is gone, reading its output will show it.
            drop(input.send(format!("{line}\n")));
        }
    }

    /// The next line, or `Silence` if nothing arrives on standard output for this long.
    pub fn receive(&mut self, silence: Duration) -> Received {
        if std::mem::take(&mut self.processing) {
            self.last = Instant::now();
        }
        loop {
            let left = silence.saturating_sub(self.last.elapsed());
            match self.received.recv_timeout(left.min(GLANCE)) {
                Ok(Received::Aside(_)) | Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Received::Silence;
                }
                Ok(Received::Aside(text)) => return Received::Aside(text),
                Ok(received) => {
                    self.processing = true;
                    return received;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.ended.is_none() && matches!(self.child.try_wait(), Ok(Some(_))) {
                        self.ended = Some(Instant::now());
                    }
                    if self.ended.is_some_and(|ended| ended.elapsed() >= DRAIN_TIME) {
                        return Received::Ended;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Received::Ended,
            }
        }
    }

    /// Waits briefly for the program to exit; true if the exit code was 0.
    pub fn exits_successfully(&mut self) -> io::Result<bool> {
        self.input = None;
        let started = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(status.success()),
                None if started.elapsed() > ENDING => return Ok(false),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Terminates it and returns the rest of its standard error.
    pub fn remaining_output(&mut self) -> Vec<String> {
        self.end();
        let deadline = Instant::now() + DRAIN_TIME;
        let left = std::iter::from_fn(|| self.received.recv_timeout(Duration::from_millis(50)).ok());
        left.take_while(|_| Instant::now() < deadline)
            .filter_map(|received| match received {
                Received::Aside(text) => Some(text),
                Received::Line(_) | Received::TooLong(_) | Received::Ended | Received::Silence => None,
            })
            .take(100)
            .collect()
    }

    fn end(&mut self) {
        // It may have exited by itself; reap it in any case, and its children.
        #[cfg(unix)]
        {
            let group = rustix::process::Pid::from_child(&self.child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends the lines of a stream; for a line that is too long, only its length.
fn send_lines(
    input: impl Read,
    sender: &SyncSender<Received>,
    line_of: impl Fn(Vec<u8>) -> Received,
    too_long: impl Fn(u64) -> Received,
) {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let (used, ended) = match input.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => {
                let end = memchr::memchr(b'\n', bytes);
                let part = &bytes[..end.unwrap_or(bytes.len())];
                length += part.len() as u64;
                if length <= LONGEST_LINE as u64 {
                    line.extend_from_slice(part);
                } else {
                    line = Vec::new();
                }
                (end.map_or(bytes.len(), |end| end + 1), end.is_some())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (0, false),
            Err(_) => break,
        };
        input.consume(used);
        if ended {
            let received = match length > LONGEST_LINE as u64 {
                true => too_long(length),
                false => line_of(std::mem::take(&mut line)),
            };
            (length, line) = (0, Vec::new());
            if sender.send(received).is_err() {
                return;
            }
        }
    }
    if length > 0 {
        // The receiver may be gone.
        drop(sender.send(if length > LONGEST_LINE as u64 { too_long(length) } else { line_of(line) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_received_complete_and_long_ones_by_length() {
        let long = vec![b'x'; LONGEST_LINE + 1];
        let longest = vec![b'y'; LONGEST_LINE];
        let input = [b"a\n\nb\r\n", &long[..], b"\n", &longest, b"\nlast"].concat();
        let (sender, received) = sync_channel(16);
        send_lines(&input[..], &sender, Received::Line, Received::TooLong);
        drop(sender);
        let lines: Vec<String> = received
            .into_iter()
            .map(|received| match received {
                Received::Line(line) if line.len() > 100 => format!("{} bytes", line.len()),
                Received::Line(line) => String::from_utf8(line).unwrap(),
                Received::TooLong(length) => format!("too long: {length}"),
                Received::Aside(_) | Received::Ended | Received::Silence => panic!("no line"),
            })
            .collect();
        assert_eq!(lines, ["a", "", "b\r", "too long: 16777217", "16777216 bytes", "last"]);
    }
}
