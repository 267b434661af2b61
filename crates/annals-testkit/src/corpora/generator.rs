//! Random numbers, words and sizes for all generated homes: integer arithmetic with one small generator, so that the
//! same plan gives the same bytes everywhere.

use std::fmt::Write as _;

/// The home to write: about this many bytes in this many transcripts, the first third of them in an old format.
pub struct Plan {
    pub seed: u64,
    pub bytes: u64,
    pub files: usize,
}

/// The transcripts written; small files next to them are not counted.
pub struct Written {
    pub files: usize,
    pub bytes: u64,
    pub lines: u64,
}

pub const FIRST_DAY: u64 = 1_772_323_200_000; // 2026-03-01, in milliseconds
pub const DAY: u64 = 86_400_000;
pub const DAYS: u64 = 240;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub const PROJECTS: [&str; 8] =
    ["orchard", "ledger", "papier", "planner", "relay", "inkwell", "quarry", "atlas"];
const WORDS: &str = "file test value state request index buffer reader writer cache page queue worker thread \
    table column result change check build parse token stream socket client server session record update \
    delete insert cursor window offset length count limit budget retry timeout error failure commit review \
    format layout section module package version release archive backup restore import export schema field \
    invoice customer payment order refund balance account harvest weather station sensor reading forecast";

// Texture, one template per line, escaped for JSON: `%w` is a word, `%n` a name, `%d` a number, `%h` a hexadecimal
// one. After `$` they are filled in every time the line is printed, after `%` once per project.
pub const PROSE: &str = r#" The %w of the %w is still %w, so `%n` has to wait.
 Please check \"%w %w\" before you touch the %w %w again.
\n\nI will rename `%n` and keep the %w that %w %d expects.
\n- It looks like %n fails after %d %w: the %w was never a %w.
 Größere Änderung: naïve %w, señal añadida, ångström → %w %d … привет, %w!
\n\t設定を確認してください。テスト %n が失敗。缓存 %w 已失效。파일 %w 🚀 ✅ 👩‍💻 “%w”
 We split the %w by %w, merge every %w and then drop what the %w does not use."#;
pub const OUTPUT: &str = r#"    let %n = self.%w.%n()?;\n        if %n.%w() > %d {\n
            return Err(format!(\"%w in %n: {}\\n\", %n));\n        }\n    }\n\n
[$d.$d] INFO %n::%w: %w %w finished request=$h %n=$d took=$dms\n
\u001b[33mWARN\u001b[0m [worker-$d] %n: retrying %w after $d ms: \"%w timed out\"\n
    /// Returns the %w of every %w that the %w has, or %d.\n    pub fn %n(&self) -> %w {\n
test %n::%w_$d ... ok\n
\tfor %w in range(len(%n)):\n\t\tprint(f\"{%n} %w\\t{%d}\")\n
-rw-r--r-- 1 pat pat $d Mar  1 %w/%n.rs\n
    def %n(self, %w=None, *, %n: int = %d):\n        # %w %w: C:\\\\%w\\\\%n\n
{\"level\":\"debug\",\"%w\":\"%n\",\"id\":\"$h\",\"%w\":$d}\n
src/%w/%n.rs:$d:    let %n = %w(\"%w\");\n"#;

/// Appends formatted text to a `String`, which cannot fail.
#[macro_export]
macro_rules! put {
    ($out:expr, $($part:tt)*) => {{ let _ = write!($out, $($part)*); }};
}

pub use put;

/// Writes the lines of scripts with the named values.
macro_rules! play {
    ($session:expr, $scripts:expr $(, $name:ident: $value:expr)*) => {{
        $(let $name = &$value;)*
        $session.play(&$scripts.concat(), &[$((stringify!($name), $name as &dyn Display)),*]);
    }};
}

pub(crate) use play;

/// Splitmix64: tiny, fast, and the same everywhere.
#[derive(Default)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.next() >> 32) * limit) >> 32
    }

    /// Early items more often than late ones, like the frequency of words.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let length = from.len() as u64;
        &from[self.below(length).min(self.below(length)) as usize]
    }

    /// Each doubling of `low` is equally likely: a heavy tail without floating point.
    pub fn sized(&mut self, low: u64, doublings: u64) -> u64 {
        let base = low << self.below(doublings);
        base + self.below(base)
    }

    pub fn id(&mut self) -> String {
        format!("0{:016x}{:016x}{:08x}", self.next(), self.next(), self.next() >> 32)
    }

    pub fn uuid(&mut self, time: u64) -> String {
        let (first, second) = (self.next(), self.next() >> 16);
        let (middle, variant) = (first & 0xfff, 0x8000 | ((first >> 12) & 0x3fff));
        format!("{:08x}-{:04x}-7{middle:03x}-{variant:04x}-{second:012x}", time >> 16, time & 0xffff)
    }

    pub fn uuid4(&mut self) -> String {
        let (first, second) = (self.next(), self.next());
        let variant = 0x8000 | (second >> 48 & 0x3fff);
        let parts = (first >> 32, first >> 16 & 0xffff, first & 0xfff, second & 0xffff_ffff_ffff);
        format!("{:08x}-{:04x}-4{:03x}-{variant:04x}-{:012x}", parts.0, parts.1, parts.2, parts.3)
    }

    pub fn hash(&mut self) -> String {
        format!("{:016x}{:016x}{:016x}{:016x}", self.next(), self.next(), self.next(), self.next())
    }

    pub fn letters(&mut self, length: u64) -> String {
        (0..length).map(|_| BASE64[self.below(62) as usize] as char).collect()
    }

    pub fn base64(&mut self, length: u64) -> String {
        (0..length).map(|_| BASE64[self.below(64) as usize] as char).collect()
    }
}

/// A working directory and the lines that its commands print: sessions repeat them as real ones do.
#[derive(Default)]
pub struct Project {
    pub cwd: String,
    words: Vec<&'static str>,
    printed: Vec<String>,
}

impl Project {
    pub fn new(seed: u64, cwd: &str) -> Self {
        let (random, words) = (&mut Random(seed), WORDS.split_whitespace().collect());
        let mut made = Self { cwd: cwd.to_owned(), words, printed: Vec::new() };
        made.printed = (0..900).map(|_| made.text(random, OUTPUT, 1)).collect();
        made
    }

    fn fill(&self, random: &mut Random, out: &mut String, template: &str, mark: char) {
        for (place, piece) in template.split(mark).enumerate() {
            let (letter, rest) = piece.split_at(usize::from(place > 0));
            match letter {
                "w" => *out += *random.pick(&self.words),
                "n" => put!(out, "{}_{}", random.pick(&self.words), random.pick(&self.words)),
                "d" => put!(out, "{}", random.below(2_000)),
                "h" => put!(out, "{:08x}", random.next() >> 32),
                _ => {}
            }
            *out += rest;
        }
    }

    /// At least `length` bytes from any of the templates.
    pub fn text(&self, random: &mut Random, templates: &str, length: u64) -> String {
        let (templates, mut out): (Vec<_>, _) = (templates.lines().collect(), String::new());
        while (out.len() as u64) < length {
            let template = *random.pick(&templates);
            self.fill(random, &mut out, template, '%');
        }
        out
    }

    /// At least `length` bytes of command output, in runs of adjacent lines.
    pub fn output(&self, random: &mut Random, length: u64) -> String {
        let (mut out, mut at) = (String::with_capacity(length as usize + 400), random.below(900) as usize);
        while (out.len() as u64) < length {
            self.fill(random, &mut out, &self.printed[at % 900], '$');
            at = if random.below(20) == 0 { random.below(900) as usize } else { at + 1 };
        }
        out
    }
}

/// `2026-03-01T09:30:00.000`; correct until the leap day of 2028.
pub fn timestamp(milliseconds: u64) -> String {
    let (mut day, mut month, rest) = ((milliseconds - FIRST_DAY) / DAY, 2, milliseconds % DAY);
    let length = |month: usize| [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month % 12];
    while day >= length(month) {
        day -= length(month);
        month += 1;
    }
    let (year, month, day) = (2026 + month / 12, month % 12 + 1, day + 1);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}", rest % 1_000)
}

/// Heavy-tailed sizes: most from 50 to 300 KB, some of megabytes, and one in six hundred from 20 to 50 MB.
pub fn sizes(plan: &Plan) -> Vec<u64> {
    let (random, files) = (&mut Random(plan.seed), plan.files as u64);
    let mut weight = |index: u64| match random.below(100) {
        _ if index % 600 == files.min(600) / 2 => random.sized(30_000_000, 1).min(plan.bytes / 8),
        0..=79 => random.sized(50_000, 3),
        _ => random.sized(300_000, 4),
    };
    let weights: Vec<u64> = (0..files).map(&mut weight).collect();
    let sum = u128::from(weights.iter().sum::<u64>().max(1));
    weights.iter().map(|weight| (u128::from(*weight) * u128::from(plan.bytes) / sum) as u64).collect()
}
