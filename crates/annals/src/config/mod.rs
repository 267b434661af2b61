//! All settings: flag, then environment, then config.toml, then default. The only reader of the environment.

mod file;
mod own;
mod value;

use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_core::{Error, Result, Time, ValueKind, Variable};

use file::FileEntry;
use own::*;
pub use value::SettingValue;

/// The clock of the whole program.
pub fn now() -> Time {
    Time::from_micros(jiff::Timestamp::now().as_microsecond().saturating_add(clock_shift()))
}

/// Test builds may live at another date: `ANNALS_TEST_CLOCK` is the number of microseconds that their clock is ahead.
#[cfg(any(debug_assertions, feature = "test-clock"))]
fn clock_shift() -> i64 {
    static SHIFT: std::sync::OnceLock<i64> = std::sync::OnceLock::new();
    *SHIFT.get_or_init(|| variable("ANNALS_TEST_CLOCK").and_then(|shift| shift.parse().ok()).unwrap_or(0))
}

#[cfg(not(any(debug_assertions, feature = "test-clock")))]
fn clock_shift() -> i64 {
    0
}

/// Names another config.toml.
const FILE_VARIABLE: &str = "ANNALS_CONFIG";

/// All settings, with their values and origins.
pub struct Config {
    /// The archive's folder.
    pub data_dir: PathBuf,
    pub user_home: Option<PathBuf>,
    pub machine: String,
    pub colour: Colour,
    /// How wide a terminal is said to be: `COLUMNS`.
    pub columns: Option<usize>,
    /// What long answers are read in on a terminal.
    pub pager: Option<PagerSettings>,
    /// The terminal can only print: `TERM=dumb`.
    pub is_dumb: bool,
    /// The token for `push` and `pull`: `ANNALS_PUSH_TOKEN`.
    pub push_token: Option<String>,
    /// What the log shows.
    pub log: Option<String>,
    settings: Vec<Setting>,
}

/// A setting as it is now.
#[derive(Debug, Clone)]
pub struct Setting {
    pub variable: &'static Variable,
    /// Nothing when it is not set; in a list of all settings then the default, if there is one.
    pub value: Option<SettingValue>,
    pub origin: SettingOrigin,
}

/// Where the value of a setting comes from, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingOrigin {
    Flag(&'static str),
    Environment,
    File { line: usize },
    Default,
}

/// When output has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// `NO_COLOR` is set.
    Never,
    /// On a terminal.
    Auto,
    /// `CLICOLOR_FORCE` is set.
    Always,
}

/// How to start a pager.
#[derive(Debug, Clone)]
pub struct PagerSettings {
    /// For a shell.
    pub command: String,
    /// The person has chosen options of `less`.
    pub has_options: bool,
}

/// How to start a browser.
pub struct BrowserSettings {
    pub program: Option<PathBuf>,
    pub arguments: Vec<String>,
    pub headless: bool,
}

impl Config {
    /// `sources` are the settings that sources declare.
    pub fn load(home_flag: Option<PathBuf>, sources: &[&'static Variable]) -> Result<Config> {
        let user_home = user_home();
        let declared: Vec<&'static Variable> = OWN.iter().chain(sources).copied().collect();
        let entries = read_file(&declared)?;
        let mut settings = Vec::new();
        for declared in declared {
            let entry = entries.iter().find(|entry| entry.key == declared.config_key);
            settings.push(resolve(declared, variable(declared.name), entry, user_home.as_deref())?);
        }
        let mut config = Config {
            data_dir: PathBuf::new(),
            user_home,
            machine: String::new(),
            colour: colour(),
            columns: variable("COLUMNS")
                .and_then(|columns| columns.parse().ok())
                .filter(|columns| *columns > 0),
            pager: None,
            is_dumb: variable("TERM").is_none_or(|term| term == "dumb"),
            push_token: variable("ANNALS_PUSH_TOKEN"),
            log: None,
            settings,
        };
        config.machine = config.text(MACHINE.name).map_or_else(machine_name, str::to_owned);
        config.pager = pager(config.text(PAGER.name));
        config.log = config.text(LOG.name).map(str::to_owned);
        if let Some(flag) = &home_flag {
            let home = config.settings.iter_mut().filter(|setting| setting.variable.name == HOME.name);
            for setting in home {
                setting.value = Some(path_value(flag));
                setting.origin = SettingOrigin::Flag("--home");
            }
        }
        let given = home_flag.or_else(|| config.text(HOME.name).map(PathBuf::from));
        config.data_dir = given.or_else(|| default_home(config.user_home.as_deref())).ok_or_else(|| {
            Error::new("no folder for the archive: HOME is not set").hint("name a folder with --home DIR")
        })?;
        Ok(config)
    }

    /// Every setting with its value, given or default.
    pub fn settings(&self) -> Vec<Setting> {
        let with_default = |setting: &Setting| {
            let value = setting.value.clone().or_else(|| match setting.variable.name {
                name if name == HOME.name => Some(path_value(&self.data_dir)),
                name if name == MACHINE.name => Some(SettingValue::Text(self.machine.clone())),
                name if name == PAGER.name => {
                    self.pager.as_ref().map(|pager| SettingValue::Text(pager.command.clone()))
                }
                name if name == BROWSER.name => installed_browser().as_deref().map(path_value),
                _ => default_value(setting.variable).map(|value| value.expand(self.user_home.as_deref())),
            });
            Setting { value, ..setting.clone() }
        };
        self.settings.iter().map(with_default).collect()
    }

    /// Whether the archive is where it is without any setting.
    pub fn is_default_home(&self) -> bool {
        default_home(self.user_home.as_deref()).as_ref() == Some(&self.data_dir)
    }

    /// Where the server listens.
    pub fn listen(&self) -> &str {
        self.text(LISTEN.name).unwrap_or(LISTEN.default)
    }

    /// Host names of the server, besides the loopback names.
    pub fn server_hosts(&self) -> &[String] {
        self.list(SERVER_HOSTS.name)
    }

    /// The files with the certificate chain and the private key of the server.
    pub fn tls(&self) -> (Option<&str>, Option<&str>) {
        (self.text(TLS_CERTIFICATE.name), self.text(TLS_KEY.name))
    }

    /// Reverse proxies in front of the server.
    pub fn trusted_proxies(&self) -> &[String] {
        self.list(TRUSTED_PROXIES.name)
    }

    /// The header in which they name the member.
    pub fn user_header(&self) -> Option<&str> {
        self.text(USER_HEADER.name)
    }

    /// What members of this hub send.
    pub fn hub_policy(&self) -> Option<&str> {
        self.text(HUB_POLICY.name)
    }

    /// The hub that new sessions are sent to in the background.
    pub fn push_url(&self) -> Option<&str> {
        self.text(PUSH_URL.name)
    }

    /// The files with the token for the hub and with its certificate authority.
    pub fn push_files(&self) -> (Option<&str>, Option<&str>) {
        (self.text(PUSH_TOKEN_FILE.name), self.text(PUSH_CA.name))
    }

    /// What is sent to the hub: sources, excluded sources, directories of projects, excluded ones.
    pub fn push_choice(&self) -> [&[String]; 4] {
        [PUSH_SOURCES.name, PUSH_EXCLUDED_SOURCES.name, PUSH_PROJECTS.name, PUSH_EXCLUDED_PROJECTS.name]
            .map(|name| self.list(name))
    }

    /// Whether `sync` also reads the repositories that sessions ran in.
    pub fn reads_projects(&self) -> bool {
        self.flag(PROJECTS.name)
    }

    /// The address that opens files of pages in an editor.
    pub fn editor(&self) -> &str {
        self.text(EDITOR.name).unwrap_or(EDITOR.default)
    }

    /// What a month may cost, as it was written.
    pub fn budget(&self) -> &str {
        self.text(BUDGET.name).unwrap_or_default()
    }

    /// How long sessions are kept.
    pub fn retention_rules(&self) -> &[String] {
        self.list(RETENTION_RULES.name)
    }

    /// Whether a sync applies these rules.
    pub fn retains_automatically(&self) -> bool {
        self.flag(RETENTION_AUTOMATIC.name)
    }

    /// The browser that live collection uses: the one that is named, or what is installed.
    pub fn browser(&self) -> BrowserSettings {
        BrowserSettings {
            program: self.text(BROWSER.name).map(PathBuf::from).or_else(installed_browser),
            arguments: self.list(BROWSER_ARGUMENTS.name).to_vec(),
            headless: self.flag(BROWSER_HEADLESS.name),
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

    /// What a setting is set to, by its environment variable; nothing when it is not set or no text.
    pub fn text(&self, variable: &str) -> Option<&str> {
        match self.setting(variable)?.value.as_ref()? {
            SettingValue::Text(text) => Some(text),
            SettingValue::List(_) | SettingValue::Boolean(_) => None,
        }
    }

    /// What a list is set to; empty when it is not set.
    pub fn list(&self, variable: &str) -> &[String] {
        match self.setting(variable).and_then(|setting| setting.value.as_ref()) {
            Some(SettingValue::List(items)) => items,
            Some(SettingValue::Text(_) | SettingValue::Boolean(_)) | None => &[],
        }
    }

    /// Whether a switch is on; its default when it is not set.
    pub fn flag(&self, variable: &str) -> bool {
        let value = self
            .setting(variable)
            .and_then(|setting| setting.value.clone().or_else(|| default_value(setting.variable)));
        value == Some(SettingValue::Boolean(true))
    }

    fn setting(&self, variable: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.variable.name == variable)
    }
}

/// The default that is declared; a list without one is empty.
fn default_value(declared: &Variable) -> Option<SettingValue> {
    let unset = declared.kind == ValueKind::Text && declared.default.is_empty();
    if unset { None } else { SettingValue::parse(declared.kind, declared.default) }
}

fn path_value(path: &Path) -> SettingValue {
    SettingValue::Text(path.to_string_lossy().into_owned())
}

/// Environment, then file.
fn resolve(
    declared: &'static Variable,
    environment: Option<String>,
    entry: Option<&FileEntry>,
    user_home: Option<&Path>,
) -> Result<Setting> {
    let (value, origin) = match (environment, entry) {
        (Some(text), _) => {
            let value = SettingValue::parse(declared.kind, &text).ok_or_else(|| {
                Error::new(format!("{} must be yes or no, not {text:?}", declared.name))
                    .hint(format!("unset it, or set {}=yes", declared.name))
            })?;
            (Some(value), SettingOrigin::Environment)
        }
        (None, Some(entry)) => (Some(entry.value.clone()), SettingOrigin::File { line: entry.line }),
        // Sources tell apart what is set and what is a default.
        (None, None) => (None, SettingOrigin::Default),
    };
    Ok(Setting { variable: declared, value: value.map(|value| value.expand(user_home)), origin })
}

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    let value = std::env::var(name).ok();
    value.filter(|value| !value.is_empty())
}

fn colour() -> Colour {
    match (variable("NO_COLOR"), variable("CLICOLOR_FORCE")) {
        (Some(_), _) => Colour::Never,
        (None, Some(forced)) if forced != "0" => Colour::Always,
        (None, _) => Colour::Auto,
    }
}

/// The setting, `PAGER`, or `less`; none if `ANNALS_PAGER` is empty, or it is set to nothing or to `cat`.
fn pager(setting: Option<&str>) -> Option<PagerSettings> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    let exact = |name: &str| std::env::var(name).ok();
    let named = exact(PAGER.name).or_else(|| setting.map(str::to_owned)).or_else(|| exact("PAGER"));
    let command =
        named.or_else(|| installed(&["less", "more"]).map(|path| path.to_string_lossy().into_owned()))?;
    let has_options = variable("LESS").is_some();
    Some(PagerSettings { command: command.trim().to_owned(), has_options })
        .filter(|pager| !pager.command.is_empty() && pager.command != "cat")
}

/// The first of these programs that is installed.
fn installed(names: &[&str]) -> Option<PathBuf> {
    let path = variable("PATH").unwrap_or_else(|| "/usr/bin:/usr/local/bin".into());
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    found.find(|program| program.is_file())
}

/// The first Chromium or Chrome that is installed.
fn installed_browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome.exe"];
    let bundled = [
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    ];
    installed(&names).or_else(|| bundled.map(PathBuf::from).into_iter().find(|program| program.is_file()))
}

/// Where config.toml is, or would be; nothing when there is no home to have it.
pub fn file_path() -> Option<PathBuf> {
    if let Some(path) = variable(FILE_VARIABLE) {
        return Some(path.into());
    }
    let folder = match variable("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => user_home()?.join("Library/Application Support"),
        None if cfg!(windows) => variable("APPDATA")?.into(),
        None => user_home()?.join(".config"),
    };
    Some(folder.join("annals/config.toml"))
}

/// Where the services of the user are: of launchd, or of systemd.
pub fn service_folder(launchd: bool) -> Option<PathBuf> {
    if launchd {
        return Some(user_home()?.join("Library/LaunchAgents"));
    }
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    Some(folder.or_else(|| Some(user_home()?.join(".config")))?.join("systemd/user"))
}

fn user_home() -> Option<PathBuf> {
    variable("HOME").or_else(|| variable("USERPROFILE")).map(PathBuf::from)
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

fn read_file(declared: &[&'static Variable]) -> Result<Vec<FileEntry>> {
    let Some(path) = file_path() else { return Ok(Vec::new()) };
    let named = variable(FILE_VARIABLE).is_some();
    match std::fs::read_to_string(&path) {
        Ok(text) => file::parse(&path, &text, declared),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => Ok(Vec::new()),
        Err(error) => {
            let error = Error::new(format!("cannot read {}: {error}", path.display()));
            Err(if named { error.hint(format!("{FILE_VARIABLE} names this file")) } else { error })
        }
    }
}

fn machine_name() -> String {
    let named = std::fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned());
    named
        .filter(|name| !name.is_empty())
        .or_else(|| variable("HOSTNAME"))
        .or_else(|| variable("COMPUTERNAME"))
        .unwrap_or_else(|| "this machine".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_wins_over_the_file() {
        let entry = FileEntry { key: LISTEN.config_key, value: SettingValue::Text("file:1".into()), line: 7 };
        let resolved = |environment: Option<&str>, entry: Option<&FileEntry>| {
            let setting = resolve(&LISTEN, environment.map(str::to_owned), entry, None).unwrap();
            (setting.value, setting.origin)
        };
        let text = |text: &str| Some(SettingValue::Text(text.to_owned()));
        assert_eq!(resolved(Some("env:1"), Some(&entry)), (text("env:1"), SettingOrigin::Environment));
        assert_eq!(resolved(None, Some(&entry)), (text("file:1"), SettingOrigin::File { line: 7 }));
        assert_eq!(resolved(None, None), (None, SettingOrigin::Default));
    }

    #[test]
    fn a_variable_with_a_wrong_value_is_an_error() {
        let error = resolve(&PROJECTS, Some("perhaps".into()), None, None).unwrap_err();
        assert_eq!(error.what, "ANNALS_PROJECTS must be yes or no, not \"perhaps\"");
    }

    #[test]
    fn defaults_are_of_their_kind() {
        for declared in OWN {
            let value = default_value(declared);
            assert_eq!(value.is_none(), declared.kind == ValueKind::Text && declared.default.is_empty());
        }
    }
}
