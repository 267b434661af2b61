//! Settings of sources, by the names that their manifests declare.

use std::path::PathBuf;

use super::now;
use crate::collect::Environment;
use crate::config::Config;
use annals_core::Variable;
use annals_sources::{Settings, registry};

/// More threads than this wait for the one that writes.
const MOST_THREADS: usize = 4;

/// The settings of all sources.
pub fn declared() -> Vec<&'static Variable> {
    registry().iter().flat_map(|source| source.manifest().variables).collect()
}

pub struct Declared<'c>(pub &'c Config);

impl Declared<'_> {
    /// The environment that collectors run in.
    pub fn environment(&self) -> Environment<'_> {
        let Declared(config) = *self;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        Environment {
            data_dir: &config.data_dir,
            machine: config.machine.clone(),
            settings: self,
            threads,
            now,
        }
    }
}

impl Settings for Declared<'_> {
    fn get(&self, variable: &str) -> Option<String> {
        self.0.text(variable).map(str::to_owned)
    }

    fn list(&self, variable: &str) -> Vec<String> {
        self.0.list(variable).to_vec()
    }

    fn flag(&self, variable: &str) -> bool {
        self.0.flag(variable)
    }

    fn user_home(&self) -> Option<PathBuf> {
        self.0.user_home.clone()
    }
}
