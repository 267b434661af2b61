//! `annals config`: every setting, its value and where that comes from; `config path` names the file.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::ui::output::Output;
use crate::cli::ui::table::Column;
use crate::cli::{Context, Outcome};
use crate::config::{Setting, SettingOrigin, SettingValue, file_path};
use annals_core::{Error, Result};

#[derive(Args)]
pub struct ConfigArguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Print the path of config.toml, whether it exists or not
    Path,
}

impl ConfigArguments {
    /// Handled before settings are loaded, so that a broken file can be found and fixed.
    pub fn is_path(&self) -> bool {
        matches!(self.action, Some(Action::Path))
    }
}

pub fn run(context: &mut Context, options: &ConfigArguments) -> Result<Outcome> {
    if options.is_path() {
        return print_path(&mut context.output, context.json);
    }
    let settings = context.config.settings();
    let file = file_path().map(|path| path.display().to_string());
    if context.json {
        let settings: Vec<Value> = settings.iter().map(setting_json).collect();
        context.output.json(&json!({"settings": settings, "file": file}))?;
        return Ok(Outcome::Done);
    }
    let file = file.unwrap_or_default();
    let rows: Vec<Vec<String>> = settings.iter().map(|setting| row(setting, &file)).collect();
    let columns =
        [Column::text("setting"), Column::text("value").cut_end(16), Column::text("from").cut_front(12)];
    context.output.table("", &columns, &rows)?;
    Ok(Outcome::Done)
}

pub fn print_path(output: &mut Output, json: bool) -> Result<Outcome> {
    let path = file_path().ok_or_else(|| {
        Error::new("no folder for config.toml: HOME is not set").hint("name the file with ANNALS_CONFIG=FILE")
    })?;
    if json {
        output.json(&json!({"file": path.display().to_string()}))?;
    } else {
        output.line(path.display().to_string())?;
    }
    Ok(Outcome::Done)
}

fn row(setting: &Setting, file: &str) -> Vec<String> {
    let value = match &setting.value {
        Some(SettingValue::Text(text)) => text.clone(),
        Some(SettingValue::List(items)) => items.join(", "),
        Some(SettingValue::Boolean(flag)) => flag.to_string(),
        None => String::new(),
    };
    let origin = match setting.origin {
        SettingOrigin::Flag(flag) => flag.to_owned(),
        SettingOrigin::Environment => setting.variable.name.to_owned(),
        SettingOrigin::File { line } => format!("{file}:{line}"),
        SettingOrigin::Default => "default".to_owned(),
    };
    let value = if value.is_empty() { "-".to_owned() } else { value.replace('\n', " ") };
    vec![setting.variable.config_key.to_owned(), value, origin]
}

fn setting_json(setting: &Setting) -> Value {
    let (origin, line) = match setting.origin {
        SettingOrigin::Flag(_) => ("flag", None),
        SettingOrigin::Environment => ("environment", None),
        SettingOrigin::File { line } => ("file", Some(line)),
        SettingOrigin::Default => ("default", None),
    };
    json!({
        "key": setting.variable.config_key,
        "value": setting.value,
        "origin": origin,
        "line": line,
        "variable": setting.variable.name,
        "description": setting.variable.what,
    })
}
