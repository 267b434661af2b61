//! All settings: flag, then environment, then config.toml, then default. The only reader of the environment.

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_core::{Error, Result, Time};

/// The clock of the whole program.
pub fn now() -> Time {
    Time::from_micros(jiff::Timestamp::now().as_microsecond().saturating_add(clock_shift()))
}

/// Shifts the clock of test builds: `ANNALS_TEST_CLOCK` is the number of microseconds it is ahead.
#[cfg(any(debug_assertions, feature = "test-clock"))]
fn clock_shift() -> i64 {
    static SHIFT: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *SHIFT.get_or_init(|| variable("ANNALS_TEST_CLOCK").and_then(|shift| shift.parse().ok()).unwrap_or(0))
}

#[cfg(not(any(debug_assertions, feature = "test-clock")))]
fn clock_shift() -> i64 {
    0
}

/// All settings, wherever they come from.
pub struct Config {
    /// The archive's folder.
    pub home: PathBuf,
    pub user_home: Option<PathBuf>,
    pub machine: String,
    pub colour: bool,
    file: toml::Table,
}

/// How to start a browser.
pub struct BrowserSettings {
    pub program: Option<PathBuf>,
    /// One a line.
    pub arguments: Vec<String>,
    pub headless: bool,
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
            .ok_or_else(|| Error::new("cannot locate the archive: HOME is not set").hint("use --home DIR"))?;
        let machine = variable("ANNALS_MACHINE").unwrap_or_else(machine_name);
        Ok(Config { home, user_home, machine, colour: variable("NO_COLOR").is_none(), file })
    }

    /// Where the server listens: environment, then `listen` in config.toml.
    pub fn listen(&self) -> Option<String> {
        variable("ANNALS_LISTEN").or_else(|| self.file.get("listen")?.as_str().map(str::to_owned))
    }

    /// The browser that live collection uses: environment, then `[browser]` in config.toml, then what is installed.
    pub fn browser(&self) -> BrowserSettings {
        let text = |name: &str, key: &str| self.setting(name, key);
        let named = text("ANNALS_BROWSER", "browser.program").map(PathBuf::from);
        let arguments = text("ANNALS_BROWSER_ARGUMENTS", "browser.arguments").unwrap_or_default();
        BrowserSettings {
            program: named.or_else(installed_browser),
            arguments: arguments.lines().map(str::to_owned).collect(),
            headless: text("ANNALS_BROWSER_HEADLESS", "browser.headless").is_some_and(|value| value != "0"),
        }
    }

    /// How long a second of waiting between requests takes; tests make it shorter.
    pub fn second(&self) -> Duration {
        let shorter = variable("ANNALS_SECOND_MS").and_then(|text| text.parse().ok());
        Duration::from_millis(shorter.unwrap_or(1_000).clamp(1, 1_000))
    }

    /// The variables of annals itself, which are hidden from other programs.
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

/// The first Chromium or Chrome that is installed.
fn installed_browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome.exe"];
    let path = variable("PATH").unwrap_or_else(|| "/usr/bin:/usr/local/bin".into());
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let bundled = [
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    ];
    found.chain(bundled.map(PathBuf::from)).find(|program| program.is_file())
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
        Err(error) => return Err(Error::new(format!("cannot read {}: {error}", path.display()))),
    };
    text.parse().map_err(|error| {
        Error::new(format!("cannot parse {}: {error}", path.display())).hint("fix the file, or move it away")
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
