//! Texts that a client wrapped in tags, such as a command with its arguments, without the tags.

/// The name and the text of each tag, if a text is nothing but tags.
fn tags(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix('<')?.split_once('>')?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let (inside, after) = after.split_once(&format!("</{name}>"))?;
        found.push((name, inside.trim()));
        rest = after.trim_start();
    }
    Some(found).filter(|found| !found.is_empty())
}

/// A text as people read it: a command on one line with its arguments, and what else the tags contain.
pub(super) fn untagged(text: &str) -> String {
    let Some(tags) = tags(text) else { return text.to_owned() };
    let of = |end: &str| tags.iter().find(|(name, _)| name.ends_with(end)).map_or("", |(_, inside)| *inside);
    let command = of("-name");
    let mut lines = vec![format!("{command} {}", of("-args")).trim().to_owned()];
    // What a client repeats of the name says nothing new.
    let is_repeated = |inside: &str| inside.trim_start_matches('/') == command.trim_start_matches('/');
    let others = tags.iter().filter(|(name, inside)| {
        !name.ends_with("-name") && !name.ends_with("-args") && !is_repeated(inside)
    });
    lines.extend(others.map(|(_, inside)| (*inside).to_owned()));
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::untagged;

    #[test]
    fn commands_are_one_line() {
        let text = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>all of it</command-args>";
        assert_eq!(untagged(text), "/review all of it");
        assert_eq!(untagged("<local-command-stdout>done\n</local-command-stdout>"), "done");
        assert_eq!(untagged("<local-command-stdout></local-command-stdout>"), "");
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in ["plain", "<b>bold</b> text", "a <x>y</x>", "<open>", "<a b>c</a b>", ""] {
            assert_eq!(untagged(text), text);
        }
    }
}
