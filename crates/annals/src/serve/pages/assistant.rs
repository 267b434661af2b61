//! One colour per assistant: a class of the style sheet, by the place of the assistant in the registry.

use crate::view::source_labels;

/// Colours in the style sheet; assistants beyond share the neutral one.
const COLOURS: usize = 12;

/// The class that colours what belongs to an assistant.
pub(super) fn colour(source: &str) -> String {
    match source_labels().position(|(name, _)| name == source) {
        Some(place) if place < COLOURS => format!("a{place}"),
        Some(_) | None => "a-other".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{COLOURS, colour};
    use crate::serve::pages::assets::STYLES;
    use crate::view::source_labels;

    #[test]
    fn every_assistant_has_its_own_colour() {
        let mut colours: Vec<String> = source_labels().take(COLOURS).map(|(name, _)| colour(name)).collect();
        let count = colours.len();
        colours.sort();
        colours.dedup();
        assert_eq!(colours.len(), count);
        assert!(colours.iter().all(|class| STYLES.contains(&format!(".{class} "))), "{colours:?}");
        assert_eq!(colour("nobody"), "a-other");
    }
}
