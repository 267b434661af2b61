//! Forms of English words: `deployed`, `deploys` and `deployment` share a stem, and `went` is a form of `go`.
//!
//! Stems are never stored: a query looks for the terms of the index that have the stem of a word. So they may change
//! with any version, and words of other languages stay what they are.

use std::borrow::Cow;

/// The stem of a word in lower case; the word itself if it has none. Words that share a stem begin with
/// [`stem_start`].
pub fn stem_of(word: &str) -> Cow<'_, str> {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    let word = without_plural(word);
    let word = match word {
        Cow::Borrowed(word) => without_ending(word),
        Cow::Owned(word) => Cow::Owned(without_ending(&word).into_owned()),
    };
    // `migrate` and `migrating` are without an `e` then.
    match word.strip_suffix('e').filter(|stem| stem.len() >= 3 && !stem.ends_with('e')) {
        Some(stem) => Cow::Owned(stem.to_owned()),
        None => word,
    }
}

/// What all words with this stem begin with.
pub fn stem_start(stem: &str) -> &str {
    stem.strip_suffix('y').unwrap_or(stem)
}

fn without_plural(word: &str) -> Cow<'_, str> {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() >= 2) {
        // `ties` is `tie`, `studies` is `study`.
        return if stem.len() < 3 {
            Cow::Borrowed(&word[..word.len() - 1])
        } else {
            Cow::Owned(format!("{stem}y"))
        };
    }
    for end in ["sses", "xes", "zes", "ches", "shes"] {
        if word.ends_with(end) {
            return Cow::Borrowed(&word[..word.len() - 2]);
        }
    }
    let is_plural = word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    Cow::Borrowed(if is_plural { &word[..word.len() - 1] } else { word })
}

/// Endings, and the fewest letters that must remain. The first that matches is removed.
const ENDINGS: [(&str, usize); 15] = [
    ("ization", 4),
    ("isation", 4),
    ("ations", 4),
    ("ation", 4),
    ("ating", 4),
    ("ated", 4),
    ("ator", 4),
    ("ate", 4),
    ("ement", 4),
    ("ment", 5),
    ("ness", 4),
    ("ful", 4),
    ("ly", 4),
    ("ers", 5),
    ("er", 5),
];

fn without_ending(word: &str) -> Cow<'_, str> {
    for (end, least) in ENDINGS {
        if let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() >= least && has_vowel(stem)) {
            return match end {
                "ization" | "isation" => Cow::Owned(format!("{stem}i{}", &end[1..2])),
                "er" | "ers" => Cow::Borrowed(single(stem)),
                _ => Cow::Borrowed(stem),
            };
        }
    }
    if let Some(stem) = word.strip_suffix("ied").filter(|stem| stem.len() >= 3) {
        return Cow::Owned(format!("{stem}y"));
    }
    if let Some(stem) = word.strip_suffix("ion").filter(|stem| stem.len() >= 4 && stem.ends_with(['t', 's']))
    {
        return Cow::Borrowed(stem);
    }
    for end in ["ing", "ed"] {
        if let Some(stem) = word.strip_suffix(end).filter(|stem| stem.len() >= 3 && has_vowel(stem)) {
            return Cow::Borrowed(single(stem));
        }
    }
    Cow::Borrowed(word)
}

fn has_vowel(stem: &str) -> bool {
    stem.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// `planning` is `plan` with a doubled letter.
fn single(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., a, b] if a == b && !b"lszaeiou".contains(a) => &stem[..stem.len() - 1],
        _ => stem,
    }
}

/// All forms of an irregular English word, itself included; empty for others.
pub fn irregular_forms(word: &str) -> impl Iterator<Item = &'static str> {
    let group = IRREGULAR.iter().find(|group| group.split(' ').any(|form| form == word));
    group.into_iter().flat_map(|group| group.split(' '))
}

const IRREGULAR: &[&str] = &[
    "be is are was were been being am",
    "beat beaten beating beats",
    "become became becoming becomes",
    "begin began begun beginning begins",
    "bite bit bitten biting",
    "blow blew blown blowing",
    "break broke broken breaking breaks",
    "bring brought bringing brings",
    "build built building builds",
    "burn burnt burned burning",
    "buy bought buying buys",
    "catch caught catching catches",
    "choose chose chosen choosing chooses choice choices",
    "come came coming comes",
    "cut cutting cuts",
    "deal dealt dealing deals",
    "dig dug digging",
    "draw drew drawn drawing draws",
    "dream dreamt dreamed dreaming dreams",
    "drink drank drunk drinking drinks",
    "drive drove driven driving drives driver",
    "eat ate eaten eating eats",
    "fall fell fallen falling falls",
    "feed fed feeding feeds",
    "feel felt feeling feels",
    "fight fought fighting fights",
    "find found finding finds",
    "fly flew flown flying flies flight",
    "forget forgot forgotten forgetting forgets",
    "forgive forgave forgiven",
    "freeze froze frozen freezing freezes",
    "get got gotten getting gets",
    "give gave given giving gives",
    "go went gone going goes",
    "grow grew grown growing grows growth",
    "hang hung hanging hangs",
    "hear heard hearing hears",
    "hide hid hidden hiding hides",
    "hit hitting hits",
    "hold held holding holds",
    "hurt hurting hurts",
    "keep kept keeping keeps",
    "know knew known knowing knows knowledge",
    "lay laid laying lays",
    "lead led leading leads leader",
    "learn learnt learned learning learns",
    "leave left leaving leaves",
    "lend lent lending lends",
    "lie lied lying lies",
    "light lit lighting lights",
    "lose lost losing loses loss",
    "make made making makes",
    "mean meant meaning means",
    "meet met meeting meets",
    "pay paid paying pays payment payments",
    "prove proved proven proof",
    "put putting puts",
    "read reading reads",
    "ride rode ridden riding rides",
    "ring rang rung ringing",
    "rise rose risen rising rises",
    "run ran running runs runner",
    "say said saying says",
    "see saw seen seeing sees",
    "seek sought seeking",
    "sell sold selling sells sale sales",
    "send sent sending sends",
    "set setting sets",
    "shake shook shaken shaking",
    "shine shone shining",
    "shoot shot shooting",
    "show showed shown showing shows",
    "shrink shrank shrunk shrinking shrinks",
    "shut shutting shuts",
    "sing sang sung singing sings singer",
    "sink sank sunk sinking",
    "sit sat sitting sits",
    "sleep slept sleeping sleeps asleep",
    "speak spoke spoken speaking speaks speech",
    "spend spent spending spends",
    "spin spun spinning",
    "split splitting splits",
    "spread spreading spreads",
    "stand stood standing stands",
    "steal stole stolen stealing theft",
    "stick stuck sticking sticks",
    "strike struck striking",
    "swear swore sworn",
    "swim swam swum swimming swims",
    "take took taken taking takes",
    "teach taught teaching teaches teacher",
    "tear tore torn tearing",
    "tell told telling tells",
    "think thought thinking thinks",
    "throw threw thrown throwing throws",
    "understand understood understanding understands",
    "use used using uses usage",
    "wake woke woken waking wakes",
    "wear wore worn wearing wears",
    "win won winning wins winner",
    "write wrote written writing writes writer",
    "child children",
    "foot feet",
    "goose geese",
    "half halves",
    "knife knives",
    "leaf leaves",
    "life lives",
    "man men",
    "mouse mice",
    "person people persons",
    "shelf shelves",
    "tooth teeth",
    "wife wives",
    "woman women",
    "analysis analyses analyze analyse analyzing",
    "index indices indexes indexing indexed",
    "matrix matrices",
    "vertex vertices",
    "datum data",
    "bad worse worst",
    "good better best",
    "far further farther",
    "die died dying dies death dead",
    "marry married marries marriage wedding",
    "decide decided deciding decides decision decisions",
    "explain explained explaining explains explanation",
    "arrive arrived arriving arrival",
    "survive survived survival",
    "propose proposed proposal",
    "fail failed failing fails failure failures",
    "secure security secured securing",
    "strong strength",
    "long length",
    "deep depth",
    "wide width",
    "high height",
    "weigh weight weighed weighs",
    "receive received receipt receipts",
    "describe described description",
    "subscribe subscribed subscription subscriptions",
    "destroy destroyed destruction",
    "produce produced production",
    "reduce reduced reduction reducing",
    "compare compared comparison comparing",
    "permit permitted permission permissions",
    "expire expired expires expiry expiration",
    "authenticate authentication authenticated auth",
    "configure configured configuration config configuring",
    "synchronize synchronise sync synced syncing synchronization",
];

#[cfg(test)]
mod tests {
    use super::{irregular_forms, stem_of, stem_start};

    #[test]
    fn forms_of_a_word_share_a_stem_and_its_start() {
        for forms in [
            "deploy deploys deployed deploying deployment",
            "migrate migrates migrated migrating migration migrations migrator",
            "plan plans planned planning",
            "study studies studied studying",
            "organize organizes organized organizing organization",
            "research researches researched researching researcher researchers",
            "fix fixes fixed fixing",
            "create creates created creating creation",
            "adapt adapts adapted adapting adaptation",
            "test tests tested testing",
            "cache caches cached caching",
            "paint paints painted painting painter",
        ] {
            let words: Vec<&str> = forms.split(' ').collect();
            let stem = stem_of(words[0]);
            for word in &words {
                assert_eq!(stem_of(word), stem, "{word}");
                assert!(word.starts_with(stem_start(&stem)), "{word} {stem}");
            }
        }
    }

    #[test]
    fn other_words_stay_apart() {
        for (one, other) in [
            ("form", "format"),
            ("user", "use"),
            ("number", "numb"),
            ("class", "clas"),
            ("bus", "bu"),
            ("über", "üb"),
        ] {
            assert_ne!(stem_of(one), stem_of(other), "{one}");
        }
        for word in ["größer", "naïve", "v1", "user_names", "red"] {
            assert_eq!(stem_of(word), word);
        }
    }

    #[test]
    fn irregular_words_have_their_forms() {
        assert_eq!(irregular_forms("went").collect::<Vec<_>>(), ["go", "went", "gone", "going", "goes"]);
        assert_eq!(irregular_forms("walk").count(), 0);
    }
}
