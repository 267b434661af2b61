//! Reads config.toml: every key must be declared and hold a value of its kind. Errors name line and column.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::SettingValue;
use annals_core::{Error, Result, ValueKind, Variable, nearest};

/// A setting that the file has, and the line of its key.
#[derive(Debug, PartialEq)]
pub struct FileEntry {
    pub key: &'static str,
    pub value: SettingValue,
    pub line: usize,
}

pub fn parse(path: &Path, text: &str, declared: &[&'static Variable]) -> Result<Vec<FileEntry>> {
    let file = File { path, text, declared };
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        file.error(offset, &error.message().replace('\n', "; "))
    })?;
    let mut entries = Vec::new();
    file.collect("", table.get_ref(), &mut entries)?;
    Ok(entries)
}

struct File<'f> {
    path: &'f Path,
    text: &'f str,
    declared: &'f [&'static Variable],
}

impl File<'_> {
    /// The settings in a table of the file; `table` is its name, empty at the top level.
    fn collect(&self, table: &str, content: &DeTable<'_>, entries: &mut Vec<FileEntry>) -> Result<()> {
        let mut pairs: Vec<_> = content.iter().collect();
        pairs.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in pairs {
            let offset = name.span().start;
            let key = if table.is_empty() { name.to_string() } else { format!("{table}.{name}") };
            if let Some(variable) = self.declared.iter().find(|variable| variable.config_key == key) {
                let value = self.value(variable, value)?;
                entries.push(FileEntry { key: variable.config_key, value, line: self.position(offset).0 });
            } else if table.is_empty() && self.is_table(&key) {
                let DeValue::Table(content) = value.get_ref() else {
                    let found = described(value.get_ref());
                    let what = format!("\"{key}\" must be a table, not {found}");
                    return Err(self
                        .error(value.span().start, &what)
                        .hint(format!("write [{key}] on its own line")));
                };
                self.collect(&key, content, entries)?;
            } else {
                return Err(self.unknown(table, name, value.get_ref().is_table()));
            }
        }
        Ok(())
    }

    fn value(&self, variable: &Variable, value: &Spanned<DeValue<'_>>) -> Result<SettingValue> {
        let key = variable.config_key;
        let wrong = |value: &Spanned<DeValue<'_>>, found: &str| {
            let expected = expected(variable.kind);
            let example = example(variable);
            self.error(value.span().start, &format!("\"{key}\" must be {expected}, not {found}"))
                .hint(format!("for example: {example}"))
        };
        match (value.get_ref(), variable.kind) {
            (DeValue::String(text), ValueKind::Text) if text.is_empty() => {
                Err(wrong(value, "an empty string"))
            }
            (DeValue::String(text), kind) => {
                SettingValue::parse(kind, text).ok_or_else(|| wrong(value, &format!("{text:?}")))
            }
            (DeValue::Boolean(flag), ValueKind::Boolean) => Ok(SettingValue::Boolean(*flag)),
            (DeValue::Array(items), ValueKind::List | ValueKind::Lines) => {
                let text = |item: &Spanned<DeValue<'_>>| match item.get_ref().as_str() {
                    Some(text) => Ok(text.to_owned()),
                    None => Err(wrong(item, &format!("an array with {}", described(item.get_ref())))),
                };
                items.iter().map(text).collect::<Result<_>>().map(SettingValue::List)
            }
            (other, _) => Err(wrong(value, described(other))),
        }
    }

    fn unknown(&self, table: &str, name: &Spanned<std::borrow::Cow<'_, str>>, is_table: bool) -> Error {
        let place = if table.is_empty() { String::new() } else { format!(" in [{table}]") };
        let what = match is_table {
            true => format!("unknown table [{name}]{place}"),
            false => format!("unknown key \"{name}\"{place}"),
        };
        let names = self.valid_names(table);
        let elsewhere = || {
            let keys = self.declared.iter().map(|variable| variable.config_key);
            let (table, key) =
                keys.filter_map(|key| key.split_once('.')).find(|(_, key)| key == name.get_ref())?;
            Some(format!("\"{key}\" in [{table}]"))
        };
        let meant = match nearest(name.get_ref(), &names) {
            Some(name) if table.is_empty() && self.is_table(name) => Some(format!("[{name}]")),
            Some(name) => Some(format!("\"{name}\"")),
            None => elsewhere(),
        };
        let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        let (tables, keys): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| table.is_empty() && self.is_table(name));
        let tables = tables.iter().map(|table| format!("[{table}]"));
        let all: Vec<String> = keys.into_iter().map(str::to_owned).chain(tables).collect();
        self.error(name.span().start, &what).hint(format!("{meant}valid keys{place}: {}", all.join(", ")))
    }

    /// Keys of a table; at the top level also the tables.
    fn valid_names(&self, table: &str) -> Vec<&'static str> {
        let mut names = Vec::new();
        for variable in self.declared {
            let (of, key) = variable.config_key.split_once('.').unwrap_or(("", variable.config_key));
            let name = if table.is_empty() && !of.is_empty() { of } else { key };
            if (table.is_empty() || of == table) && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn is_table(&self, name: &str) -> bool {
        self.declared
            .iter()
            .any(|variable| variable.config_key.split_once('.').is_some_and(|(table, _)| table == name))
    }

    fn error(&self, offset: usize, what: &str) -> Error {
        let (line, column) = self.position(offset);
        Error::new(format!("{}:{line}:{column}: {what}", self.path.display()))
    }

    /// Line and column of a byte, both from one; columns count characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

fn expected(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "a string",
        ValueKind::List | ValueKind::Lines => "a string or an array of strings",
        ValueKind::Boolean => "true or false",
    }
}

fn example(variable: &Variable) -> String {
    let key = variable.config_key.rsplit('.').next().unwrap_or(variable.config_key);
    match variable.kind {
        ValueKind::Text if variable.default.is_empty() => format!("{key} = \"…\""),
        ValueKind::Text => format!("{key} = {:?}", variable.default),
        ValueKind::List | ValueKind::Lines => format!("{key} = [\"…\", \"…\"]"),
        ValueKind::Boolean => format!("{key} = true"),
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [&Variable; 4] = [
        &declare("home", ValueKind::Text),
        &declare("shop.open", ValueKind::Boolean),
        &declare("shop.shelves", ValueKind::List),
        &declare("shop.signs", ValueKind::Lines),
    ];

    const fn declare(config_key: &'static str, kind: ValueKind) -> Variable {
        Variable { name: "", config_key, what: "", default: "", kind }
    }

    fn read(text: &str) -> Result<Vec<FileEntry>> {
        parse(Path::new("c.toml"), text, &DECLARED)
    }

    fn values(text: &str) -> Vec<(&'static str, SettingValue, usize)> {
        read(text).unwrap().into_iter().map(|entry| (entry.key, entry.value, entry.line)).collect()
    }

    #[test]
    fn values_have_the_kind_and_line_of_their_key() {
        let list = |items: &[&str]| SettingValue::List(items.iter().map(|item| (*item).to_owned()).collect());
        let text = "# c\nhome = '/a, b'\r\n\n[shop]\nshelves = [\n  'a,b',\n  'c',\n]\nopen = true\nsigns = \"x\\ny\"";
        assert_eq!(
            values(text),
            [
                ("home", SettingValue::Text("/a, b".into()), 2),
                ("shop.shelves", list(&["a,b", "c"]), 5),
                ("shop.open", SettingValue::Boolean(true), 9),
                ("shop.signs", list(&["x", "y"]), 10),
            ]
        );
        assert_eq!(values("shop.shelves = 'a, b,'"), [("shop.shelves", list(&["a", "b"]), 1)]);
        assert_eq!(values("shop = { open = 'no' }"), [("shop.open", SettingValue::Boolean(false), 1)]);
        assert_eq!(values(""), []);
    }

    #[test]
    fn errors_name_the_place_and_the_nearest_key() {
        let table = [
            (
                "\n\n  hoome = 1",
                "3:3: unknown key \"hoome\"",
                "did you mean \"home\"? valid keys: home, [shop]",
            ),
            ("[shopp]", "1:2: unknown table [shopp]", "did you mean [shop]? "),
            ("open = true", "1:1: unknown key \"open\"", "did you mean \"open\" in [shop]? "),
            ("[shop]\nshelfs = 1", "2:1: unknown key \"shelfs\" in [shop]", "did you mean \"shelves\"? "),
            (
                "shop.zzz = 1",
                "1:6: unknown key \"zzz\" in [shop]",
                "valid keys in [shop]: open, shelves, signs",
            ),
            ("é = 1", "1:1: ", ""),
            ("home = 5", "1:8: \"home\" must be a string, not an integer", "for example: home = "),
            ("home = ''", "1:8: \"home\" must be a string, not an empty string", ""),
            ("[home]\nx = 1", "1:1: \"home\" must be a string, not a table", ""),
            ("shop = 1.5", "1:8: \"shop\" must be a table, not a float", "write [shop]"),
            ("[[shop]]", "1:1: \"shop\" must be a table, not an array", ""),
            (
                "[shop]\nopen = 'perhaps'",
                "2:8: \"shop.open\" must be true or false, not \"perhaps\"",
                "open = true",
            ),
            ("[shop]\nopen = 1", "2:8: \"shop.open\" must be true or false, not an integer", ""),
            (
                "[shop]\nshelves = ['ä', 2]",
                "2:17: \"shop.shelves\" must be a string or an array of strings, not an array with an integer",
                "for example: shelves = [",
            ),
            ("home = 'a'\nhome = 'b'", "2:1: duplicate key", ""),
            ("home = 'a'\nlisten = \n", "2:", ""),
            ("home = 'ä' x", "1:12: ", ""),
        ];
        for (text, what, hint) in table {
            let error = read(text).unwrap_err();
            assert!(error.what.starts_with(&format!("c.toml:{what}")), "{text:?}: {}", error.what);
            assert!(!error.what.contains('\n'), "{}", error.what);
            let given = error.hint.unwrap_or_default();
            assert!(given.contains(hint), "{text:?}: {given}");
        }
    }

    #[test]
    fn the_first_error_of_the_file_is_reported() {
        let error = read("[shop]\nzzz = 1\naaa = 1").unwrap_err();
        assert!(error.what.starts_with("c.toml:2:1:"), "{}", error.what);
    }
}
