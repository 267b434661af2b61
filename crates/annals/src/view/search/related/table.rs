//! The table of related English words: 8,000 words, with those that mean about the same and those that are written about
//! the same things. `make` in this folder makes it and names its sources.

use std::collections::HashMap;
use std::sync::LazyLock;

/// As `make` writes it.
const PACKED: &[u8] = include_bytes!("words.zst");
/// More than it unpacks to.
const UNPACKED: usize = 4 << 20;

struct Table {
    /// The forms of each word.
    words: Vec<Vec<&'static str>>,
    /// The line of each word's close ones, and after it the line of its loose ones.
    related: Vec<&'static str>,
    numbers: HashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let text = zstd::bulk::decompress(PACKED, UNPACKED).unwrap_or_default();
    let text: &'static str = String::from_utf8(text).unwrap_or_default().leak();
    let (words, related) = text.split_once("\n\n").unwrap_or_default();
    let words: Vec<Vec<&str>> = words.lines().map(|forms| forms.split(' ').collect()).collect();
    let numbered = words.iter().enumerate();
    let numbers = numbered.flat_map(|(number, forms)| forms.iter().map(move |form| (*form, number)));
    Table { numbers: numbers.collect(), related: related.lines().collect(), words }
});

/// Words that mean about the same as this one, in all their forms, and words about the same things.
pub fn close_and_loose(word: &str) -> [Vec<&'static str>; 2] {
    let Some(number) = TABLE.numbers.get(word) else { return Default::default() };
    [2 * number, 2 * number + 1].map(|line| {
        let numbers = TABLE.related.get(line).copied().unwrap_or_default().split(' ');
        let words = numbers.filter_map(|number| TABLE.words.get(number.parse::<usize>().ok()?));
        words.flatten().copied().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{TABLE, close_and_loose};

    #[test]
    fn the_table_is_whole() {
        assert!(TABLE.words.len() > 8_000, "{}", TABLE.words.len());
        assert_eq!(TABLE.related.len(), 2 * TABLE.words.len());
        let numbers =
            TABLE.related.iter().flat_map(|line| line.split(' ')).filter(|number| !number.is_empty());
        for number in numbers {
            assert!(number.parse::<usize>().unwrap() < TABLE.words.len(), "{number}");
        }
    }

    #[test]
    fn words_have_relations() {
        let [close, loose] = close_and_loose("dispute");
        assert!(close.contains(&"argument") && close.contains(&"arguments"), "{close:?}");
        let [close, _] = close_and_loose("wedding");
        assert!(close.contains(&"marriage"), "{close:?}");
        assert!(loose.iter().all(|word| !close.contains(word)), "{loose:?}");
        // Names relate to nothing.
        assert_eq!(close_and_loose("helen"), [Vec::<&str>::new(), Vec::new()]);
    }
}
