//! Syntax highlighting: keywords, strings, comments and numbers; good for most languages, exact for none.

use super::diff::push_diff;
use super::html::{Html, push_text};

/// Longer code is shown without highlighting.
const LONGEST: usize = 200 * 1024;

pub(super) fn highlighted(language: &str, code: &str) -> Html {
    let language = language.split([',', ' ', '{']).next().unwrap_or_default().to_ascii_lowercase();
    let mut html = String::with_capacity(code.len() * 2);
    if code.len() > LONGEST {
        push_text(&mut html, code);
    } else if matches!(language.as_str(), "diff" | "patch") {
        push_diff(&mut html, code);
    } else if matches!(
        language.as_str(),
        "" | "text" | "txt" | "plain" | "console" | "output" | "markdown" | "md"
    ) {
        push_text(&mut html, code);
    } else {
        push_marked(&mut html, code, Family::of(&language));
    }
    Html(html)
}

/// How a family of languages writes comments and strings.
#[derive(Clone, Copy)]
struct Family {
    line_comment: &'static [&'static str],
    block_comment: bool,
    quotes: &'static [char],
}

impl Family {
    fn of(language: &str) -> Family {
        match language {
            "python" | "py" | "ruby" | "rb" | "sh" | "bash" | "zsh" | "fish" | "shell" | "toml" | "yaml"
            | "yml" | "make" | "makefile" | "dockerfile" | "perl" | "r" | "ini" | "conf" | "elixir" => {
                Family { line_comment: &["#"], block_comment: false, quotes: &['"', '\''] }
            }
            "sql" | "lua" | "haskell" | "hs" | "ada" | "elm" => {
                Family { line_comment: &["--"], block_comment: true, quotes: &['"', '\''] }
            }
            "rust" | "rs" => Family { line_comment: &["//"], block_comment: true, quotes: &['"'] },
            "html" | "xml" | "svg" | "vue" | "json" => {
                Family { line_comment: &[], block_comment: false, quotes: &['"'] }
            }
            "lisp" | "clojure" | "scheme" | "asm" => {
                Family { line_comment: &[";"], block_comment: false, quotes: &['"'] }
            }
            _ => Family { line_comment: &["//"], block_comment: true, quotes: &['"', '\'', '`'] },
        }
    }
}

fn push_marked(html: &mut String, code: &str, family: Family) {
    let mut rest = code;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (class, length) = if family.block_comment && rest.starts_with("/*") {
            ("c", rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
        } else if family.line_comment.iter().any(|start| rest.starts_with(start) && is_comment(start, before))
        {
            ("c", rest.find('\n').unwrap_or(rest.len()))
        } else if family.quotes.contains(&first) {
            ("s", string_length(rest, first))
        } else if first.is_ascii_digit() && !is_word(before) {
            ("n", rest.find(|c: char| !is_word(c) && c != '.').unwrap_or(rest.len()))
        } else if is_word(first) {
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            (if KEYWORDS.contains(&&rest[..length]) { "k" } else { "" }, length)
        } else {
            ("", first.len_utf8())
        };
        let (piece, after) = rest.split_at(length);
        if class.is_empty() {
            push_text(html, piece);
        } else {
            push_span(html, class, piece);
        }
        before = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
}

/// A `#` inside a word does not start a comment: `a#b`, `$#`.
fn is_comment(start: &str, before: char) -> bool {
    start != "#" || before.is_whitespace()
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Up to the closing quote, or the end of the line.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            '\n' if quote != '`' => return at,
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            letter if letter == quote && !escaped => return at + letter.len_utf8(),
            _ => {}
        }
        escaped = false;
    }
    text.len()
}

fn push_span(html: &mut String, class: &str, text: &str) {
    html.push_str("<span class=\"");
    html.push_str(class);
    html.push_str("\">");
    push_text(html, text);
    html.push_str("</span>");
}

/// Keywords of many languages: one that is not a keyword in some language is rarely a name in it.
const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "bool",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "def",
    "default",
    "defer",
    "del",
    "delete",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enum",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "False",
    "fi",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "foreach",
    "from",
    "func",
    "function",
    "go",
    "goto",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "insert",
    "int",
    "interface",
    "into",
    "is",
    "lambda",
    "let",
    "local",
    "long",
    "loop",
    "match",
    "mod",
    "module",
    "mut",
    "namespace",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "select",
    "self",
    "Self",
    "set",
    "short",
    "static",
    "str",
    "string",
    "String",
    "struct",
    "super",
    "switch",
    "table",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "try",
    "type",
    "typedef",
    "typeof",
    "union",
    "unsafe",
    "update",
    "use",
    "using",
    "val",
    "var",
    "virtual",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "CREATE",
    "DELETE",
    "FROM",
    "INSERT",
    "JOIN",
    "SELECT",
    "UPDATE",
    "VALUES",
    "WHERE",
];

#[cfg(test)]
mod tests {
    use super::highlighted;

    #[test]
    fn words_are_marked_and_nothing_is_lost() {
        let shown = highlighted("rust", "let a = \"x<y\"; // why\nfn f() { 42 }").0;
        assert!(shown.contains("<span class=\"k\">let</span>"));
        assert!(shown.contains("<span class=\"s\">&quot;x&lt;y&quot;</span>"));
        assert!(shown.contains("<span class=\"c\">// why</span>\n"));
        assert!(shown.contains("<span class=\"n\">42</span>"));
    }

    #[test]
    fn every_text_is_kept_whatever_the_language() {
        for language in ["rust", "py", "sql", "json", "diff", "", "unknown"] {
            for text in
                ["'unclosed", "/* open", "\"a\\\"b", "# x\n\\", "ü'ö\"", "+a\n-b\n@@ c", "`a\nb`", "1.5e3x"]
            {
                let shown = highlighted(language, text).0;
                let mut plain = String::new();
                let mut inside = false;
                for letter in shown.chars() {
                    match letter {
                        '<' => inside = true,
                        '>' => inside = false,
                        letter if !inside => plain.push(letter),
                        _ => {}
                    }
                }
                let plain = plain.replace("&quot;", "\"").replace("&#39;", "'").replace("&lt;", "<");
                assert_eq!(plain, text, "{language}");
            }
        }
    }
}
