//! Picks one of several sessions: typing narrows the list, and below it is what the chosen one was about.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use super::table::fit;
use super::wrap;
use annals_core::{Result, is_hidden};

/// Lines of a list, at most.
const LISTED: usize = 10;
/// Lines of a preview, at most.
const PREVIEWED: usize = 8;

/// What a person sees while picking.
struct Picker<'c> {
    /// What is shown, and what typed letters are compared with.
    choices: &'c [String],
    /// What a choice is about, shown while it is selected.
    preview: &'c mut dyn FnMut(usize) -> Vec<String>,
    typed: String,
    /// Position among those that match.
    selected: usize,
    width: usize,
}

/// What a key does.
#[derive(Debug, PartialEq, Eq)]
enum Key {
    Up,
    Down,
    Enter,
    Quit,
    Erase,
    EraseAll,
    Letter(char),
    Other,
}

/// Lets a person pick on the terminal. The number of the choice, or none if they gave up.
#[cfg(unix)]
pub fn pick(
    choices: &[String],
    width: usize,
    preview: &mut dyn FnMut(usize) -> Vec<String>,
) -> Result<Option<usize>> {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    /// The terminal is as it was, however picking ends.
    struct Restored(rustix::termios::Termios);
    impl Drop for Restored {
        fn drop(&mut self) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
        }
    }
    let before = tcgetattr(io::stdin()).map_err(io::Error::from)?;
    let mut raw = before.clone();
    raw.make_raw();
    let _restored = Restored(before);
    tcsetattr(io::stdin(), OptionalActions::Flush, &raw).map_err(io::Error::from)?;
    let mut picker = Picker { choices, preview, typed: String::new(), selected: 0, width: width.max(20) };
    picker.run(&mut io::stdin().lock(), &mut io::stderr())
}

/// Where a terminal cannot be read key by key, a list with numbers is chosen from instead.
#[cfg(not(unix))]
pub fn pick(_: &[String], _: usize, _: &mut dyn FnMut(usize) -> Vec<String>) -> Result<Option<usize>> {
    Ok(None)
}

impl Picker<'_> {
    fn run(&mut self, input: &mut dyn Read, screen: &mut dyn Write) -> Result<Option<usize>> {
        let mut keys = Keys { input, arrived: VecDeque::new() };
        loop {
            let drawn = self.draw(screen)?;
            let key = keys.next()?;
            let matching = self.matching();
            // Back to the first line, and away with everything below.
            write!(screen, "\r\u{1b}[{drawn}A\u{1b}[J")?;
            match key {
                Key::Enter => {
                    screen.flush()?;
                    return Ok(matching.get(self.selected).copied());
                }
                Key::Quit => {
                    screen.flush()?;
                    return Ok(None);
                }
                Key::Up => self.selected = self.selected.saturating_sub(1),
                Key::Down => self.selected = (self.selected + 1).min(matching.len().saturating_sub(1)),
                Key::Erase => {
                    self.typed.pop();
                    self.selected = 0;
                }
                Key::EraseAll => {
                    self.typed.clear();
                    self.selected = 0;
                }
                Key::Letter(letter) => {
                    self.typed.push(letter);
                    self.selected = 0;
                }
                Key::Other => {}
            }
        }
    }

    /// The choices that match what was typed, the best first.
    fn matching(&self) -> Vec<usize> {
        let scores = self.choices.iter().enumerate();
        let mut found: Vec<(u32, usize)> =
            scores.filter_map(|(number, choice)| Some((fuzzy(&self.typed, choice)?, number))).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, number)| number).collect()
    }

    /// How many lines are above the cursor when everything is drawn.
    fn draw(&mut self, screen: &mut dyn Write) -> Result<usize> {
        let matching = self.matching();
        let mut lines = vec![format!("Resume which? {}", self.typed)];
        let first = (self.selected + 1).saturating_sub(LISTED);
        for (position, number) in matching.iter().enumerate().skip(first).take(LISTED) {
            let mark = if position == self.selected { ">" } else { " " };
            lines.push(format!("{mark} {}", self.choices[*number]));
        }
        if matching.is_empty() {
            lines.push("  nothing matches; Backspace erases".to_owned());
        }
        if let Some(number) = matching.get(self.selected) {
            lines.push(String::new());
            let preview = (self.preview)(*number);
            let preview =
                preview.iter().flat_map(|line| wrap::prose(line, Some(self.width.saturating_sub(4))));
            lines.extend(preview.take(PREVIEWED).map(|line| format!("  {line}")));
        }
        lines.push("  ↑↓ select · type to narrow · Enter resumes · Esc gives up".to_owned());
        let mut text = String::new();
        for (number, line) in lines.iter().enumerate() {
            let line: String = fit(line, self.width - 1)
                .chars()
                .map(|letter| if is_hidden(letter) { ' ' } else { letter })
                .collect();
            let is_selected = line.starts_with('>') && number > 0;
            let (on, off) = if is_selected { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
            let end = if number + 1 < lines.len() { "\r\n" } else { "" };
            text.push_str(&format!("{on}{line}{off}{end}"));
        }
        screen.write_all(text.as_bytes())?;
        screen.flush()?;
        Ok(lines.len() - 1)
    }
}

/// How well letters match a text in which they appear in order, each word of what was typed for itself: the smaller the
/// better; none if one is missing.
fn fuzzy(typed: &str, text: &str) -> Option<u32> {
    let text = text.to_lowercase();
    let mut score = 0;
    for word in typed.to_lowercase().split_whitespace() {
        score += match text.find(word) {
            Some(_) => 0,
            None => {
                let mut letters = text.chars();
                let mut skipped = 0;
                for letter in word.chars() {
                    skipped +=
                        u32::try_from(letters.position(|other| other == letter)?).unwrap_or(u32::MAX / 64);
                }
                skipped + 1
            }
        };
    }
    Some(score)
}

/// Keys as they arrive: what belongs to one key arrives at once.
struct Keys<'k> {
    input: &'k mut dyn Read,
    arrived: VecDeque<u8>,
}

impl Keys<'_> {
    fn next(&mut self) -> io::Result<Key> {
        if self.arrived.is_empty() {
            let mut some = [0; 64];
            let count = self.input.read(&mut some)?;
            self.arrived.extend(&some[..count]);
        }
        Ok(match self.arrived.pop_front() {
            None | Some(0x03 | 0x04) => Key::Quit,
            Some(b'\r' | b'\n') => Key::Enter,
            Some(0x08 | 0x7f) => Key::Erase,
            Some(0x15) => Key::EraseAll,
            Some(0x10) => Key::Up,
            Some(0x0e) => Key::Down,
            Some(0x1b) => self.sequence(),
            Some(byte) if byte < 0x20 => Key::Other,
            Some(byte) => self.letter(byte),
        })
    }

    /// Arrows are sent as an escape and two letters; an escape alone gives up.
    fn sequence(&mut self) -> Key {
        match self.arrived.pop_front() {
            None => Key::Quit,
            Some(b'[' | b'O') => {
                let mut last = self.arrived.pop_front();
                while last.is_some_and(|byte| byte.is_ascii_digit() || byte == b';') {
                    last = self.arrived.pop_front();
                }
                match last {
                    Some(b'A') => Key::Up,
                    Some(b'B') => Key::Down,
                    _ => Key::Other,
                }
            }
            Some(_) => Key::Other,
        }
    }

    fn letter(&mut self, first: u8) -> Key {
        let more = match first {
            0xf0.. => 3,
            0xe0.. => 2,
            0xc0.. => 1,
            _ => 0,
        };
        let bytes: Vec<u8> =
            std::iter::once(first).chain((0..more).filter_map(|_| self.arrived.pop_front())).collect();
        let letter = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
        letter.map_or(Key::Other, Key::Letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(keys: &[u8]) -> Option<usize> {
        let lines = ["fix the login page", "count the gears", "修复登录"];
        let choices = lines.map(str::to_owned);
        let mut preview = |_: usize| vec!["more".to_owned()];
        let (typed, selected, width) = (String::new(), 0, 40);
        let mut picker = Picker { choices: &choices, preview: &mut preview, typed, selected, width };
        picker.run(&mut &*keys, &mut io::sink()).unwrap()
    }

    #[test]
    fn keys_narrow_and_choose() {
        assert_eq!(picked(b"\r"), Some(0));
        assert_eq!(picked(b"gear\r"), Some(1));
        assert_eq!(picked(b"ctg\r"), Some(1), "letters in order");
        assert_eq!(picked("登录\r".as_bytes()), Some(2));
        assert_eq!(picked(b"zzz\x15\x0e\r"), Some(1), "erase all, then down");
        assert_eq!(picked(b"\x1b[B\x1b[B\x1b[A\r"), Some(1), "arrows");
        assert_eq!(picked(b"\x1b"), None);
        assert_eq!(picked(b"zzz\r"), None);
        assert_eq!(picked(b"g\x03"), None);
        assert_eq!(picked(b""), None);
    }

    #[test]
    fn the_best_match_comes_first() {
        assert!(fuzzy("gear", "count the gears") < fuzzy("gear", "get early results"));
        assert_eq!(fuzzy("xyz", "count"), None);
        assert_eq!(fuzzy("", "anything"), Some(0));
    }
}
