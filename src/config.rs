//! All settings: flag, then environment, then config.toml, then default. The only reader of the environment.

use std::path::{Path, PathBuf};

use crate::model::{Problem, Result};

/// What the program was told, from wherever.
pub struct Config {
    /// The archive's folder.
    pub home: PathBuf,
    pub user_home: Option<PathBuf>,
    pub machine: String,
    pub colour: bool,
    file: toml::Table,
}

impl Config {
    pub fn load(home_flag: Option<PathBuf>) -> Result<Config> {
        let user_home = variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from);
        let file = read_file(config_path(user_home.as_deref()))?;
        let from_file = file.get("home").and_then(toml::Value::as_str).map(PathBuf::from);
        let home = home_flag
            .or_else(|| variable("ANNALS_HOME").map(PathBuf::from))
            .or(from_file)
            .or_else(|| default_home(user_home.as_deref()))
            .ok_or_else(|| {
                Problem::new("no place for the archive: HOME is not set")
                    .hint("name a folder with --home DIR")
            })?;
        let machine = variable("ANNALS_MACHINE").unwrap_or_else(machine_name);
        Ok(Config { home, user_home, machine, colour: variable("NO_COLOR").is_none(), file })
    }

    /// Where the server listens: environment, then `listen` in config.toml.
    pub fn listen(&self) -> Option<String> {
        variable("ANNALS_LISTEN").or_else(|| self.file.get("listen")?.as_str().map(str::to_owned))
    }

    /// Variables of annals' own, which are no other program's business.
    pub fn own_variables(&self) -> Vec<String> {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        names.filter(|name| name.starts_with("ANNALS_")).collect()
    }

    /// A source's setting by its environment name or its key in config.toml (`table.key`).
    pub fn setting(&self, name: &str, key: &str) -> Option<String> {
        variable(name).or_else(|| {
            let (table, key) = key.split_once('.')?;
            self.file.get(table)?.get(key)?.as_str().map(str::to_owned)
        })
    }
}

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

fn config_path(user_home: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = variable("ANNALS_CONFIG") {
        return Some(path.into());
    }
    let folder = match variable("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => user_home?.join("Library/Application Support"),
        None if cfg!(windows) => variable("APPDATA")?.into(),
        None => user_home?.join(".config"),
    };
    Some(folder.join("annals/config.toml"))
}

fn default_home(user_home: Option<&Path>) -> Option<PathBuf> {
    let folder = match variable("XDG_DATA_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => user_home?.join("Library/Application Support"),
        None if cfg!(windows) => variable("LOCALAPPDATA")?.into(),
        None => user_home?.join(".local/share"),
    };
    Some(folder.join("annals"))
}

fn read_file(path: Option<PathBuf>) -> Result<toml::Table> {
    let Some(path) = path else { return Ok(toml::Table::new()) };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(toml::Table::new()),
        Err(error) => return Err(Problem::new(format!("cannot read {}: {error}", path.display()))),
    };
    text.parse().map_err(|error| {
        Problem::new(format!("{}: {error}", path.display())).hint("mend the file, or move it away")
    })
}

fn machine_name() -> String {
    let named = std::fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned());
    named
        .filter(|name| !name.is_empty())
        .or_else(|| variable("HOSTNAME"))
        .or_else(|| variable("COMPUTERNAME"))
        .unwrap_or_else(|| "this machine".into())
}
