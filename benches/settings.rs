//! The switches of the bench.

use super::{GIGABYTE, Outcome, TABLES};

/// What a run measures.
pub struct Settings {
    pub smoke: bool,
    pub only: Option<String>,
    pub bytes: u64,
    pub files: usize,
    /// Other sizes for growth than those of the run.
    sizes: Option<Vec<u64>>,
    /// Where the figures of growth are written.
    pub document: Option<String>,
}

impl Settings {
    /// The sizes at which growth is measured, in bytes.
    pub fn sizes(&self) -> Vec<u64> {
        self.sizes.clone().unwrap_or_else(|| vec![self.bytes, self.bytes * 3])
    }

    pub fn read(arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| value != "0" && !value.is_empty());
        // `cargo test --all-targets` also runs benches, unoptimised: figures of such a build mean nothing.
        let mut smoke = set("ANNALS_BENCH_SMOKE") || cfg!(debug_assertions);
        let (mut bytes, mut only, mut arguments) = (None, None, arguments);
        let (mut sizes, mut document) = (None, None);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--smoke" => smoke = true,
                "--bytes" => {
                    let number = arguments.next().and_then(|text| text.replace('_', "").parse::<u64>().ok());
                    bytes = Some(number.ok_or("--bytes needs a number")?);
                }
                "--only" => {
                    let is_known = |name: &String| TABLES.iter().any(|(table, _)| table == name);
                    only = Some(arguments.next().filter(is_known).ok_or(
                        "--only needs codex, http, pages, claude, opencode, gemini, forget, lineage, chatgpt, search or growth",
                    )?);
                }
                "--sizes" => {
                    let gigabytes = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0);
                    let list = arguments.next().unwrap_or_default();
                    let list: Option<Vec<f64>> = list.split(',').map(gigabytes).collect();
                    let list = list.ok_or("--sizes needs numbers of gigabytes, as in 1,3,12")?;
                    sizes = Some(list.into_iter().map(|number| (number * GIGABYTE) as u64).collect());
                }
                "--document" => document = Some(arguments.next().ok_or("--document needs a file")?),
                "--bench" => {}
                other => {
                    let is_known = "--smoke, --bytes N, --only NAME, --sizes LIST and --document FILE";
                    return Err(format!("unknown argument {other}; known are {is_known}"));
                }
            }
        }
        let (bytes, files) = match bytes {
            None if smoke => (20_000_000, 60),
            None => (1_000_000_000, 2_900),
            Some(bytes) => (bytes, usize::try_from(bytes / 345_000).unwrap_or(usize::MAX).max(8)),
        };
        Ok(Self { smoke, only, bytes, files, sizes, document })
    }
}
