//! Every line of a made-up repository is traced to who wrote it, whatever was done to the repository since.

use std::path::Path;

use serde_json::Value;

use crate::lineage_world::{GRADES, Plan, Score, World, write_world};
use crate::support::{Bench, copy_folder};

/// A bench whose homes a world was written into.
fn bench_of(plan: &Plan) -> (Bench, World) {
    let bench = Bench::new();
    let world = write_world(bench.folder.path(), plan).unwrap();
    copy_folder(&bench.folder.path().join("codex"), &bench.codex());
    copy_folder(&bench.folder.path().join("claude"), &bench.claude());
    bench.sync();
    (bench, world)
}

fn blamed(bench: &Bench, file: &Path) -> Value {
    let ran = bench.run(&["blame", "--no-git", "--json", file.to_str().unwrap()]);
    assert!(ran.code < 2, "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn lines_are_traced_through_renames_moves_and_formatting() {
    let mut score = Score::default();
    for seed in [3, 77] {
        let (bench, world) = bench_of(&Plan { seed, sessions: 20, edits: 14 });
        for (path, truth) in &world.files {
            score.add(truth, &blamed(&bench, &world.folder.join(path)));
        }
    }
    let told: Vec<String> = GRADES
        .iter()
        .zip(score.graded)
        .map(|(grade, count)| format!("{grade} {:.4} of {}", count.share(), count.all))
        .collect();
    println!("{}", told.join(", "));
    assert!(score.unmodified.all > 3_000, "{score:?}");
    assert!(score.graded[0].share() >= 0.99, "exact: {score:?}");
    assert!(score.graded[1].share() >= 0.99, "moved: {score:?}");
    assert!(score.unmodified.share() >= 0.95, "recall: {score:?}");
    assert!(score.human.share() >= 0.99, "human: {score:?}");
}
