//! Conversations that were written one by one, and questions about them as people type them: half sentences, typing
//! errors, notes, single names, the wrong language. They cross-check weights that were learned from facts in templates.

use std::path::Path;

use annals_testkit::corpora::generator::Random;

use super::world::{Asked, FILLER, World};

/// One a block: `S` and who it is with, turns (`U`, `R` and `A`), and questions (`Q`) with how they are asked. By one
/// writer each: mixed ones, chats of a few friends, work of engineers and of people at a desk.
const TALKS: [&str; 3] = [include_str!("talks.txt"), include_str!("friends.txt"), include_str!("desks.txt")];
/// Parts of conversations with the same person that come up again.
const MENTIONS: u64 = 3;

struct Talk {
    who: &'static str,
    turns: Vec<(u8, &'static str, &'static str)>,
    questions: Vec<(&'static str, &'static str)>,
}

fn parse() -> Vec<Talk> {
    TALKS
        .iter()
        .flat_map(|file| file.trim_end().split("\n\n"))
        .map(|block| {
            let mut talk = Talk { who: "", turns: Vec::new(), questions: Vec::new() };
            for line in block.lines() {
                let (kind, rest) = line.split_once(' ').unwrap();
                match kind {
                    "S" => talk.who = rest,
                    "U" => talk.turns.push((b'U', rest, "")),
                    "A" => talk.turns.push((b'A', rest, "")),
                    "R" => {
                        let (command, printed) = rest.split_once(" | ").unwrap();
                        talk.turns.push((b'R', command, printed));
                    }
                    "Q" => talk.questions.push(rest.split_once(' ').unwrap()),
                    _ => panic!("{line}"),
                }
            }
            talk
        })
        .collect()
}

impl World {
    /// Each conversation once, named after who it is with, with small talk and with words of the same person's others.
    pub fn write_talks(&mut self, home: &Path, random: &mut Random) {
        let talks = parse();
        for (number, talk) in talks.iter().enumerate() {
            let mut texts = vec![(b'U', format!("Hi, {} here.", talk.who), String::new())];
            for (kind, text, printed) in &talk.turns {
                texts.push((*kind, (*text).to_owned(), (*printed).to_owned()));
                if *kind == b'A' && random.below(2) == 0 {
                    texts.push((b'A', (*random.pick(&FILLER)).to_owned(), String::new()));
                }
            }
            let others: Vec<&Talk> = talks.iter().filter(|other| other.who == talk.who).collect();
            for _ in 0..random.below(MENTIONS + 1) {
                let other = random.pick(&others);
                let (_, text, _) = random.pick(&other.turns);
                let words: Vec<&str> = text.split(' ').take(10).collect();
                texts.push((b'U', format!("As I said: {}", words.join(" ")), String::new()));
                texts.push((b'A', (*random.pick(&FILLER)).to_owned(), String::new()));
            }
            let session = self.sessions.len();
            self.write_texts(home, random, &texts);
            for (domain, text) in &talk.questions {
                self.talks.push(Asked { text: (*text).to_owned(), domain, session, fact: number });
            }
        }
    }
}
