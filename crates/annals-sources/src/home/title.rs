//! One-line titles from long texts.

/// The first line with something in it, at most 200 characters.
pub fn in_a_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(200) {
        Some((cut, _)) => format!("{}…", whole_words(&line[..cut])),
        None => line.to_owned(),
    }
}

/// Half of a key would be shown: what is left of it does not look like one.
fn whole_words(text: &str) -> &str {
    let within = |c: char| c.is_ascii_alphanumeric() || "_-.+=:@%".contains(c);
    text.trim_end_matches(within)
}

#[cfg(test)]
mod tests {
    use super::in_a_line;

    #[test]
    fn titles_are_one_short_line() {
        assert_eq!(in_a_line("\n\n  first \nsecond"), "first");
        assert_eq!(in_a_line(&"é".repeat(300)).chars().count(), 201);
        let key = "ghp_".to_owned() + &"a1B2".repeat(9);
        assert_eq!(in_a_line(&format!("{}, {key}", "é".repeat(180))), format!("{}, …", "é".repeat(180)));
    }
}
