//! Runs every check for some seconds on stable: `smoke [SECONDS] [NAME]...`. Inputs are fixtures, cut, joined and damaged.
//!
//! A check that panics leaves its input in `fuzz/artifacts/NAME/` and fails the run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use annals_fuzz::CHECKS;

const LONGEST: usize = 1 << 16;
const PUNCTUATION: &[u8] = b"{}[]\",:\\\n\r\x1e\0 -";

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(60, |text| text.parse().expect("a number of seconds"));
    let chosen: Vec<String> = arguments.collect();
    let seeds = seeds();
    let mut failed = false;
    for (name, check) in CHECKS {
        if !chosen.is_empty() && !chosen.iter().any(|choice| choice == name) {
            continue;
        }
        let mut random = Random(0x5eed ^ name.len() as u64);
        let (started, mut runs, mut failures) = (Instant::now(), 0u64, 0);
        while started.elapsed() < Duration::from_secs(seconds) && failures < 3 {
            let input = random.input(&seeds);
            runs += 1;
            if std::panic::catch_unwind(|| check(&input)).is_err() {
                failures += 1;
                println!("{name}: panicked, input in {}", keep(name, &input).display());
            }
        }
        println!("{name}: {runs} inputs, {failures} panics");
        failed |= failures > 0;
    }
    std::process::exit(i32::from(failed));
}

/// Small files of the fixtures, and a few forms that none of them has.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = [
        "kind:call \"two words\" -not since:7d (a OR b) file:*.rs",
        r#"{"type":"RECORD","stream":"notes","key":"1","data":{"a":[1,2.5e3,null,"\ud83d\ude80"]}}"#,
        r#"{"data":{"items":[{"a":1},{"b":[true,{}]}]}} [1,2] {"a"}"#,
        "AKIAIOSFODNN7EXAMPLE password=hunter2hunter2 Authorization: Bearer abcdefghijklmnop",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    seeds.extend(seeds.clone().iter().map(|seed| zstd::encode_all(seed.as_slice(), 1).expect("memory")));
    // An empty zip, and one whose only member is stored.
    seeds.push(b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec());
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/annals-sources/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "fixtures") {
                seeds.extend(std::fs::read(&path).ok().filter(|bytes| bytes.len() <= LONGEST));
            }
        }
    }
    seeds
}

fn keep(name: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(name);
    std::fs::create_dir_all(&folder).expect("a folder for inputs");
    let number = std::fs::read_dir(&folder).expect("the folder").count();
    let path = folder.join(format!("smoke-{number}"));
    std::fs::write(&path, input).expect("the input is written");
    path
}

/// Splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        if limit == 0 { 0 } else { (self.next() % limit as u64) as usize }
    }

    fn part<'s>(&mut self, of: &'s [u8]) -> &'s [u8] {
        let start = self.below(of.len());
        let length = self.below((of.len() - start).min(4_000) + 1);
        &of[start..start + length]
    }

    /// Noise, or parts of seeds with some bytes changed, doubled, dropped or put in.
    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if self.below(10) == 0 {
            return (0..self.below(300)).map(|_| self.next() as u8).collect();
        }
        let seed = self.below(seeds.len());
        let mut input =
            if self.below(3) == 0 { seeds[seed].clone() } else { self.part(&seeds[seed]).to_vec() };
        for _ in 0..self.below(8) {
            let at = self.below(input.len() + 1);
            match self.below(5) {
                0 => input.truncate(at),
                1 => input.insert(at, PUNCTUATION[self.below(PUNCTUATION.len())]),
                2 if at < input.len() => input[at] = self.next() as u8,
                3 if at < input.len() => drop(input.remove(at)),
                _ => {
                    let seed = self.below(seeds.len());
                    let part = self.part(&seeds[seed]).to_vec();
                    input.splice(at..at, part);
                }
            }
        }
        input.truncate(LONGEST);
        input
    }
}
