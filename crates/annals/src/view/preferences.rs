//! What a person sets for their pages: the editor that files open in, and what a month may cost.

use std::fmt;

use annals_core::{Error, Result, in_address};

/// What pages need of the settings.
#[derive(Debug, Clone, Default)]
pub struct Preferences {
    pub editor: Option<Editor>,
    /// US dollars a month.
    pub budget_usd: Option<f64>,
}

/// The address that opens a line of a file in an editor on the reader's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editor {
    template: String,
}

/// Schemes that a browser or a mail program handles itself, or that run what they name.
const OFF_LIMITS: [&str; 20] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
    "jar",
    "javascript",
    "mailto",
    "ms-msdt",
    "search-ms",
    "sms",
    "ssh",
    "tel",
    "vbscript",
    "view-source",
    "ws",
];

impl fmt::Display for Editor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.template)
    }
}

impl Editor {
    /// Reads an address such as `vscode://file{path}:{line}`; `none` and an empty text are no editor.
    pub fn parse(template: &str) -> Result<Option<Editor>> {
        let template = template.trim();
        if template.is_empty() || template == "none" {
            return Ok(None);
        }
        let refused = |why: String| {
            Error::bad_request(format!("invalid editor {template:?}: {why}"))
                .hint("set editor = \"vscode://file{path}:{line}\" in config.toml, or \"none\"")
        };
        let (scheme, rest) = template.split_once("://").ok_or_else(|| refused("it has no scheme".into()))?;
        let scheme = scheme.to_ascii_lowercase();
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        if !is_scheme {
            return Err(refused("its scheme has other characters than letters, digits, +, - and .".into()));
        }
        if OFF_LIMITS.contains(&scheme.as_str()) || scheme.starts_with("ms-") && scheme != "ms-vscode" {
            return Err(refused(format!("the scheme {scheme} is no editor's")));
        }
        if !rest.contains("{path}") {
            return Err(refused("it has no {path}".into()));
        }
        let is_plain = rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"'<>\\`".contains(&byte));
        if !is_plain {
            return Err(refused("it has a quote, a space or a sign that no address has".into()));
        }
        Ok(Some(Editor { template: format!("{scheme}://{rest}") }))
    }

    /// The address of a line. None for a path that is not complete, masked, or on another machine.
    pub fn address(&self, path: &str, line: Option<u32>) -> Option<String> {
        let with_drive = path.as_bytes().get(1) == Some(&b':');
        let path = if with_drive { format!("/{}", path.replace('\\', "/")) } else { path.to_owned() };
        let is_elsewhere = path.starts_with("//") || !path.starts_with('/') || path.contains("\\\\");
        if is_elsewhere || path.contains("[secret:") || path.chars().any(annals_core::is_hidden) {
            return None;
        }
        let path: Vec<String> = path.split('/').map(in_address).collect();
        let line = line.unwrap_or(1).to_string();
        Some(self.template.replace("{path}", &path.join("/")).replace("{line}", &line))
    }
}

/// Reads a number of dollars, with or without a sign; an empty text is no budget.
pub fn parse_budget(text: &str) -> Result<Option<f64>> {
    let number = text.trim().trim_start_matches('$').replace(',', "");
    if number.is_empty() {
        return Ok(None);
    }
    let budget = number.parse::<f64>().ok().filter(|budget| budget.is_finite() && *budget > 0.0);
    budget.map(Some).ok_or_else(|| {
        Error::bad_request(format!("invalid budget {text:?}"))
            .hint("set budget = \"200\" in config.toml: US dollars a month")
    })
}

#[cfg(test)]
mod tests {
    use super::{Editor, parse_budget};

    fn opened(template: &str, path: &str) -> Option<String> {
        Editor::parse(template).unwrap().unwrap().address(path, Some(7))
    }

    #[test]
    fn a_file_opens_at_its_line() {
        let code = "vscode://file{path}:{line}";
        assert_eq!(opened(code, "/w/a b/ü.rs").as_deref(), Some("vscode://file/w/a%20b/%C3%BC.rs:7"));
        assert_eq!(opened(code, r"C:\w\a.rs").as_deref(), Some("vscode://file/C%3A/w/a.rs:7"));
        let idea = "idea://open?file={path}&line={line}";
        assert_eq!(opened(idea, "/w/a&b.rs").as_deref(), Some("idea://open?file=/w/a%26b.rs&line=7"));
        assert_eq!(Editor::parse("none").unwrap(), None);
        assert_eq!(Editor::parse(" ").unwrap(), None);
        let first = Editor::parse(code).unwrap().unwrap().address("/w/a.rs", None);
        assert_eq!(first.as_deref(), Some("vscode://file/w/a.rs:1"));
    }

    #[test]
    fn a_path_cannot_lead_elsewhere() {
        for path in
            ["src/a.rs", "//server/share/a", r"\\server\share", "/w/[secret:github:3f9a]", "/w/\u{202e}a"]
        {
            assert_eq!(opened("vscode://file{path}:{line}", path), None, "{path}");
        }
        let quoted = opened("zed://file{path}", "/w/\"><script>?#x").unwrap();
        assert_eq!(quoted, "zed://file/w/%22%3E%3Cscript%3E%3F%23x");
    }

    #[test]
    fn only_editors_are_opened() {
        for template in [
            "javascript://{path}",
            "JavaScript://x%0aalert(1){path}",
            "data://{path}",
            "file://{path}",
            "https://evil.example{path}",
            "ms-msdt://{path}",
            "search-ms://{path}",
            "vscode:{path}",
            "vscode://file",
            "vs code://{path}",
            "vscode://file{path}\"onclick=x",
            "://{path}",
        ] {
            assert!(Editor::parse(template).is_err(), "{template}");
        }
    }

    #[test]
    fn a_budget_is_dollars_a_month() {
        assert_eq!(parse_budget("$1,200.50").unwrap(), Some(1_200.5));
        assert_eq!(parse_budget("").unwrap(), None);
        for text in ["none", "-5", "0", "NaN", "1e999"] {
            assert!(parse_budget(text).is_err(), "{text}");
        }
    }
}
