//! Joins letters with the accents that follow them (NFC, for the letters of European and Japanese scripts and of Korean):
//! some systems write `é` as two characters, and both must be the same word.

use std::borrow::Cow;

/// Marks that combine with the letter before them.
pub fn is_mark(letter: char) -> bool {
    matches!(letter as u32, 0x0300..=0x036F | 0x3099..=0x309A)
}

/// One character for a letter and what combines with it.
pub fn compose(letter: char, mark: char) -> Option<char> {
    let (first, second) = (letter as u32, mark as u32);
    match (first, second) {
        // Korean syllables are arithmetic.
        (0x1100..=0x1112, 0x1161..=0x1175) => {
            return char::from_u32(0xAC00 + ((first - 0x1100) * 21 + second - 0x1161) * 28);
        }
        (0xAC00..=0xD7A3, 0x11A8..=0x11C2) if (first - 0xAC00) % 28 == 0 => {
            return char::from_u32(first + second - 0x11A7);
        }
        // In Japanese, the voiced letter follows the plain one.
        (0x304B..=0x3062 | 0x30AB..=0x30C2, 0x3099) if first % 2 == 1 => return char::from_u32(first + 1),
        (0x3064..=0x3068 | 0x30C4..=0x30C8, 0x3099) if first.is_multiple_of(2) => {
            return char::from_u32(first + 1);
        }
        (0x306F..=0x307B | 0x30CF..=0x30DB, 0x3099..=0x309A) if first.is_multiple_of(3) => {
            return char::from_u32(first + second - 0x3098);
        }
        _ => {}
    }
    let (_, pairs) = ACCENTS.iter().find(|(accent, _)| *accent == mark)?;
    let mut letters = pairs.chars();
    while let (Some(base), Some(composed)) = (letters.next(), letters.next()) {
        if base == letter {
            return Some(composed);
        }
    }
    None
}

/// A text in which every letter is one character.
pub fn composed(text: &str) -> Cow<'_, str> {
    let joins = |letter: char| is_mark(letter) || matches!(letter as u32, 0x1100..=0x11FF);
    if text.is_ascii() || !text.contains(joins) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut last: Option<char> = None;
    for letter in text.chars() {
        match last.and_then(|last| compose(last, letter)) {
            Some(joined) => last = Some(joined),
            None => {
                out.extend(last.replace(letter));
            }
        }
    }
    out.extend(last);
    Cow::Owned(out)
}

/// By mark: letters and what they become.
const ACCENTS: [(char, &str); 14] = [
    ('\u{300}', "aàeèiìoòuùnǹAÀEÈIÌOÒUÙâầêềôồăằơờưừ"),
    ('\u{301}', "aáeéiíoóuúyýcćlĺnńrŕsśzźgǵkḱAÁEÉIÍOÓUÚYÝCĆLĹNŃRŔSŚZŹâấêếôốăắơớưứ"),
    ('\u{302}', "aâeêiîoôuûcĉgĝhĥjĵsŝwŵyŷAÂEÊIÎOÔUÛạậẹệọộ"),
    ('\u{303}', "aãoõnñiĩuũeẽyỹAÃOÕNÑIĨUŨâẫêễôỗăẵơỡưữ"),
    ('\u{304}', "aāeēiīoōuūAĀEĒIĪOŌUŪ"),
    ('\u{306}', "aăeĕgğiĭoŏuŭAĂGĞийИЙ"),
    ('\u{307}', "cċeėgġzżIİCĊEĖGĠZŻ"),
    ('\u{308}', "aäeëiïoöuüyÿAÄEËIÏOÖUÜеёЕЁіїІЇ"),
    ('\u{309}', "aảeẻiỉoỏuủyỷâẩêểôổăẳơởưử"),
    ('\u{30A}', "aåuůAÅUŮ"),
    ('\u{30B}', "oőuűOŐUŰ"),
    ('\u{30C}', "cčdďeělľnňrřsštťzžgǧCČDĎEĚLĽNŇRŘSŠTŤZŽ"),
    ('\u{323}', "aạeẹiịoọuụyỵơợưự"),
    ('\u{327}', "cçsşgģkķlļnņrŗtţCÇSŞ"),
];

#[cfg(test)]
mod tests {
    use super::composed;

    #[test]
    fn letters_and_their_accents_are_joined() {
        for (apart, joined) in [
            ("cafe\u{301} Gro\u{308}ße", "café Größe"),
            ("i\u{302}le n\u{303}", "île ñ"),
            ("か\u{3099}\u{30cf}\u{309a}", "がパ"),
            ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
            ("plain", "plain"),
            ("x\u{301}", "x\u{301}"),
        ] {
            assert_eq!(composed(apart), joined);
        }
        assert_eq!(composed("a\u{323}\u{302}"), "ậ");
    }
}
