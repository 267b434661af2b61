//! Settings of sources, by the names that their manifests declare.

use std::path::PathBuf;

use super::now;
use crate::collect::Environment;
use crate::config::Config;
use annals_sources::{Settings, registry};

pub struct Declared<'c>(pub &'c Config);

impl Declared<'_> {
    /// The environment that collectors run in.
    pub fn environment(&self, threads: usize) -> Environment<'_> {
        let Declared(config) = *self;
        Environment { home: &config.home, machine: config.machine.clone(), settings: self, threads, now }
    }
}

impl Settings for Declared<'_> {
    fn get(&self, variable: &str) -> Option<String> {
        let declared = registry().iter().flat_map(|source| source.manifest().variables);
        let declared = declared.into_iter().find(|declared| declared.name == variable)?;
        let value = self.0.setting(declared.name, declared.config_key)?;
        match (value.strip_prefix("~/"), &self.0.user_home) {
            (Some(rest), Some(home)) => Some(home.join(rest).to_string_lossy().into_owned()),
            _ => Some(value),
        }
    }

    fn user_home(&self) -> Option<PathBuf> {
        self.0.user_home.clone()
    }
}
