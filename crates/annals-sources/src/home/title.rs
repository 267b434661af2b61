//! One-line titles from long texts.

/// Shorter lines are joined with the next one.
const SHORT: usize = 30;

/// The first non-blank line, at most 200 characters.
pub fn in_a_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    shorten(line)
}

/// The first line with words, joined with the next ones while it is short; at most 200 characters.
pub fn title_of(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| has_words(line));
    let Some(first) = lines.next() else { return in_a_line(text) };
    let mut title = first.to_owned();
    while title.chars().count() < SHORT {
        let Some(line) = lines.next() else { break };
        title.push(' ');
        title.push_str(line);
    }
    shorten(&title)
}

/// False for lines of only rules, fences or brackets.
fn has_words(line: &str) -> bool {
    !line.starts_with("```") && line.chars().any(char::is_alphanumeric)
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(200) {
        Some((cut, _)) => format!("{}…", drop_cut_word(&line[..cut])),
        None => line.to_owned(),
    }
}

/// Drops a word that was cut: half of a secret would not be recognised and masked.
fn drop_cut_word(text: &str) -> &str {
    let within = |c: char| c.is_ascii_alphanumeric() || "_-.+=:@%".contains(c);
    text.trim_end_matches(within)
}

#[cfg(test)]
mod tests {
    use super::{in_a_line, title_of};

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(in_a_line("\n\n  first \nsecond"), "first");
        assert_eq!(in_a_line(&"é".repeat(300)).chars().count(), 201);
        let key = "ghp_".to_owned() + &"a1B2".repeat(9);
        assert_eq!(in_a_line(&format!("{}, {key}", "é".repeat(180))), format!("{}, …", "é".repeat(180)));
    }
    #[test]
    fn short_lines_are_joined_into_a_title() {
        assert_eq!(
            title_of("can you look at\n\nsrc/gears.rs\nit squeaks\n"),
            "can you look at src/gears.rs it squeaks"
        );
        assert_eq!(title_of("---\n```\nOil it"), "Oil it");
        assert_eq!(
            title_of("Oil every gear of the second engine\nand then rest"),
            "Oil every gear of the second engine"
        );
        assert_eq!(title_of("???"), "???");
        assert_eq!(title_of(""), "");
    }
}
