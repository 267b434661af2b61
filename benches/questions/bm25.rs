//! Plain BM25 over whole sessions, to compare with.

use std::collections::HashMap;

use super::world::Session;

const K1: f64 = 1.2;
const B: f64 = 0.75;

pub struct Bm25 {
    /// By term: session and count.
    lists: HashMap<Vec<u8>, Vec<(usize, u32)>>,
    lengths: Vec<f64>,
    usual: f64,
}

impl Bm25 {
    pub fn of(sessions: &[Session]) -> Bm25 {
        let mut lists: HashMap<Vec<u8>, Vec<(usize, u32)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            let mut counts: HashMap<Vec<u8>, u32> = HashMap::new();
            for part in &session.parts {
                annals_core::each_whole_term(part, |term| *counts.entry(term.to_vec()).or_default() += 1);
            }
            lengths.push(counts.values().map(|count| f64::from(*count)).sum());
            for (term, count) in counts {
                lists.entry(term).or_default().push((number, count));
            }
        }
        let usual = lengths.iter().sum::<f64>() / lengths.len() as f64;
        Bm25 { lists, lengths, usual }
    }

    /// The place of a session among all results.
    pub fn place(&self, question: &str, session: usize) -> Option<usize> {
        let mut scores = vec![0.0; self.lengths.len()];
        annals_core::each_whole_term(question, |term| {
            let Some(list) = self.lists.get(term) else { return };
            let (all, held) = (self.lengths.len() as f64, list.len() as f64);
            let rarity = (1.0 + (all - held + 0.5) / (held + 0.5)).ln();
            for (number, count) in list {
                let (count, length) = (f64::from(*count), self.lengths[*number] / self.usual);
                scores[*number] += rarity * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
            }
        });
        let own = scores[session];
        // Of equal sessions, half are before it.
        let better = scores.iter().filter(|score| **score > own).count();
        let equal = scores.iter().filter(|score| **score == own).count() - 1;
        (own > 0.0).then_some(better + equal / 2)
    }
}
