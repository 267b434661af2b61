//! The sessions and the questions. Each person or project has every fact of its domain once; a session has three of
//! them, and mentions others in passing, as people do.

use std::path::Path;

use annals::Experiment;
use annals_testkit::corpora::codex::{Step, write_session_of};
use annals_testkit::corpora::generator::Random;

const SEED: u64 = 20_261_116;
/// Facts of a session.
const FACTS: usize = 3;

/// A domain: its facts, and who they are about.
const DOMAINS: [(&str, &str, &[&str]); 6] = [
    ("everyday", include_str!("everyday.txt"), &["Marta", "Ilya", "Priya", "Kofi", "Dunya", "Oskar"]),
    ("code", include_str!("code.txt"), &["harbor", "lumen", "quill", "tidepool"]),
    ("office", include_str!("office.txt"), &["Brightwell", "Norden", "Castellan"]),
    ("german", include_str!("german.txt"), &["Familie Wolff", "Jonas", "Annika"]),
    ("romance", include_str!("romance.txt"), &["Camille", "Rodrigo", "Inès"]),
    ("cjk", include_str!("cjk.txt"), &["王芳", "李雷", "田中"]),
];

/// What assistants say in between, whatever it is about.
pub const FILLER: [&str; 24] = [
    "Let me know how it goes, and we can adjust the plan together.",
    "There are a few more things to consider before you decide, for example how much time you have and who else is involved.",
    "A short list often helps: write down what matters most, what can wait, and what you would rather not do at all.",
    "I would start small, look at the results after a week, and only then change more.",
    "It is normal that the first attempt is not perfect; keep notes of what you tried.",
    "If the price matters, compare at least three offers and ask what is included.",
    "You could also ask somebody who has done it before, most people like to share what they learned.",
    "In my experience the simple solution is easier to maintain, even if it looks less clever.",
    "I checked the last runs again and nothing else changed; the remaining warnings are old.",
    "The important part is to write it down, so that nobody has to find out again next month.",
    "Here is a summary: the cause is known, the fix is small, and a test makes sure that it stays fixed.",
    "Would you like me to prepare a draft, a checklist, or both?",
    "That depends on the season, the weather and how many people come along.",
    "Please keep the receipts and the photos in one folder until everything is settled.",
    "I also looked at alternatives, but they cost more and need longer.",
    "Take a break in between, a fresh look the next morning often solves the rest.",
    "Afterwards I ran everything once more from the beginning and compared the output line by line.",
    "Thanks for the details, that makes it much clearer what you need.",
    "One more idea: put a reminder into the calendar, so that it is not forgotten.",
    "Both options work; the first is cheaper, the second is faster.",
    "The documentation is a little out of date here, so I went by the behaviour instead.",
    "We can come back to this when the others have answered.",
    "I left the other files untouched and explained each change in the description.",
    "In short: yes, it is possible, and it takes about an afternoon.",
];

pub struct Session {
    pub id: String,
    /// Its texts, for BM25.
    pub parts: Vec<String>,
}

pub struct Asked {
    pub text: String,
    pub domain: &'static str,
    /// The number of the session that answers it.
    pub session: usize,
    /// The number of its fact: weights are never measured with a fact that they were learned from.
    pub fact: usize,
}

pub struct World {
    pub sessions: Vec<Session>,
    pub questions: Vec<Asked>,
    pub left_out: usize,
    /// Questions about conversations that were written one by one, however much they repeat of their answers.
    pub talks: Vec<Asked>,
}

/// One thing that was talked about, and what people ask about it later.
#[derive(Default)]
struct Fact<'t> {
    prompt: &'t str,
    ran: Option<(&'t str, &'t str)>,
    answer: &'t str,
    questions: Vec<&'t str>,
}

fn parse(text: &'static str) -> Vec<Fact<'static>> {
    text.split("\n\n")
        .map(|block| {
            let mut fact = Fact::default();
            for line in block.lines() {
                let (kind, rest) = line.split_once(' ').unwrap();
                match kind {
                    "U" => fact.prompt = rest,
                    "R" => fact.ran = rest.split_once(" | "),
                    "A" => fact.answer = rest,
                    "Q" => fact.questions.push(rest),
                    _ => panic!("{line}"),
                }
            }
            fact
        })
        .collect()
}

impl World {
    /// Writes the sessions into a home.
    pub fn write(home: &Path) -> World {
        let mut world = World { sessions: Vec::new(), questions: Vec::new(), left_out: 0, talks: Vec::new() };
        let mut random = Random(SEED);
        for (domain, text, subjects) in DOMAINS {
            let facts = parse(text);
            for who in subjects {
                let mut order: Vec<usize> = (0..facts.len()).collect();
                for at in (1..order.len()).rev() {
                    order.swap(at, random.below(at as u64 + 1) as usize);
                }
                for chosen in order.chunks(FACTS) {
                    world.write_session(home, &mut random, domain, &facts, chosen, who);
                }
            }
        }
        world.write_talks(home, &mut random);
        world
    }

    fn write_session(
        &mut self,
        home: &Path,
        random: &mut Random,
        domain: &'static str,
        facts: &[Fact<'_>],
        chosen: &[usize],
        who: &str,
    ) {
        let named = |text: &str| text.replace("{who}", who);
        let mut texts: Vec<(u8, String, String)> = Vec::new();
        for number in chosen {
            let fact = &facts[*number];
            texts.push((b'U', named(fact.prompt), String::new()));
            if let Some((command, printed)) = fact.ran {
                let noise = noise(random, facts);
                texts.push((b'R', named(command), format!("{printed}\n{noise}")));
            }
            let mut answer = named(fact.answer);
            for _ in 0..random.below(4) {
                answer = format!("{answer} {}", random.pick(&FILLER));
            }
            texts.push((b'A', answer, String::new()));
            if random.below(2) == 0 {
                texts.push((b'U', named(&mention(random, facts)), String::new()));
                texts.push((b'A', (*random.pick(&FILLER)).to_owned(), String::new()));
            }
        }
        let session = self.sessions.len();
        self.write_texts(home, random, &texts);
        let mut terms = std::collections::HashSet::new();
        self.sessions[session].parts.iter().for_each(|part| {
            annals_core::each_whole_term(part, |term| {
                terms.insert(String::from_utf8_lossy(term).into_owned());
            });
        });
        for number in chosen {
            for question in &facts[*number].questions {
                let text = named(question);
                let words = Experiment::words_of(&text).unwrap();
                let repeated = words.iter().filter(|word| terms.contains(*word)).count();
                if repeated * 2 > words.len() {
                    self.left_out += 1;
                    continue;
                }
                self.questions.push(Asked { text, domain, session, fact: *number });
            }
        }
    }

    /// Writes a session: its texts with who wrote them and what was printed.
    pub fn write_texts(&mut self, home: &Path, random: &mut Random, texts: &[(u8, String, String)]) {
        let steps: Vec<Step<'_>> = texts
            .iter()
            .map(|(kind, text, printed)| match kind {
                b'U' => Step::User(text),
                b'A' => Step::Assistant(text),
                _ => Step::Ran(text, printed),
            })
            .collect();
        let id = write_session_of(home, random.next(), &steps, 0).unwrap();
        let parts = texts.iter().flat_map(|(_, text, more)| [text.clone(), more.clone()]).collect();
        self.sessions.push(Session { id, parts });
    }
}

/// A few words of another fact, in passing.
fn mention(random: &mut Random, facts: &[Fact<'_>]) -> String {
    let other = random.pick(facts);
    let text = if random.below(2) == 0 { other.prompt } else { other.answer };
    let words: Vec<&str> = text.split_whitespace().collect();
    let length = (5 + random.below(5) as usize).min(words.len());
    let start = random.below((words.len() - length) as u64 + 1) as usize;
    format!("And by the way, remember: {}?", words[start..start + length].join(" "))
}

/// Output that repeats words of everything else.
fn noise(random: &mut Random, facts: &[Fact<'_>]) -> String {
    let mut lines = String::new();
    for _ in 0..random.below(12) {
        let text = random.pick(facts).answer;
        let words: Vec<&str> = text.split_whitespace().collect();
        let line: Vec<&str> = (0..6).map(|_| *random.pick(&words)).collect();
        lines += &format!("[info] {} {}\n", random.below(9_999), line.join(" "));
    }
    lines
}
