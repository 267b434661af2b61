//! Titles that older clients wrote into other sessions' files.

use serde_json::{Value, json};

use super::{FOLDER, ONE, TWO, answer_row, assert_sound, fork_of, session, talk, text, write};
use annals_testkit::Bench;
use annals_testkit::checks::assert_rebuilds;
use annals_testkit::codex::text_of;

/// The row that a title names is in a session and in its fork: the session has it, whichever file arrives first and
/// whichever name sorts first.
#[test]
fn a_title_goes_to_the_session_whose_own_row_it_names() {
    let fork = "00000000-0000-4000-8000-000000000001";
    let old = |line: &String| line.replace("2.1.197", "1.0.128");
    let original: Vec<String> = talk(ONE).iter().map(old).collect();
    let forked: Vec<String> = fork_of(fork, &talk(ONE)).iter().map(old).collect();
    let last: Value = serde_json::from_str(original.last().unwrap()).unwrap();
    let title = json!({"type": "summary", "summary": "Steam", "leafUuid": last["uuid"]}).to_string();
    let mut other = vec![title];
    other.push(old(&answer_row(TWO, 300, "msg_9", text("Later."), 1)));
    let files = [(ONE, original), (fork, forked), (TWO, other)];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let bench = Bench::new();
        for at in order {
            write(&bench, FOLDER, files[at].0, &text_of(&files[at].1));
            bench.sync();
        }
        assert_eq!(session(&bench, ONE)["title"], "Steam", "{order:?}");
        assert_ne!(session(&bench, fork)["title"], "Steam", "{order:?}");
        assert_sound(&bench);
        // Without the title's file, the session is called by its first prompt again.
        write(&bench, FOLDER, TWO, &text_of(&files[2].1[1..]));
        bench.sync();
        assert_ne!(session(&bench, ONE)["title"], "Steam", "{order:?}");
        assert_rebuilds(&bench);
    }
}
