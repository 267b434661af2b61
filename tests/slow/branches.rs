//! A conversation with as many branches as there are answers: shown as a stream, within little memory.

use std::io::Write as _;
use std::process::Command;

use annals_testkit::{Bench, Ran};
use serde_json::{Value, json};

const BRANCHES: usize = 100_000;
const ID: &str = "6a000000-0000-4000-8000-000000000001";

/// One question with this many answers.
fn export(bench: &Bench) -> std::path::PathBuf {
    let path = bench.folder.path().join("conversations.json");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let node = |id: &str, role: &str, text: &str, parent: Value, children: Vec<String>| {
        let message = json!({
            "id": id, "author": {"role": role}, "create_time": 1_700_000_000.0, "status": "finished_successfully",
            "content": {"content_type": "text", "parts": [text]}, "metadata": {},
        });
        json!({"id": id, "message": message, "parent": parent, "children": children})
    };
    let answers: Vec<String> = (0..BRANCHES).map(|at| format!("answer-{at:06}")).collect();
    write!(
        file,
        "[{{\"title\": \"Many answers\", \"create_time\": 1700000000, \"update_time\": 1700000001, \
         \"conversation_id\": \"{ID}\", \"current_node\": \"answer-000000\", \"mapping\": {{"
    )
    .unwrap();
    write!(
        file,
        "\"root\": {}",
        json!({"id": "root", "message": null, "parent": null, "children": ["question"]})
    )
    .unwrap();
    write!(file, ", \"question\": {}", node("question", "user", "how?", json!("root"), answers.clone()))
        .unwrap();
    for (at, id) in answers.iter().enumerate() {
        let text = format!("the {at}th way");
        write!(file, ", \"{id}\": {}", node(id, "assistant", &text, json!("question"), Vec::new())).unwrap();
    }
    file.write_all(b"}}]").unwrap();
    file.into_inner().unwrap();
    path
}

/// The program with at most this much address space, in MiB.
fn within(bench: &Bench, mebibytes: u64, arguments: &[&str]) -> Ran {
    let plain = bench.command(arguments);
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {}; exec \"$0\" \"$@\"", mebibytes * 1_024);
    command.args(["-c", &script]).arg(plain.get_program()).args(plain.get_args()).env_clear();
    for (name, value) in plain.get_envs() {
        value.map(|value| command.env(name, value));
    }
    Ran::of(command.output().unwrap())
}

#[test]
fn a_hundred_thousand_branches_are_shown_as_a_stream() {
    let bench = Bench::new();
    let export = export(&bench);
    assert_eq!(bench.run(&["import", export.to_str().unwrap()]).code, 0);
    let ran = within(&bench, 512, &["show", ID, "--branch", "all", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let messages = shown["messages"].as_array().unwrap();
    assert_eq!(messages.len(), BRANCHES + 1);
    for at in [0, 1, BRANCHES / 2, BRANCHES - 1] {
        let message = &messages[at + 1];
        assert_eq!(message["branch_count"], BRANCHES, "{message}");
        let near = message["branches"].as_array().unwrap();
        assert!(near.len() <= 20, "{message}");
        let own = near.iter().find(|branch| branch["id"] == message["id"]);
        assert_eq!(own.unwrap()["number"], at + 1, "{message}");
    }
    let ran = within(&bench, 512, &["show", ID, "--branch", "all"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("the 99999th way") && ran.stdout.contains("and 99,980 more"));
}
