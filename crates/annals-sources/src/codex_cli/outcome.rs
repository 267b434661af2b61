//! Reads how a call of Codex CLI ended from the text of its output.
//!
//! Longer than other files because nearly half of it is tests: one example of each wording.

use std::borrow::Cow;

use crate::json::Json;

/// How a call ended, as far as its output shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CommandOutcome {
    pub ok: Option<bool>,
    pub exit_code: Option<i64>,
    pub duration_ms: Option<u64>,
    pub running: bool,
}

/// Reads how a call ended from the opening of its output, and from the end of it where the output is long.
///
/// Only what the client wrote is believed, never the output of the command itself.
pub fn read_outcome(head: &str, tail: &str) -> CommandOutcome {
    if is_json_form(head) {
        return read_json_form(head, tail);
    }
    let Some((header, body)) = read_header(head) else {
        return read_failure(head);
    };
    // The result of a patch taken out of a command is wrapped once more, in a header without a status.
    if header.status.is_none() && !header.chunk {
        if is_json_form(body) {
            return read_json_form(body, tail);
        }
        let nested = read_header(body).filter(|_| body.starts_with(EXIT_CODE));
        if let Some((nested, _)) = nested.filter(|(nested, _)| nested.duration_ms.is_some()) {
            return nested.outcome();
        }
    }
    header.outcome()
}

/// What a command printed, without what the client wrote above it; nothing where the client cut it.
pub fn read_body(text: &str) -> Option<Cow<'_, str>> {
    if is_json_form(text) {
        let output = Json::parse(text.as_bytes()).and_then(|form| form.get_text("output"));
        return output.map(|output| Cow::Owned(output.into_owned())).filter(|output| is_whole(output));
    }
    let body = read_header(text).map_or(text, |(_, body)| body);
    let shortened = text[..text.len() - body.len()].contains(COUNTS[1]);
    (!shortened && is_whole(body)).then_some(Cow::Borrowed(body))
}

/// Clients say it in the text when they leave out its middle.
fn is_whole(body: &str) -> bool {
    let marks = ["[... omitted ", "Warning: truncated output", " tokens truncated…", " chars truncated…"];
    !marks.iter().any(|mark| body.contains(mark))
}

const EXIT_CODE: &str = "Exit code: ";
const PROCESS_EXITED: &str = "Process exited with code ";
const PROCESS_RUNNING: &str = "Process running with session ID ";
const SCRIPT_RUNNING: &str = "Script running with cell ID ";
const CHUNK: &str = "Chunk ID: ";
const WALL_TIME: &str = "Wall time: ";
const COUNTS: [&str; 2] = ["Original token count: ", "Total output lines: "];
const OUTPUT: &str = "Output:";
const COMMAND: &str = "Command: ";
const USER_COMMAND: &str = "<user_shell_command>";
const USER_RESULT: &str = "</command>\n<result>\n";

/// More lines than any header has.
const MAX_HEADER_LINES: usize = 12;

/// Openings of the sentences by which the client, not a command, reports a failure to the model.
const FAILURES: [&str; 20] = [
    "aborted by user",
    "apply_patch handler received ",
    "apply_patch verification failed",
    "approval policy is ",
    "Command blocked by ",
    "err: ",
    "error: ",
    "exec command rejected",
    "failed to parse exec_command arguments",
    "failed to parse function arguments",
    "failed to parse write_stdin arguments",
    "patch rejected",
    "This action was rejected",
    "Tool call blocked by ",
    "unsupported call: ",
    "unsupported custom tool call: ",
    "unsupported payload for ",
    "unsupported unified exec function ",
    "write_stdin failed",
    "rejected by user",
];

/// Openings of the failures that go on to show what became of the process, with its exit code.
const FAILURES_WITH_CODE: [&str; 3] = ["failed in sandbox ", "execution error: ", "exec_command failed"];

/// What the lines above a command's output say.
#[derive(Default)]
struct Header {
    status: Option<Status>,
    duration_ms: Option<u64>,
    chunk: bool,
}

#[derive(Clone, Copy)]
enum Status {
    Exited(i64),
    Running,
    Completed,
    Failed,
    Terminated,
}

impl Header {
    /// Takes a line if it is one of a header; the first of a kind counts.
    fn take_line(&mut self, line: &str) -> bool {
        if let Some(status) = read_status(line) {
            self.status.get_or_insert(status);
        } else if let Some(duration) = read_wall_time(line) {
            self.duration_ms.get_or_insert(duration);
        } else if line.starts_with(CHUNK) {
            self.chunk = true;
        } else {
            return COUNTS.iter().any(|count| line.starts_with(count));
        }
        true
    }

    fn outcome(&self) -> CommandOutcome {
        let (ok, exit_code, running) = match self.status {
            Some(Status::Exited(code)) => (Some(code == 0), Some(code), false),
            Some(Status::Running) => (None, None, true),
            Some(Status::Completed) => (Some(true), None, false),
            Some(Status::Failed) => (Some(false), None, false),
            Some(Status::Terminated) | None => (None, None, false),
        };
        CommandOutcome { ok, exit_code, duration_ms: self.duration_ms, running }
    }
}

fn read_status(line: &str) -> Option<Status> {
    if let Some(code) = line.strip_prefix(EXIT_CODE).or_else(|| line.strip_prefix(PROCESS_EXITED)) {
        return code.parse().ok().map(Status::Exited);
    }
    match line {
        "Script completed" => Some(Status::Completed),
        "Script failed" => Some(Status::Failed),
        "Script terminated" => Some(Status::Terminated),
        _ => {
            let running = line.starts_with(PROCESS_RUNNING) || line.starts_with(SCRIPT_RUNNING);
            running.then_some(Status::Running)
        }
    }
}

/// Reads `Wall time: x seconds`, which lacks the colon in code mode, or the `Duration` of a user's command.
fn read_wall_time(line: &str) -> Option<u64> {
    let time = [WALL_TIME, "Wall time ", "Duration: "].iter().find_map(|name| line.strip_prefix(name))?;
    milliseconds(time.strip_suffix(" seconds")?)
}

fn milliseconds(seconds: &str) -> Option<u64> {
    let seconds: f64 = seconds.parse().ok()?;
    // The conversion saturates.
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds * 1000.0).round() as u64)
}

/// The header and what follows it, if the text opens with one.
fn read_header(text: &str) -> Option<(Header, &str)> {
    let mut header = Header::default();
    let mut rest = header_start(text)?;
    for index in 0..MAX_HEADER_LINES {
        let (line, body) = split_line(rest);
        let first = index == 0;
        if !first && let Some(body) = rest.strip_prefix(OUTPUT) {
            // Where a header is a part of its own, the next part may follow without a line end.
            return Some((header, body.trim_start_matches('\r').strip_prefix('\n').unwrap_or(body)));
        }
        match line {
            "aborted by user" if !first => {
                header.status = Some(Status::Failed);
                return Some((header, body));
            }
            // A later client may add a line to the header, but will hardly open it with one.
            _ if !header.take_line(line) && (first || !line.contains(':')) => return None,
            _ => rest = body,
        }
    }
    None
}

/// Skips the command that may be above the header; it can go over many lines and say anything.
fn header_start(text: &str) -> Option<&str> {
    if text.starts_with(USER_COMMAND) {
        return text.split_once(USER_RESULT).map(|(_, result)| result);
    }
    if !text.starts_with(COMMAND) {
        return Some(text);
    }
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('\n') {
        rest = after;
        if starts_header(rest) {
            return Some(rest);
        }
    }
    None
}

/// Whether the next two lines belong together as no two lines of a command do.
fn starts_header(text: &str) -> bool {
    let chunk = text.starts_with(CHUNK);
    if !chunk && !text.starts_with(WALL_TIME) {
        return false;
    }
    let (first, rest) = split_line(text);
    let (second, _) = split_line(rest);
    if chunk {
        let name = &first[CHUNK.len()..];
        return name.bytes().all(|byte| byte.is_ascii_hexdigit()) && read_wall_time(second).is_some();
    }
    let follows = second == OUTPUT || read_status(second).is_some() || second.starts_with(COUNTS[0]);
    read_wall_time(first).is_some() && follows
}

fn split_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

fn is_json_form(text: &str) -> bool {
    let value =
        text.trim_start().strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix("\"output\""));
    let value = value.and_then(|rest| rest.trim_start().strip_prefix(':'));
    value.is_some_and(|rest| rest.trim_start().starts_with('"'))
}

/// Reads the metadata at the end of `{"output":"…","metadata":{…}}`.
///
/// Quotes of the output itself are escaped there, so the last unescaped name is the client's.
fn read_json_form(head: &str, tail: &str) -> CommandOutcome {
    let mut outcome = CommandOutcome::default();
    let mut rest = read_metadata(tail).or_else(|| read_metadata(head)).unwrap_or_default();
    while let Some((name, value, after)) = read_member(rest) {
        match name {
            "exit_code" => outcome.exit_code = value.parse().ok(),
            "duration_seconds" => outcome.duration_ms = milliseconds(value),
            _ => {}
        }
        rest = after;
    }
    outcome.ok = outcome.exit_code.map(|code| code == 0);
    outcome
}

fn read_metadata(text: &str) -> Option<&str> {
    const NAME: &str = "\"metadata\"";
    let rest = &text[text.rfind(NAME)? + NAME.len()..];
    rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('{')
}

/// The next member of an object of plain numbers, and what follows it there.
fn read_member(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start().strip_prefix(':')?;
    let end = rest.find([',', '}'])?;
    let after = rest[end..].strip_prefix(',').unwrap_or_default();
    Some((name, rest[..end].trim(), after))
}

fn read_failure(text: &str) -> CommandOutcome {
    let opens = |failures: &[&str]| failures.iter().any(|failure| text.starts_with(failure));
    let with_code = opens(&FAILURES_WITH_CODE);
    let exit_code = if with_code { dumped_exit_code(text) } else { None };
    let failed = with_code || opens(&FAILURES) || text == "aborted";
    CommandOutcome { ok: failed.then_some(exit_code == Some(0)), exit_code, ..CommandOutcome::default() }
}

/// The exit code in a message or debug dump, from outside the quotes that hold the command's own output.
fn dumped_exit_code(text: &str) -> Option<i64> {
    let mut quoted = false;
    let mut escaped = false;
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'e' if !quoted => {
                let rest = &text[position..];
                let code = rest.strip_prefix("exit code: ").or_else(|| rest.strip_prefix("exit_code: "));
                if let Some(code) = code {
                    let end = code.find(|character: char| character != '-' && !character.is_ascii_digit());
                    return code[..end.unwrap_or(code.len())].parse().ok();
                }
            }
            b's' if !quoted && text[position..].starts_with("stdout:") => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn read(text: &str) -> CommandOutcome {
        read_outcome(text, "")
    }

    fn exited(code: i64, duration_ms: u64) -> CommandOutcome {
        CommandOutcome {
            ok: Some(code == 0),
            exit_code: Some(code),
            duration_ms: Some(duration_ms),
            running: false,
        }
    }

    fn failed() -> CommandOutcome {
        CommandOutcome { ok: Some(false), ..CommandOutcome::default() }
    }

    fn lasted(duration_ms: u64) -> CommandOutcome {
        CommandOutcome { duration_ms: Some(duration_ms), ..CommandOutcome::default() }
    }

    #[test]
    fn json_with_metadata() {
        let text = r#"{"output":"hi\n","metadata":{"exit_code":3,"duration_seconds":0.2}}"#;
        assert_eq!(read(text), exited(3, 200));
        assert_eq!(read_outcome(text, text), exited(3, 200));
        let spaced = r#" { "output" : "x", "metadata" : { "duration_seconds" : 12 , "exit_code" : 0 } }"#;
        assert_eq!(read(spaced), exited(0, 12_000));
        let tail = r#"ut","metadata":{"exit_code":-1,"duration_seconds":1.25}}"#;
        assert_eq!(read_outcome("{\"output\":\"a long outp", tail), exited(-1, 1250));
    }

    #[test]
    fn json_without_trusty_metadata() {
        assert_eq!(read_outcome("{\"output\":\"cut", "off"), CommandOutcome::default());
        assert_eq!(read(r#"{"output":"\"metadata\":{\"exit_code\":0}"}"#), CommandOutcome::default());
        assert_eq!(read(r#"{"output":"x","metadata":{"exit_code":null}}"#), CommandOutcome::default());
        assert_eq!(read(r#"{"output":"x","metadata":{"exit_code":1"#), CommandOutcome::default());
        let spoof =
            r#"{"output":"\"metadata\":{\"exit_code\":0}","metadata":{"exit_code":7,"duration_seconds":0}}"#;
        assert_eq!(read(spoof), exited(7, 0));
        let other = r#"{"status":"x","metadata":{"exit_code":1,"duration_seconds":0.0}}"#;
        assert_eq!(read(other), CommandOutcome::default());
    }

    #[test]
    fn sandbox_messages() {
        let code =
            |code| CommandOutcome { ok: Some(code == 0), exit_code: Some(code), ..CommandOutcome::default() };
        let message = "failed in sandbox Seatbelt with execution error: sandbox denied exec error, \
            exit code: 3, stdout: exit code: 0\n, stderr: no\n";
        assert_eq!(read(message), code(3));
        let dump = "failed in sandbox Seatbelt with execution error: Denied { output: ExecToolCallOutput { \
            exit_code: -9, stdout: StreamOutput { text: \"exit_code: 0\" } } }";
        assert_eq!(read(dump), code(-9));
        let spoofed = "exec_command failed: SandboxDenied { message: \"\\\" exit_code: 0,\", output: \
            ExecToolCallOutput { exit_code: 13, stdout: StreamOutput { text: \"\" } } }";
        assert_eq!(read(spoofed), code(13));
        assert_eq!(read("execution error: Io(Custom { error: \"exit_code: 0\" })"), failed());
        assert_eq!(read("failed in sandbox Seatbelt: no command, stdout: exit code: 0"), failed());
        assert_eq!(read("failed in sandbox Seatbelt, exit code: é"), failed());
    }

    #[test]
    fn exit_code_header() {
        assert_eq!(read("Exit code: 0\nWall time: 0 seconds\nOutput:\nhi"), exited(0, 0));
        let counted = "Exit code: 124\r\nWall time: 1.1 seconds\r\nTotal output lines: 9\r\nOutput:\r\n";
        assert_eq!(read(counted), exited(124, 1100));
        let user = "<user_shell_command>\n<command>\nExit code: 9\nOutput:\n</command>\n<result>\n\
            Exit code: 2\nDuration: 0.5000 seconds\nOutput:\nx\n</result>";
        assert_eq!(read(user), exited(2, 500));
    }

    #[test]
    fn process_header() {
        let ended = "Chunk ID: 0a1b2c\nWall time: 0.6394 seconds\nProcess exited with code 3\n\
            Original token count: 6\nOutput:\nProcess exited with code 0\n";
        assert_eq!(read(ended), exited(3, 639));
        let running = "Chunk ID: 0a1b2c\nWall time: 0.5008 seconds\nProcess running with session ID 4099\n\
            Original token count: 2\nOutput:\nProcess exited with code 0\n";
        assert_eq!(read(running), CommandOutcome { running: true, ..lasted(501) });
        let unknown_line = "Wall time: 1 seconds\nProcess exited with code 0\nNovelty: 1\nOutput:\n";
        assert_eq!(read(unknown_line), exited(0, 1000));
    }

    #[test]
    fn command_above_the_header() {
        let header = "Chunk ID: 0a1b2c\nWall time: 0.1 seconds\nProcess exited with code 4\nOutput:\nhi";
        assert_eq!(read(&format!("Command: /bin/bash -lc ls\n{header}")), exited(4, 100));
        let command =
            "Command: bash -lc 'cat <<E\nOutput:\nProcess exited with code 0\nChunk ID: ab\nOutput:\nE'";
        assert_eq!(read(&format!("{command}\n{header}")), exited(4, 100));
        let chunkless = "Wall time: 0.1 seconds\nProcess exited with code 4\nOutput:\n";
        assert_eq!(read(&format!("{command}\n{chunkless}")), exited(4, 100));
        assert_eq!(read(command), CommandOutcome::default());
    }

    #[test]
    fn nested_header() {
        let outer = "Wall time: 0.0000 seconds\nOutput:\n";
        let nested = "Exit code: 1\nWall time: 1.1 seconds\nOutput:\nSuccess.";
        assert_eq!(read(&format!("{outer}{nested}")), exited(1, 1100));
        let json = r#"{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}"#;
        assert_eq!(read(&format!("{outer}{json}")), exited(0, 100));
        assert_eq!(read(&format!("{outer}hello\n{nested}")), lasted(0));
        assert_eq!(read(&format!("{outer}Exit code: 1\nhello")), lasted(0));
        assert_eq!(
            read(&format!("{outer}Process exited with code 0\nWall time: 1 seconds\nOutput:\n")),
            lasted(0)
        );
        assert_eq!(read(&format!("Chunk ID: ab\n{outer}{nested}")), lasted(0));
        let running = "Wall time: 2 seconds\nProcess running with session ID 1\nOutput:\n";
        assert_eq!(read(&format!("{running}{nested}")), CommandOutcome { running: true, ..lasted(2000) });
        let ended = "Wall time: 2 seconds\nProcess exited with code 0\nOutput:\n";
        assert_eq!(read(&format!("{ended}{nested}")), exited(0, 2000));
    }

    #[test]
    fn script_header() {
        let script =
            |status: &str| read(&format!("{status}\nWall time 0.6 seconds\nOutput:\nExit code: 1\n"));
        assert_eq!(script("Script completed"), CommandOutcome { ok: Some(true), ..lasted(600) });
        assert_eq!(script("Script failed"), CommandOutcome { ok: Some(false), ..lasted(600) });
        assert_eq!(script("Script running with cell ID 7"), CommandOutcome { running: true, ..lasted(600) });
        assert_eq!(script("Script terminated"), lasted(600));
        assert_eq!(script("Script completed at last"), CommandOutcome::default());
    }

    #[test]
    fn error_sentences() {
        for sentence in [
            "apply_patch verification failed: Failed to find expected lines in a:\nExit code: 0",
            "patch rejected: writing is blocked by read-only sandbox",
            "patch rejected by user",
            "unsupported call: no_such_tool",
            "unsupported custom tool call: no_such_tool",
            "failed to parse function arguments: missing field",
            "exec command rejected by user",
            "exec_command failed: UnknownProcess",
            "error: Failed to find expected lines [\"exit code: 0\"] in a",
            "error: ComputeReplacements(\n    \"x\",\n)",
            "aborted by user after 2.1s",
            "aborted",
        ] {
            assert_eq!(read(sentence), failed(), "{sentence}");
        }
        let aborted = read("Wall time: 2.1 seconds\naborted by user");
        assert_eq!(aborted, CommandOutcome { ok: Some(false), ..lasted(2100) });
    }

    #[test]
    fn other_texts_say_nothing() {
        for text in [
            "",
            "\n",
            "Plan updated",
            "Output:",
            "Output:\nExit code: 0\nWall time: 1 seconds\nOutput:\n",
            "hello\nExit code: 0\nWall time: 1 seconds\nOutput:\n",
            "Exit code: 0",
            "Exit code: 0\nhello\nOutput:\n",
            "Exit code: zero\nWall time: 1 seconds\nOutput:\n",
            "Exit code: 99999999999999999999\nOutput:\n",
            "The patch rejected: no",
            "{\"agent_id\":\"a\",\"nickname\":\"b\"}",
            "Command: ls\n",
            "<user_shell_command>\nExit code: 0\nOutput:\n",
        ] {
            assert_eq!(read(text), CommandOutcome::default(), "{text}");
        }
        assert_eq!(read("Wall time: 0.0047 seconds\nOutput:"), lasted(5));
        assert_eq!(read("Wall time: 0.0047 seconds\nOutput:hello"), lasted(5));
    }

    #[test]
    fn odd_durations() {
        let wall =
            |time: &str| read(&format!("Exit code: 0\nWall time: {time} seconds\nOutput:\n")).duration_ms;
        assert_eq!(wall("0.0004"), Some(0));
        assert_eq!(wall("1e300"), Some(u64::MAX));
        for time in ["-1", "NaN", "inf", "", "é"] {
            assert_eq!(wall(time), None, "{time}");
        }
    }

    #[test]
    fn every_prefix_of_a_text_can_be_read() {
        for text in [
            "{\"output\":\"é\",\"metadata\":{\"exit_code\":3,\"duration_seconds\":0.2}}",
            "Command: é\nChunk ID: ab\nWall time: 1 seconds\nProcess exited with code 3\nOutput:\né",
            "failed in sandbox é: exit code: 3é, stdout: \"\\\u{e9}\"",
            "Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nWall time: 1 seconds\nOutput:\n",
        ] {
            for (index, _) in text.char_indices() {
                read_outcome(&text[..index], &text[index..]);
                read_outcome(&text[index..], &text[..index]);
            }
        }
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        let started = Instant::now();
        for unit in [
            "Command: x\n",
            "Chunk ID: a",
            "Chunk ID: a\n",
            "Wall time: 1 seconds\n",
            "\n",
            ": ",
            "\"metadata\"",
            "\"a\":1,",
            "exit_code: ",
            "e",
            "\\",
            "\"",
            "</command>\n<result>\n",
            " ",
        ] {
            let text = unit.repeat(1_000_000 / unit.len());
            for opening in [
                "",
                "Command: ",
                "Chunk ID: ",
                "{\"output\":\"",
                "{\"output\":\"\",\"metadata\":{",
                "failed in sandbox ",
                "Wall time: 1 seconds\nOutput:\n",
                "<user_shell_command>",
            ] {
                read_outcome(&format!("{opening}{text}"), &text);
            }
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }
}
