//! The value of a setting, whichever way it was given.

use std::path::Path;

use serde::Serialize;

use annals_core::ValueKind;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SettingValue {
    Text(String),
    List(Vec<String>),
    Boolean(bool),
}

impl SettingValue {
    /// A value given as one string, as the environment does; nothing when it is not of that kind.
    pub fn parse(kind: ValueKind, text: &str) -> Option<SettingValue> {
        let items = |separator: char| {
            let items = text.split(separator).map(str::trim).filter(|item| !item.is_empty());
            SettingValue::List(items.map(str::to_owned).collect())
        };
        match kind {
            ValueKind::Text => Some(SettingValue::Text(text.to_owned())),
            ValueKind::List => Some(items(',')),
            ValueKind::Lines => Some(items('\n')),
            ValueKind::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" | "1" => Some(SettingValue::Boolean(true)),
                "false" | "no" | "off" | "0" => Some(SettingValue::Boolean(false)),
                _ => None,
            },
        }
    }

    /// The same with `~/` at the start of a string replaced by the user's home.
    pub fn expand(self, user_home: Option<&Path>) -> SettingValue {
        let expand = |text: String| match (text.strip_prefix("~/"), user_home) {
            (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
            _ => text,
        };
        match self {
            SettingValue::Text(text) => SettingValue::Text(expand(text)),
            SettingValue::List(items) => SettingValue::List(items.into_iter().map(expand).collect()),
            SettingValue::Boolean(flag) => SettingValue::Boolean(flag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_string_becomes_a_value_of_its_kind() {
        let list =
            |items: &[&str]| Some(SettingValue::List(items.iter().map(|item| (*item).to_owned()).collect()));
        assert_eq!(SettingValue::parse(ValueKind::Text, "a, b"), Some(SettingValue::Text("a, b".into())));
        assert_eq!(SettingValue::parse(ValueKind::List, " a, b ,,"), list(&["a", "b"]));
        assert_eq!(
            SettingValue::parse(ValueKind::Lines, "--size=1,2\n\n--x y\n"),
            list(&["--size=1,2", "--x y"])
        );
        for (text, flag) in [("yes", Some(true)), ("0", Some(false)), ("True", Some(true)), ("perhaps", None)]
        {
            assert_eq!(
                SettingValue::parse(ValueKind::Boolean, text),
                flag.map(SettingValue::Boolean),
                "{text}"
            );
        }
    }

    #[test]
    fn the_home_of_the_user_is_filled_in_at_the_start_of_every_item() {
        let value = SettingValue::parse(ValueKind::List, "~/a,/b/~/c,~d")
            .map(|value| value.expand(Some(Path::new("/u"))));
        assert_eq!(value, Some(SettingValue::List(vec!["/u/a".into(), "/b/~/c".into(), "~d".into()])));
        assert_eq!(SettingValue::Text("~/a".into()).expand(None), SettingValue::Text("~/a".into()));
    }
}
