//! What counts how much in the ranking of questions. The values come from `benches/questions.rs`; docs/search.md explains
//! them.

use annals_core::PassageKind;

#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// Of a word in a passage, by who wrote it: prompts, answers, thinking, calls, outputs, paths, library items.
    pub kinds: [f32; 7],
    /// How soon further passages with a word stop to count.
    pub saturation: f32,
    /// How much long sessions are discounted.
    pub length: f32,
    /// Of another form of a word, of a word that means about the same, and of one about the same things, where the word
    /// itself has 1.
    pub form: f32,
    pub related: f32,
    pub loose: f32,
    /// Of words such as `make` or `kind`, which questions contain whatever they are about.
    pub weak: f32,
    /// Of the session as a whole, of its best few messages together, of its best passage alone, and of its title.
    pub session: f32,
    pub window: f32,
    pub passage: f32,
    pub title: f32,
    /// Bytes of a transcript that count as a few messages together.
    pub window_bytes: f32,
    /// How much a passage is discounted each time its length doubles.
    pub passage_length: f32,
    /// How much it matters that a session has all of the words.
    pub coordination: f32,
    /// Of words that are as close to each other as they were typed.
    pub near: f32,
    /// Of a time that the question names, and of recent sessions.
    pub time: f32,
    pub recency: f32,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            kinds: [1.0, 0.9, 0.5, 0.5, 0.3, 0.3, 0.8],
            saturation: 3.0,
            length: 0.4,
            form: 0.8,
            related: 0.6,
            loose: 0.35,
            weak: 0.4,
            session: 2.0,
            window: 0.6,
            passage: 0.5,
            title: 0.2,
            window_bytes: 3_000.0,
            passage_length: 0.04,
            coordination: 0.5,
            near: 0.4,
            time: 0.5,
            recency: 0.05,
        }
    }
}

impl Weights {
    pub fn of_kind(&self, kind: PassageKind) -> f32 {
        self.kinds[match kind {
            PassageKind::User => 0,
            PassageKind::Assistant => 1,
            PassageKind::Thinking => 2,
            PassageKind::Call => 3,
            PassageKind::Result | PassageKind::Output => 4,
            PassageKind::Files => 5,
            PassageKind::Record => 6,
        }]
    }
}
