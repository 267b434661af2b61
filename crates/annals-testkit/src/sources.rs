//! What tests know about the sources, all from the registry: adding a source needs no change in tests.

use std::path::{Path, PathBuf};

use annals_sources::{Settings, Source, by_name, registry};

/// Sources whose client has a home directory that `sync` reads.
pub fn with_home() -> Vec<&'static str> {
    names(|source| !source.manifest().default_homes.is_empty())
}

/// Sources that read files which people import.
pub fn with_exports() -> Vec<&'static str> {
    names(|source| source.import().is_some())
}

/// Sources with fixtures of either kind.
pub fn all() -> Vec<&'static str> {
    let (home, mut exports) = (with_home(), with_exports());
    exports.retain(|source| !home.contains(source));
    [home, exports].concat()
}

/// The streams that a source declares.
pub fn streams_of(source: &str) -> Vec<&'static str> {
    let manifest = by_name(source).expect("a registered source").manifest();
    manifest.streams.iter().map(|stream| stream.name).collect()
}

/// Sources whose sessions can be converted to tapes, each with the name of its native format.
pub fn with_tape() -> Vec<(&'static str, &'static str)> {
    let formats = registry().iter().filter_map(|source| Some((source, source.recorder()?.form().format)));
    formats.map(|(source, format)| (source.manifest().source, format)).collect()
}

/// The default home of a source's client.
pub fn home_of(source: &str, user: &Path) -> PathBuf {
    let homes = by_name(source).expect("a registered source").homes(&Untouched(user.to_path_buf()));
    let home = homes.into_iter().next();
    home.unwrap_or_else(|| panic!("{source} has no home")).root
}

fn names(predicate: impl Fn(&dyn Source) -> bool) -> Vec<&'static str> {
    let matching = registry().iter().filter(|source| predicate(**source));
    matching.map(|source| source.manifest().source).collect()
}

/// The settings of a user who changed none.
pub struct Untouched(pub PathBuf);

impl Settings for Untouched {
    fn get(&self, _variable: &str) -> Option<String> {
        None
    }

    fn list(&self, _variable: &str) -> Vec<String> {
        Vec::new()
    }

    fn flag(&self, _variable: &str) -> bool {
        false
    }

    fn user_home(&self) -> Option<PathBuf> {
        Some(self.0.clone())
    }
}
