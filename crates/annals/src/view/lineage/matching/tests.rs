//! Which of several edits gets a line, on small files.

use super::*;

fn lines(text: &str) -> Vec<HunkLine> {
    text.lines().map(|line| HunkLine::new(line, false)).collect()
}

fn hunk(call: usize, at: i64, text: &str) -> Hunk {
    Hunk {
        call,
        read: false,
        same_file: true,
        nearness: 1,
        at,
        start: None,
        lines: lines(text),
        loose: false,
    }
}

fn grades_of(file: &str, hunks: &[Hunk]) -> String {
    grades_by(file, &[], false, hunks)
}

fn grades_by(file: &str, deadlines: &[i64], first: bool, hunks: &[Hunk]) -> String {
    let traced = TracedLines { lines: &lines(file), deadlines, first };
    let claims = claim_lines(traced, hunks, &|_| 1.0);
    let code = |claim: &Option<Claim>| match claim {
        Some(claim) => format!("{}{}", &claim.grade.name()[..1], hunks[claim.hunk].call),
        None => "-".to_owned(),
    };
    claims.iter().map(code).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_latest_writer_has_the_line() {
    let first = hunk(0, 1, "fn alpha() {\n    first_thing();\n    second_thing();\n}\nfn omega() {}");
    let second = hunk(1, 2, "fn alpha() {\n    first_thing();\n    second_thing();\n}");
    let file = "fn alpha() {\n  first_thing();\n  second_thing();\n}\nfn omega() {}";
    assert_eq!(grades_of(file, &[first.clone(), second]), "e1 e1 e1 e1 e0");
    assert_eq!(grades_of(file, &[first]), "e0 e0 e0 e0 e0");
}

#[test]
fn no_edit_wrote_what_was_there_before_it() {
    let text = "fn alpha() {\n    first_thing();\n    second_thing();\n}\nfn omega() {}";
    let (early, later) = (hunk(0, 10, text), hunk(1, 20, text));
    let hunks = [early, later];
    assert_eq!(grades_by(text, &[15; 5], false, &hunks), "e0 e0 e0 e0 e0");
    assert_eq!(grades_by(text, &[15, 25, 15, 15, 25], false, &hunks), "e0 e1 e0 e0 e1");
    assert_eq!(grades_by(text, &[5; 5], false, &hunks), "- - - - -");
    assert_eq!(grades_by("1.2", &[15], false, &[hunk(0, 10, "1.2"), hunk(1, 20, "1.2")]), "e0");
    // A session that quotes the line later does not outdo its writer, however much it quotes around it.
    let quote = hunk(1, 20, "above_it_one();\nabove_it_two();\nfirst_thing();\nbelow_it_one();");
    let file = "above_it_one();\nabove_it_two();\nfirst_thing();\nbelow_it_one();";
    assert_eq!(grades_by(file, &[15; 4], false, &[hunk(0, 10, "first_thing();"), quote]), "- - e0 -");
    let mut read = hunk(2, 30, text);
    read.read = true;
    assert_eq!(grades_by(text, &[5; 5], false, &[read]), "r2 r2 r2 r2 r2");
}

#[test]
fn the_first_writer_of_a_passage_is_wanted() {
    let text = "fn alpha() {\n    first_thing();\n}";
    let hunks = [hunk(0, 10, text), hunk(1, 20, text)];
    assert_eq!(grades_by(text, &[], true, &hunks), "e0 e0 e0");
    assert_eq!(grades_by("1.2", &[], true, &[hunk(0, 20, "1.2"), hunk(1, 10, "1.2")]), "e1");
}

#[test]
fn small_lines_need_company() {
    let hunk = hunk(0, 1, "fn alpha() {\n    first_thing();\n}");
    assert_eq!(
        grades_of("mine();\n}\nfn alpha() {\n    first_thing();\n}\n}\nother_mine();", &[hunk]),
        "- - e0 e0 e0 - -"
    );
}

#[test]
fn a_file_written_completely_by_a_call_belongs_to_it() {
    let written = hunk(0, 1, "1.2");
    assert_eq!(grades_of("1.2", std::slice::from_ref(&written)), "e0");
    assert_eq!(grades_of("1.2\n", &[written.clone(), hunk(1, 2, "1.2"), hunk(2, 3, "1.3")]), "e1");
    assert_eq!(grades_of("1.2\n3", std::slice::from_ref(&written)), "- -", "a part is not the whole");
    assert_eq!(grades_of("", &[hunk(0, 1, "")]), "");
    let elsewhere = Hunk { same_file: false, ..written };
    assert_eq!(grades_of("1.2", std::slice::from_ref(&elsewhere)), "-", "so are many files of that name");
    let elsewhere = Hunk { lines: lines("int needle;"), ..elsewhere };
    assert_eq!(grades_of("int needle;", std::slice::from_ref(&elsewhere)), "m0");
    let nameless = Hunk { nearness: 0, ..elsewhere };
    assert_eq!(grades_of("int needle;", &[nameless]), "-");
}

#[test]
fn one_line_of_a_later_edit_does_not_break_a_long_run() {
    let long = hunk(0, 1, "one_line_here\ntwo_line_here\nlog_debug_done\nfour_line_here\nfive_line_here");
    let short = hunk(1, 2, "log_debug_done");
    let file = "one_line_here\ntwo_line_here\nlog_debug_done\nfour_line_here\nfive_line_here\nlog_debug_done";
    assert_eq!(grades_of(file, &[long, short]), "e0 e0 e0 e0 e0 e1");
}

#[test]
fn blocks_that_changed_places_were_moved() {
    let written = hunk(0, 1, "alpha_one();\nalpha_two();\nalpha_three();\nbeta_one();\nbeta_two();");
    let file = "beta_one();\nbeta_two();\nalpha_one();\nalpha_two();\nalpha_three();";
    assert_eq!(grades_of(file, std::slice::from_ref(&written)), "m0 m0 e0 e0 e0");
    let elsewhere = Hunk { same_file: false, ..written };
    assert_eq!(grades_of("alpha_one();\nalpha_two();", &[elsewhere]), "m0 m0");
}

#[test]
fn lines_that_were_broken_or_changed_are_found_between() {
    let hunk = hunk(0, 1, "start_of_it();\ncall(first, second, third);\nlet total = 1;\nend_of_it();");
    let file = "start_of_it();\ncall(\n    first,\n    second,\n    third,\n);\nlet total = 1;\nend_of_it();";
    assert_eq!(grades_of(file, std::slice::from_ref(&hunk)), "e0 e0 e0 e0 e0 e0 e0 e0");
    let changed = "start_of_it();\ncall(first, second_one, third);\nlet total = 1;\nend_of_it();";
    assert_eq!(grades_of(changed, &[hunk]), "e0 c0 e0 e0");
}

#[test]
fn what_was_seen_is_not_written() {
    let mut seen = hunk(0, 5, "human_line_one\nhuman_line_two\nagent_line_one");
    seen.read = true;
    let wrote = hunk(1, 1, "agent_line_one");
    assert_eq!(grades_of("human_line_one\nhuman_line_two\nagent_line_one", &[seen, wrote]), "r0 r0 e1");
}
