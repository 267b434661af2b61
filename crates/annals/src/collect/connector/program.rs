//! A child process that talks in lines: starts it, reads its output with a timeout, and terminates it.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use super::wire::LONGEST_LINE;
use annals_core::{Error, Result};

/// Lines that wait to be looked at. A program that says more waits itself.
const WAITING: usize = 8;
/// How much of a line of standard error is shown.
const SHOWN: usize = 2_000;
/// How long a program may take to end, once it has said all.
pub const ENDING: Duration = Duration::from_secs(10);
/// How often to look whether the program is still there.
const GLANCE: Duration = Duration::from_millis(500);
/// How long after its end something may still come that it said: its children may have its pipes forever.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub enum Heard {
    Line(Vec<u8>),
    /// A line of this many bytes, which is too long to be read.
    TooLong(u64),
    /// On standard error.
    Aside(String),
    /// Standard output ended.
    Ended,
    /// Nothing on standard output for as long as asked.
    Silence,
}

pub struct Program {
    child: Child,
    heard: Receiver<Heard>,
    /// None when standard input is closed.
    told: Option<Sender<String>>,
    /// Since when nothing came.
    last: Instant,
    /// What was heard last is looked at: that is not the program's silence.
    looks: bool,
    ended: Option<Instant>,
}

impl Program {
    /// Threads read and write, so that neither side waits for the other with both pipes full.
    pub fn start(program: &str, arguments: &[String], hidden: &[String]) -> Result<Program> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in hidden {
            command.env_remove(name);
        }
        // Its children end with it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| {
            Error::new(format!("cannot run {program}: {error}"))
                .hint("give the path of an executable, or a name in PATH")
        })?;
        let (sender, heard) = sync_channel(WAITING);
        let (told, lines) = channel::<String>();
        if let Some(mut stdin) = child.stdin.take() {
            std::thread::spawn(move || {
                for line in lines {
                    // A program that does not listen may be right all the same.
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
                    Heard::Aside(String::from_utf8_lossy(&line).trim_end().to_owned())
                };
                hear(stderr, &sender, shown, |_| Heard::Aside("(very long line)".into()))
            });
        }
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                hear(stdout, &sender, Heard::Line, Heard::TooLong);
                // Whoever listened may have gone.
                drop(sender.send(Heard::Ended));
            });
        }
        Ok(Program { child, heard, told: Some(told), last: Instant::now(), looks: false, ended: None })
    }

    pub fn tell(&self, line: &str) {
        if let Some(told) = &self.told {
            // A program that is gone is found out when nothing comes from it.
            drop(told.send(format!("{line}\n")));
        }
    }

    /// What comes next, or that nothing came on standard output for so long.
    pub fn hear(&mut self, silence: Duration) -> Heard {
        if std::mem::take(&mut self.looks) {
            self.last = Instant::now();
        }
        loop {
            let left = silence.saturating_sub(self.last.elapsed());
            match self.heard.recv_timeout(left.min(GLANCE)) {
                Ok(Heard::Aside(_)) | Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Heard::Silence;
                }
                Ok(Heard::Aside(text)) => return Heard::Aside(text),
                Ok(heard) => {
                    self.looks = true;
                    return heard;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.ended.is_none() && matches!(self.child.try_wait(), Ok(Some(_))) {
                        self.ended = Some(Instant::now());
                    }
                    if self.ended.is_some_and(|ended| ended.elapsed() >= LAST_WORDS) {
                        return Heard::Ended;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Heard::Ended,
            }
        }
    }

    /// Waits a little for the end; true when the exit code was 0.
    pub fn ends_well(&mut self) -> io::Result<bool> {
        self.told = None;
        let started = Instant::now();
        loop {
            match self.child.try_wait()? {
                Some(status) => return Ok(status.success()),
                None if started.elapsed() > ENDING => return Ok(false),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Ends it, and tells what was said on standard error and not heard yet.
    pub fn asides(&mut self) -> Vec<String> {
        self.end();
        let deadline = Instant::now() + LAST_WORDS;
        let left = std::iter::from_fn(|| self.heard.recv_timeout(Duration::from_millis(50)).ok());
        left.take_while(|_| Instant::now() < deadline)
            .filter_map(|heard| match heard {
                Heard::Aside(text) => Some(text),
                Heard::Line(_) | Heard::TooLong(_) | Heard::Ended | Heard::Silence => None,
            })
            .take(100)
            .collect()
    }

    fn end(&mut self) {
        // It may have ended by itself; either way it is waited for, and its children are not left behind.
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

/// Sends the lines of a stream; of one that is too long only its length is held.
fn hear(
    input: impl Read,
    sender: &SyncSender<Heard>,
    line_of: impl Fn(Vec<u8>) -> Heard,
    too_long: impl Fn(u64) -> Heard,
) {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut line = Vec::new();
    let mut length = 0;
    loop {
        let (used, ended) = match input.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => {
                let end = memchr::memchr(b'\n', bytes);
                let piece = &bytes[..end.unwrap_or(bytes.len())];
                length += piece.len() as u64;
                if length <= LONGEST_LINE as u64 {
                    line.extend_from_slice(piece);
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
            let heard = match length > LONGEST_LINE as u64 {
                true => too_long(length),
                false => line_of(std::mem::take(&mut line)),
            };
            (length, line) = (0, Vec::new());
            if sender.send(heard).is_err() {
                return;
            }
        }
    }
    if length > 0 {
        // Nobody may be listening any more.
        drop(sender.send(if length > LONGEST_LINE as u64 { too_long(length) } else { line_of(line) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_heard_whole_and_long_ones_by_their_length() {
        let long = vec![b'x'; LONGEST_LINE + 1];
        let longest = vec![b'y'; LONGEST_LINE];
        let input = [b"a\n\nb\r\n", &long[..], b"\n", &longest, b"\nlast"].concat();
        let (sender, heard) = sync_channel(16);
        hear(&input[..], &sender, Heard::Line, Heard::TooLong);
        drop(sender);
        let told: Vec<String> = heard
            .into_iter()
            .map(|heard| match heard {
                Heard::Line(line) if line.len() > 100 => format!("{} bytes", line.len()),
                Heard::Line(line) => String::from_utf8(line).unwrap(),
                Heard::TooLong(length) => format!("too long: {length}"),
                Heard::Aside(_) | Heard::Ended | Heard::Silence => panic!("no line"),
            })
            .collect();
        assert_eq!(told, ["a", "", "b\r", "too long: 16777217", "16777216 bytes", "last"]);
    }
}
