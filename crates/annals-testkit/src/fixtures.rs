//! The fixture directories of all sources: each is a test case.

use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use crate::files::{copy_folder, files_below};
use crate::{Bench, ROOT, sources};

/// The directory of one case of a source.
pub fn case(source: &str, name: &str) -> PathBuf {
    folder_of(source).join(name)
}

/// Cases with a home, each with its source.
pub fn with_home() -> Vec<(&'static str, PathBuf)> {
    cases(&sources::with_home(), "home")
}

/// Cases with exports or traces: directories below `exports`, imported one after another.
pub fn with_exports() -> Vec<(&'static str, PathBuf)> {
    cases(&sources::with_exports(), "exports")
}

/// A bench that synced the home of a case, with a fixed time on all files.
pub fn synced(source: &str, case: &Path) -> Bench {
    let bench = Bench::with_home(source, &case.join("home"));
    // If a client's lines have no time, that of the file is used.
    set_times(&bench.user(), 1_772_450_000);
    bench.sync();
    bench
}

/// A bench that imported all exports of a case.
pub fn imported(case: &Path) -> Bench {
    let bench = Bench::new();
    let mut exports: Vec<PathBuf> =
        std::fs::read_dir(case.join("exports")).unwrap().map(|entry| entry.unwrap().path()).collect();
    exports.sort();
    for (number, export) in exports.iter().enumerate() {
        // The account of a file contains its path and modification time.
        let folder = bench.folder.path().join(format!("export-{number}"));
        copy_folder(export, &folder);
        set_times(&folder, 1_762_000_000 + number as u64);
        bench.import(&[&folder]);
    }
    bench
}

fn folder_of(source: &str) -> PathBuf {
    Path::new(ROOT).join("crates/annals-sources/src").join(source).join("fixtures")
}

fn cases(sources: &[&'static str], kind: &str) -> Vec<(&'static str, PathBuf)> {
    let mut cases = Vec::new();
    for source in sources {
        let folder = folder_of(source);
        let entries =
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let found = entries.map(|case| case.unwrap().path()).filter(|case| case.join(kind).is_dir());
        cases.extend(found.map(|case| (*source, case)));
        assert!(cases.iter().any(|(of, _)| of == source), "{source} has no fixture with `{kind}`");
    }
    cases.sort();
    cases
}

fn set_times(folder: &Path, seconds: u64) {
    for file in files_below(folder) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        file.set_times(std::fs::FileTimes::new().set_modified(time)).unwrap();
    }
}
