//! Learns weights from one half of the questions and measures them on the other, both ways, and from one set for the
//! other.

use super::world::{Asked, World};
use super::{Figures, Places, places};
use annals::{Experiment, Weights};

/// A weight, and factors to try.
type Change = (&'static str, fn(&mut Weights) -> &mut f32);

const CHANGES: [Change; 20] = [
    ("answers", |weights| &mut weights.kinds[1]),
    ("calls", |weights| &mut weights.kinds[3]),
    ("outputs", |weights| &mut weights.kinds[4]),
    ("saturation", |weights| &mut weights.saturation),
    ("length", |weights| &mut weights.length),
    ("form", |weights| &mut weights.form),
    ("related", |weights| &mut weights.related),
    ("loose", |weights| &mut weights.loose),
    ("weak", |weights| &mut weights.weak),
    ("session", |weights| &mut weights.session),
    ("window", |weights| &mut weights.window),
    ("passage", |weights| &mut weights.passage),
    ("title", |weights| &mut weights.title),
    ("window bytes", |weights| &mut weights.window_bytes),
    ("passage length", |weights| &mut weights.passage_length),
    ("coordination", |weights| &mut weights.coordination),
    ("near", |weights| &mut weights.near),
    ("time", |weights| &mut weights.time),
    ("recency", |weights| &mut weights.recency),
    ("prompts", |weights| &mut weights.kinds[0]),
];
const FACTORS: [f32; 4] = [0.0, 0.5, 1.5, 2.5];
/// An improvement that is not chance.
const LEAST: f64 = 0.002;

pub fn cross_check(archive: &Experiment, world: &World, by_bm25: &Places) {
    // The conversations were written by themselves: what is learned from them must not cost anything elsewhere.
    let (talks, facts): (Vec<&Asked>, Vec<&Asked>) =
        (world.talks.iter().collect(), world.questions.iter().collect());
    let weights = learn(archive, world, &talks);
    let figures = |asked: &[&Asked], weights: &Weights| Figures::of(&places(archive, world, asked, weights));
    let usual = Weights::default();
    println!("learned from talks: {weights:?}");
    println!("on talks: learned{}, usual{}", figures(&talks, &weights), figures(&talks, &usual));
    println!("on facts: learned{}, usual{}", figures(&facts, &weights), figures(&facts, &usual));
    for half in 0..2 {
        let (learned_from, measured): (Vec<usize>, Vec<usize>) =
            (0..world.questions.len()).partition(|number| world.questions[*number].fact % 2 == half);
        let pick = |numbers: &[usize]| {
            numbers.iter().map(|number| &world.questions[*number]).collect::<Vec<&Asked>>()
        };
        let (from, on) = (pick(&learned_from), pick(&measured));
        let weights = learn(archive, world, &from);
        let usual = Figures::of(&places(archive, world, &on, &Weights::default()));
        let learned = Figures::of(&places(archive, world, &on, &weights));
        let plain = Figures::of(&measured.iter().map(|number| by_bm25[*number]).collect());
        println!("learned from half {half}: {weights:?}");
        println!("on the other half: learned{learned}, usual{usual}, BM25{plain}");
    }
}

fn learn(archive: &Experiment, world: &World, asked: &[&Asked]) -> Weights {
    let worth = |weights: &Weights| Figures::of(&places(archive, world, asked, weights)).worth();
    let mut best = Weights::default();
    let mut known = worth(&best);
    for (name, of) in CHANGES {
        let start = best.clone();
        for factor in FACTORS {
            let mut tried = start.clone();
            let weight = of(&mut tried);
            *weight *= factor;
            let (value, found) = (*weight, worth(&tried));
            println!("  {name} {value:.3}: {:+.4}", found - known);
            if found > known + LEAST {
                (best, known) = (tried, found);
            }
        }
    }
    best
}
