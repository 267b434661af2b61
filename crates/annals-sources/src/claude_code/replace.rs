//! Applies an edit to a text: the complete lines before and after, and their positions.

use annals_core::FileRegion;

/// Replaces the first or every place of `old`; nothing when there is none, or no place to look for.
pub fn replaced(file: &mut String, old: &str, new: &str, all: bool) -> Option<Vec<(FileRegion, FileRegion)>> {
    let mut places = Vec::new();
    if old.is_empty() {
        // An edit that makes a file.
        let whole = FileRegion::lines(1, new.to_owned());
        *file = new.to_owned();
        return Some(vec![(FileRegion::default(), whole)]);
    }
    let mut from = 0;
    while let Some(found) = file.get(from..)?.find(old) {
        let at = from + found;
        let (start, number) = line_start(file, at);
        let before = file[start..line_end(file, at + old.len())].to_owned();
        file.replace_range(at..at + old.len(), new);
        let after = file[start..line_end(file, at + new.len())].to_owned();
        places.push((FileRegion::lines(number, before), FileRegion::lines(number, after)));
        from = at + new.len();
        if !all {
            break;
        }
    }
    (!places.is_empty()).then_some(places)
}

/// Where the line at a place starts, and its number.
fn line_start(text: &str, at: usize) -> (usize, u32) {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let lines = text[..at].bytes().filter(|byte| *byte == b'\n').count();
    (start, u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1))
}

/// Behind the newline of the line in which a text ends; a text that ends with its newline ends there.
fn line_end(text: &str, at: usize) -> usize {
    if at > 0 && text.as_bytes()[at - 1] == b'\n' {
        return at;
    }
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

#[cfg(test)]
mod tests {
    use super::replaced;
    use annals_core::FileRegion;

    #[test]
    fn lines_are_whole_and_numbered_as_they_come() {
        let mut file = "a\nb b\nc\n".to_owned();
        let places = replaced(&mut file, "b", "x\ny", true).unwrap();
        assert_eq!(file, "a\nx\ny x\ny\nc\n");
        assert_eq!(
            places[0],
            (FileRegion::lines(2, "b b\n".into()), FileRegion::lines(2, "x\ny b\n".into()))
        );
        assert_eq!(
            places[1],
            (FileRegion::lines(3, "y b\n".into()), FileRegion::lines(3, "y x\ny\n".into()))
        );
        assert_eq!(replaced(&mut file, "nowhere", "", true), None);
    }
}
