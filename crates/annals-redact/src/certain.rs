//! Places that can hold nothing but a secret: whatever is there is masked, words too.

use std::ops::Range;

use super::plain::{Doubts, Place, is_number};
use super::slot::{Slot, is_blank, is_name_byte, mark_end, run, trim_end, until};

/// Values that describe a secret instead of being one: types, states, algorithms and labels.
const DESCRIPTIONS: &str = " string str text bytes byte char varchar password passwd passphrase passcode pass pwd secret \
    token none null nil undefined true false yes no on off required optional hidden redacted masked empty unset unknown \
    default any object number integer int bool boolean type value field input prompt ask stdin env file plain plaintext \
    md5 sha1 sha256 sha512 bcrypt scrypt argon2 hash hashed hmac base64 basic digest encrypted new old current confirm \
    invalid incorrect wrong weak strong missing example sample self this secretstr option never always foo bar baz \
    changeme all username user email login name admin_password todo tbd n/a void any ";

/// Words that follow an option in a sentence about it.
const PROSE: &str = " to and or is flag flags option options argument arguments arg for if when with in as on parameter \
    value values from instead can will should must was are which that the a an via not by be it you your this has have does \
    but so only also interactively prompt then switch at after before unless because while without accepts takes \
    requires sets uses reads may might would could ";

/// Parts of labels in many languages: `"password": "Passwort"`.
const LABELS: &[&str] = &[
    "password",
    "passwd",
    "passwort",
    "kennwort",
    "contrase",
    "senha",
    "wachtwoord",
    "credential",
    "secret",
];

/// What is known about the place of a value.
pub(super) struct Setting {
    /// `DB_PASSWORD`: a constant or a variable of the environment.
    pub(super) shouted: bool,
    pub(super) flag: bool,
    /// At the start of a line, as in files of settings.
    pub(super) leading: bool,
    pub(super) tight: bool,
}

impl Setting {
    pub(super) fn of(bytes: &[u8], word: Range<usize>, slot: &Slot) -> Setting {
        let before = &bytes[word.start.saturating_sub(64)..word.start];
        let length = before.iter().rev().take_while(|byte| is_name_byte(**byte) || **byte == b'.').count();
        let start = word.start - length;
        let name = &bytes[start..word.end];
        let shouted = name.iter().all(|byte| !byte.is_ascii_lowercase()) && !name.starts_with(b"-");
        let line = &bytes[start.saturating_sub(16)..start];
        let lead = line.iter().rposition(|byte| *byte == b'\n').map_or(line, |at| &line[at + 1..]);
        let whole = start <= line.len() || lead.len() < line.len();
        let indent = lead.trim_ascii_start();
        let leading = whole
            && (lead.is_empty()
                || shouted && [&b""[..], b"-", b"export", b"- "].contains(&indent.trim_ascii_end()))
            || lead.ends_with(b"\\n");
        let tight = slot.start == word.end + 1 && bytes.get(word.end) == Some(&b'=');
        let option = name.iter().take_while(|byte| **byte == b'-').count();
        Setting { shouted, flag: option > 0, leading, tight }
    }
}

/// The end of a value that is a secret because of its place alone.
pub(super) fn value_end(bytes: &[u8], slot: &Slot, setting: &Setting, doubts: &Doubts) -> Option<usize> {
    let limit = until(bytes, slot.start, LONGEST_VALUE).len();
    let end = match slot.place {
        Place::Quoted if slot.is_code() => return None,
        Place::Quoted => slot.closing(bytes, limit, setting.shouted)?,
        Place::Environment | Place::Bare
            if setting.shouted || setting.flag || setting.leading && setting.tight =>
        {
            bare_end(bytes, slot.start, limit, setting)?
        }
        Place::Environment | Place::Bare => return None,
    };
    let value = &bytes[slot.start..end];
    let is_masked = (slot.start..=end).any(|at| mark_end(bytes, at).is_some());
    (!is_masked && is_secret(value, slot.place, doubts)).then_some(end)
}

/// Whether a value may be a secret at all, at a place that only has secrets.
pub(super) fn is_secret(value: &[u8], place: Place, doubts: &Doubts) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_label = || {
        let words = lower.iter().all(|byte| byte.is_ascii_alphabetic() || b" _-.".contains(byte));
        let named = |label: &&str| lower.windows(label.len()).any(|part| part == label.as_bytes());
        words && place != Place::Environment && LABELS.iter().any(named)
    };
    let is_port = || value.contains(&b':') && is_number(value);
    value.len() >= SHORTEST
        && !is_listed(DESCRIPTIONS, &lower)
        && !value.starts_with(b"-")
        && !doubts.is_placeholder(value, place)
        && !doubts.is_reference(value)
        && !is_label()
        && !is_port()
}

/// An unquoted value. On a line that holds nothing else, punctuation that ends values elsewhere is part of it.
fn bare_end(bytes: &[u8], start: usize, limit: usize, setting: &Setting) -> Option<usize> {
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"\"'`\\<>{}".contains(&byte);
    let is_plain = |byte: u8| is_part(byte) && !b",;&)]|".contains(&byte);
    let line = setting.leading && setting.tight;
    let end = run(&bytes[..limit], start, |byte| if line { is_part(byte) } else { is_plain(byte) });
    let last = bytes[start..end].iter().rposition(|byte| !b",;&)]|".contains(byte))?;
    let end = trim_end(bytes, start..start + last + 1);
    let value = &bytes[start..end];
    // A word is a variable, a type or prose, unless nothing else fits: at the end of a line or before another option.
    let next = run(&bytes[..bytes.len().min(end + 8)], end, is_blank);
    let ends = matches!(
        bytes.get(next),
        None | Some(b'\n' | b'\r' | b'\\' | b'"' | b'\'' | b'`' | b'-' | b'|' | b'>')
    );
    let follows = run(bytes.get(..limit.max(next))?, next, |byte| byte.is_ascii_graphic());
    let beyond = bytes.get(next..follows).unwrap_or_default();
    let is_argument =
        next > end && beyond.iter().any(|byte| b"/@:=.".contains(byte)) && !beyond.ends_with(b".");
    let is_word = value.iter().all(|byte| byte.is_ascii_alphabetic());
    let is_path = value.contains(&b'.')
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(byte));
    let calls = matches!(bytes.get(end), Some(b'(' | b'[' | b'{')) || value.contains(&b'(') && !line;
    let listed = is_listed(PROSE, &value.to_ascii_lowercase());
    let is_constant =
        !setting.tight && (is_number(value) || value.starts_with(b"0x") || bytes.get(next) == Some(&b'='));
    let shouted_word = setting.shouted && setting.tight && matches!(bytes.get(end), Some(b' '));
    let fits = !is_path
        && !calls
        && !listed
        && !is_constant
        && (!is_word || ends || is_argument || shouted_word || setting.flag && setting.tight);
    fits.then_some(end)
}

fn is_listed(list: &str, word: &[u8]) -> bool {
    let Ok(word) = std::str::from_utf8(word) else { return false };
    list.split(' ').any(|listed| listed == word)
}

/// Anything shorter hides nothing.
const SHORTEST: usize = 3;

const LONGEST_VALUE: usize = 256;
