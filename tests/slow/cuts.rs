//! A transcript that arrives in pieces, cut at any byte, gives the same rows as the complete one.

use std::fs::OpenOptions;
use std::io::Write;

use annals_testkit::Bench;
use annals_testkit::checks::{assert_accounts_add_up, assert_same, without_versions};
use annals_testkit::codex::{ID, busy_transcript, rollout};

/// Rows and accounts, without a separate query for each session.
fn answers(bench: &Bench) -> String {
    let mut text = String::new();
    let mut sessions = bench.sessions();
    sessions.sort_by_key(|session| session["session_id"].to_string());
    sessions.iter().for_each(|session| text += &format!("{session}\n"));
    for stream in ["codex_cli/messages", "codex_cli/function_calls"] {
        let records = bench.run(&["records", stream, "--full"]).stdout;
        let mut records: Vec<&str> = records.lines().collect();
        records.sort_unstable();
        text += &format!("{stream}\n{}\n", records.join("\n"));
    }
    bench.accounts().iter().for_each(|file| text += &format!("{file}\n"));
    without_versions(&text)
}

/// Many transcripts at once, each written in its own pieces, with one sync after each piece.
fn assert_pieces_equal_whole(cuts: &[Vec<usize>]) {
    let bench = Bench::new();
    let pieces = cuts.iter().map(Vec::len).max().unwrap() + 1;
    for piece in 0..pieces {
        for (number, cuts) in cuts.iter().enumerate() {
            let id = format!("0199a1b2-0000-7000-8000-{number:012}");
            let whole = busy_transcript(&id);
            let start = if piece == 0 { 0 } else { cuts[piece - 1] };
            let end = cuts.get(piece).copied().unwrap_or(whole.len());
            if piece == 0 {
                bench.transcript(&rollout(&id), &[]);
            }
            let path = bench.codex().join("sessions/2026/11/15").join(rollout(&id));
            let mut file = OpenOptions::new().append(true).open(path).unwrap();
            file.write_all(&whole.as_bytes()[start..end]).unwrap();
        }
        bench.sync();
    }
    let fresh = Bench::with_home("codex_cli", &bench.codex());
    fresh.sync();
    let whole = answers(&fresh);
    assert_same(&answers(&bench), &whole);
    assert_accounts_add_up(&bench, &bench.codex());
    assert_eq!(bench.run(&["rebuild"]).code, 0);
    assert_same(&answers(&bench), &whole);
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    let length = busy_transcript(ID).len();
    let cuts: Vec<Vec<usize>> = (0..=length).map(|at| vec![at]).collect();
    assert_pieces_equal_whole(&cuts);
}

#[test]
fn two_cuts_at_any_bytes_change_nothing() {
    let length = busy_transcript(ID).len() as u64;
    let mut random = 20_261_115_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % (length + 1)) as usize
    };
    let cuts: Vec<Vec<usize>> = (0..200)
        .map(|_| {
            let (one, other) = (next(), next());
            vec![one.min(other), one.max(other)]
        })
        .collect();
    assert_pieces_equal_whole(&cuts);
}
