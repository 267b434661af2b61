//! A provider that answers in ways that nobody expects: one thing that can not be had never keeps others from being had,
//! and nothing ends that did not end.

use serde_json::{Value, json};

use crate::standin::{Stage, id_of};

fn small(more: Value) -> Value {
    let mut world = json!({"conversations": 8, "archived": 0, "projects": {}});
    world.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    world
}

#[test]
fn one_that_breaks_off_or_leads_elsewhere_is_a_gap_and_all_others_are_had() {
    let of = |number: usize| format!("/conversation/{}", id_of(number));
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let stage = Stage::connected(small(json!({"batch": false, "odd": {
        of(7): {"cut": true, "body": "{\"title\":"},
        of(6): {"status": 302, "location": "http://127.0.0.1:1/elsewhere"},
        of(5): {"body": nested},
        of(4): {"body": "[1,2]"},
        of(3): {"body": "{\"mapping\":{\"r\":{\"parent\":null}},\"current_node\":\"r\" \"x\"}"},
    }})));
    let live = stage.sync();
    assert_eq!((&live["fetched"], &live["gaps_open"]), (&json!(3), &json!(5)), "{live}");
    assert_eq!(stage.conversations(), [0, 1, 2].map(id_of));
    let gaps = stage.gaps();
    let why = |number: usize| gaps.iter().find(|gap| gap["key"] == id_of(number)).unwrap()["why"].clone();
    assert_eq!(
        [7, 6, 5, 4, 3].map(why),
        ["timeout", "timeout", "malformed", "malformed", "malformed"].map(Value::from)
    );
    // Not a word of the session went to the other address, and what heals is had.
    stage.standin.control(json!({"odd": {}}));
    let healed = stage.retry_gaps();
    assert_eq!((&healed["recovered"], &healed["open"]), (&json!(5), &json!(0)), "{healed}");
    assert_eq!(stage.conversations().len(), 8);
}
