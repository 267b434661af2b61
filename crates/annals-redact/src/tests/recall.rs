//! How many planted secrets are masked, by vendor, by form and by encoding. `--nocapture` prints the figures.

use super::{MADE_UP, REDACTOR, block, key_of, made_up};

/// Kinds of keys that `KEYS` does not have: prefix, length of the rest (`x` hexadecimal, `^` capitals, `u` a UUID), and
/// what follows. `§` in a prefix is a made-up key of 32 bytes, `¤` of 32 hexadecimal digits.
const MORE_KEYS: &str = include_str!("keys.txt");

/// Where a key appears: assigned to a name that says nothing, alone, and next to other text.
const KEY_PLACES: [&str; 4] = ["§", "value = \"§\"", "see §.", "a\\n§\\nb"];

/// One form per row; the secret is between `«` and `»`, `⏎` is a line break.
const FORMS: &str = include_str!("forms.txt");

/// Rows like `FORMS` for a token or a block in some encoding; `§` is a token.
const ENCODINGS: &str = include_str!("encodings.txt");

/// What is known to be missed, by the start of the row; `docs/security.md` has the reasons.
const MISSED_KEYS: &[&str] = &[];
const MISSED_FORMS: &[&str] = &["password: «hunt&er)2,2x»", "token=«abc)12345»", "API_KEY=«abcd,1234)efgh»"];
const MISSED_ENCODINGS: &[&str] = &[];

/// Neither half of the secret is left.
fn is_masked(text: &str, secret: &str) -> bool {
    let masked = REDACTOR.mask(text);
    let middle = (0..=secret.len() / 2).rev().find(|at| secret.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = secret.split_at(middle);
    !masked.contains(first) && !masked.contains(second)
}

struct Figures {
    planted: usize,
    missed: Vec<String>,
}

impl Figures {
    fn of<'r>(rows: impl Iterator<Item = (&'r str, Vec<(String, String)>)>) -> Figures {
        let mut figures = Figures { planted: 0, missed: Vec::new() };
        for (row, plants) in rows {
            for (text, secret) in plants {
                figures.planted += 1;
                if !is_masked(&text, &secret) {
                    figures.missed.push(format!("{row}  ->  {}", REDACTOR.mask(&text)));
                }
            }
        }
        figures
    }

    #[expect(clippy::print_stdout, clippy::disallowed_macros, reason = "figures are printed for people")]
    fn check(&self, name: &str, known: &[&str]) {
        let found = self.planted - self.missed.len();
        println!("{name}: {found} of {} masked", self.planted);
        let is_known = |row: &&String| !known.iter().any(|start| row.starts_with(start));
        let new: Vec<_> = self.missed.iter().filter(is_known).collect();
        assert!(new.is_empty(), "{name}: missed {}: {new:#?}", new.len());
        let stale: Vec<_> =
            known.iter().filter(|start| !self.missed.iter().any(|row| row.starts_with(*start))).collect();
        assert!(stale.is_empty(), "{name}: masked by now: {stale:?}");
    }
}

fn key_for(row: &str) -> (String, &str) {
    let mut words = row.split_whitespace();
    let (start, length) = (words.next().unwrap(), words.next().unwrap());
    let start = made_up(start);
    let key = match length.split_at(length.len() - 1) {
        ("", "u") => format!("{start}0a1b2c3d-4e5f-4a7b-8c9d-{}", "0e1f2a3b4c5d"),
        (count, "z") => format!("{start}{}", &MADE_UP.to_lowercase()[..count.parse::<usize>().unwrap()]),
        _ if length == "64x" => format!("{start}{}", "3f9a1c7e0b5d8246".repeat(4)),
        _ => key_of(&start, length),
    };
    (key, words.next().unwrap_or_default())
}

#[test]
fn keys_of_vendors() {
    let figures = Figures::of(rows(MORE_KEYS).map(|row| {
        let (key, vendor) = key_for(row);
        let plants = KEY_PLACES.map(|place| (format!("{vendor} {}", place.replace('§', &key)), key.clone()));
        (row, plants.into())
    }));
    figures.check("keys of vendors", MISSED_KEYS);
}

fn plants(row: &str) -> Vec<(String, String)> {
    let row = made_up(row).replace('⏎', "\n");
    let text = row.replace(['«', '»'], "");
    let secrets = row.split('«').skip(1).filter_map(|part| part.split_once('»'));
    secrets.map(|(secret, _)| (text.clone(), secret.to_owned())).collect()
}

fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|row| !row.is_empty() && !row.starts_with("## "))
}

#[test]
fn forms() {
    Figures::of(rows(FORMS).map(|row| (row, plants(row)))).check("forms", MISSED_FORMS);
}

/// Tokens and blocks as they appear in raw lines, terminals, diffs and pages.
#[test]
fn encodings() {
    let token = super::key("ghp_", 36);
    let tokens = rows(ENCODINGS).map(|row| (row, plants(&row.replace("TOKEN", &token))));
    let escaped: String = token.bytes().map(|byte| format!("\\u00{byte:02x}")).collect();
    let first = format!("\\u0067{}", &token[1..]);
    let underscore = token.replace('_', "\\u005f");
    let capitals = escaped.to_uppercase().replace("\\U", "\\u");
    let unescaped = [&escaped, &first, &underscore, &capitals].map(|token| {
        let secret = token.get(token.len() - 20..).unwrap_or_default().to_owned();
        ("escaped token", vec![(format!("{{\"text\":\"see {token} there\"}}"), secret)])
    });
    let mut blocks = Vec::new();
    for label in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY"] {
        let whole = block(label, "\n");
        let lines: Vec<&str> = whole.lines().collect();
        let coloured = |code: &str, end: &str| {
            lines.iter().map(|line| format!("{code}{line}{end}")).collect::<Vec<_>>().join("\n")
        };
        let body = lines[1..lines.len() - 1].join("\n");
        blocks.push(("coloured block", coloured("\u{1b}[32m", "\u{1b}[0m")));
        blocks.push(("bold block", coloured("\u{1b}[1;38;5;10m", "\u{1b}[m\u{1b}[K")));
        blocks.push(("escaped colours", coloured("\\u001b[32m", "\\u001b[0m").replace('\n', "\\n")));
        blocks.push(("added in a diff", coloured("\u{1b}[32m+", "\u{1b}[m")));
        blocks.push(("quoted block", coloured("> ", "")));
        blocks.push(("block without its start", lines[1..].join("\n")));
        blocks.push(("block without its start, escaped", lines[1..].join("\\n")));
        blocks.push(("block without its end", lines[..lines.len() - 1].join("\n")));
        for start in
            ["b3BlbnNzaC1rZXktdjEAAAAA", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "MIIEpAIBAAKCAQEA", "MHcCAQEEI"]
        {
            blocks.push(("block without header", format!("{start}{body}")));
            blocks
                .push(("block without header, escaped", format!("\"{start}{}\"", body.replace('\n', "\\n"))));
        }
    }
    let secret = MADE_UP[20..60].to_owned();
    let blocks = blocks.into_iter().map(|(name, text)| (name, vec![(text, secret.clone())]));
    Figures::of(tokens.chain(unescaped).chain(blocks)).check("blocks and encodings", MISSED_ENCODINGS);
}
