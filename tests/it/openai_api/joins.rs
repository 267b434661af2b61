//! Traces of one session are joined, whatever files, order and imports they come in.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::openai_api::{fixture, ids, import, session, steps};
use annals_testkit::Bench;

fn write(bench: &Bench, name: &str, lines: &[Value]) -> PathBuf {
    let path = bench.user().join(name);
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    path
}

fn response(id: &str, previous: Option<&str>, at: i64, text: &str) -> Value {
    json!({
        "id": id, "object": "response", "created_at": at, "status": "completed", "model": "gpt-5",
        "previous_response_id": previous,
        "output": [{"id": format!("msg_{id}"), "type": "message", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text}]}],
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 5,
                  "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15},
    })
}

fn completion(id: &str, at: i64, text: &str) -> Value {
    json!({
        "id": id, "object": "chat.completion", "created": at, "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
}

fn batch_request(custom_id: &str, model: &str, text: &str) -> Value {
    json!({"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions",
           "body": {"model": model, "messages": [{"role": "user", "content": text}]}})
}

fn batch_response(custom_id: &str, body: &Value) -> Value {
    json!({"id": format!("batch_req_{custom_id}"), "custom_id": custom_id, "error": null,
           "response": {"status_code": 200, "request_id": "req_1", "body": body}})
}

fn litellm(id: &str, at: i64, messages: &Value, answer: &str) -> Value {
    json!({"id": id, "litellm_call_id": format!("call-{id}"), "call_type": "acompletion", "startTime": at,
           "endTime": at + 1, "model": "gpt-4o", "model_group": "gpt-4o", "messages": messages, "status": "success",
           "response": completion(id, at, answer), "response_cost": 0.01, "prompt_tokens": 10, "completion_tokens": 5})
}

#[test]
fn a_chain_of_responses_is_one_session_in_every_order() {
    let [a, b, c] = [
        response("resp_a", None, 100, "one"),
        response("resp_b", Some("resp_a"), 200, "two"),
        response("resp_c", Some("resp_b"), 300, "three"),
    ];
    let expected_steps = ["answer: one", "answer: two", "answer: three"];
    // In one import: the order of the files does not matter.
    let bench = Bench::new();
    let files = [
        write(&bench, "1.json", std::slice::from_ref(&c)),
        write(&bench, "2.json", std::slice::from_ref(&a)),
        write(&bench, "3.json", std::slice::from_ref(&b)),
    ];
    import(&bench, &files.iter().map(PathBuf::as_path).collect::<Vec<_>>());
    assert_eq!(ids(&bench), ["resp_a"]);
    assert_eq!(steps(&bench, "resp_a"), expected_steps);
    assert_eq!(session(&bench, "resp_a")["tokens"]["total"], 45);
    // In two imports, forwards and backwards.
    for (first, second, name) in [
        (vec![&a, &b], vec![&c], "resp_a"),
        (vec![&c], vec![&b, &a], "resp_c"),
        (vec![&b], vec![&c, &a], "resp_b"),
    ] {
        let bench = Bench::new();
        for (number, part) in [first, second].into_iter().enumerate() {
            let lines: Vec<Value> = part.into_iter().cloned().collect();
            import(&bench, &[&write(&bench, &format!("{number}.jsonl"), &lines)]);
        }
        assert_eq!(ids(&bench), [name]);
        let mut found = steps(&bench, name);
        found.sort();
        let mut expected = expected_steps;
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_same_response_in_two_forms_counts_once() {
    let messages = json!([{"role": "user", "content": "How many?"}]);
    let alone = completion("chatcmpl-Same", 100, "Four.");
    let logged = litellm("chatcmpl-Same", 100, &messages, "Four.");
    let batch = batch_response("same-1", &alone);
    let har = json!({"log": {"version": "1.2", "entries": [{
        "startedDateTime": "1970-01-01T00:01:39Z", "time": 5, "timings": {},
        "request": {"method": "POST", "url": "https://api.openai.com/v1/chat/completions", "headers": [],
                    "postData": {"text": json!({"model": "gpt-4o", "messages": messages}).to_string()}},
        "response": {"status": 200, "headers": [], "content": {"text": alone.to_string()}}}]}});
    let forms = [alone, logged, batch, har];
    for first in 0..forms.len() {
        let bench = Bench::new();
        for number in 0..forms.len() {
            let form = &forms[(first + number) % forms.len()];
            import(&bench, &[&write(&bench, &format!("{number}.json"), std::slice::from_ref(form))]);
        }
        assert_eq!(ids(&bench).len(), 1, "{:?}", ids(&bench));
        let joined = session(&bench, &ids(&bench)[0]);
        assert_eq!(
            (&joined["message_count"], &joined["tokens"]["total"]),
            (&json!(2), &json!(15)),
            "{joined}"
        );
        assert!((joined["cost_usd"].as_f64().unwrap() - 0.01).abs() < 1e-9, "{joined}");
    }
}

#[test]
fn a_request_that_repeats_history_continues_its_session() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let system = |text: &str| json!({"role": "system", "content": text});
    let answered = |text: &str| json!({"role": "assistant", "content": text});
    let calls = [
        litellm("chatcmpl-1", 100, &json!([system("It is Monday."), user("Hello")]), "Hi."),
        litellm(
            "chatcmpl-2",
            200,
            &json!([system("It is Tuesday."), user("Hello"), answered("Hi."), user("More")]),
            "Yes.",
        ),
        // A client that omits the start.
        litellm("chatcmpl-3", 300, &json!([user("More"), answered("Yes."), user("End")]), "Bye."),
        // The same text elsewhere is not part of it.
        litellm("chatcmpl-4", 150, &json!([user("Hello")]), "Hi."),
    ];
    let session_of = |mut call: Value, name: &str| {
        call["session_id"] = json!(name);
        call
    };
    let expected_steps = ["prompt: Hello", "answer: Hi.", "prompt: More", "answer: Yes."];
    for one_import in [true, false] {
        let bench = Bench::new();
        let first: Vec<Value> = calls[..2].to_vec();
        if one_import {
            import(&bench, &[&write(&bench, "all.jsonl", &first)]);
        } else {
            for (number, call) in first.iter().enumerate() {
                import(&bench, &[&write(&bench, &format!("{number}.json"), std::slice::from_ref(call))]);
            }
        }
        import(&bench, &[&write(&bench, "other.json", &[calls[3].clone()])]);
        assert_eq!(ids(&bench), ["chatcmpl-1", "chatcmpl-4"]);
        let joined: Vec<String> =
            steps(&bench, "chatcmpl-1").into_iter().filter(|step| !step.starts_with("injected")).collect();
        assert_eq!(joined, expected_steps);
    }
    let bench = Bench::new();
    let calls: Vec<Value> = calls[..3].iter().map(|call| session_of(call.clone(), "one")).collect();
    import(&bench, &[&write(&bench, "all.jsonl", &calls)]);
    let joined = session(&bench, "one");
    assert_eq!((&joined["user_message_count"], &joined["assistant_message_count"]), (&json!(3), &json!(3)));
}

#[test]
fn batches_are_joined_in_both_orders() {
    let folder = fixture("batch");
    let parts =
        ["requests.jsonl", "batch_68a0_output.jsonl", "batch_68a0_error.jsonl"].map(|name| folder.join(name));
    for order in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
        for together in [true, false] {
            let bench = Bench::new();
            let paths: Vec<&Path> = order.iter().map(|number| parts[*number].as_path()).collect();
            match together {
                true => drop(import(&bench, &paths)),
                false => paths.iter().for_each(|path| drop(import(&bench, &[path]))),
            }
            assert_eq!(ids(&bench).len(), 3, "{order:?} {together} {:?}", ids(&bench));
            let mut sessions: Vec<Vec<String>> = ids(&bench).iter().map(|id| steps(&bench, id)).collect();
            sessions.iter_mut().for_each(|steps| steps.sort());
            sessions.sort();
            let expected = [
                vec!["answer: A gannet.", "injected: Name the bird.", "prompt: It dives for herring."],
                vec!["answer: A nightingale.", "prompt: It sings at night."],
                vec!["event error: bad_request The model refused the request.", "prompt: It has no name."],
            ];
            assert_eq!(sessions, expected, "{order:?} {together}");
        }
    }
}

#[test]
fn the_same_name_in_another_batch_is_another_call() {
    let first = [
        batch_request("request-1", "gpt-4o-mini", "first?"),
        batch_response("request-1", &completion("chatcmpl-1", 100, "first.")),
    ];
    let second = [
        batch_request("request-1", "gpt-4o-mini", "second?"),
        batch_response("request-1", &completion("chatcmpl-2", 200, "second.")),
    ];
    let apart = |bench: &Bench| {
        let mut sessions: Vec<Vec<String>> = ids(bench).iter().map(|id| steps(bench, id)).collect();
        sessions.sort();
        sessions
    };
    // Batch by batch, each with its own answers.
    let bench = Bench::new();
    import(&bench, &[&write(&bench, "in.jsonl", &first[..1]), &write(&bench, "out.jsonl", &first[1..])]);
    import(&bench, &[&write(&bench, "in2.jsonl", &second[..1])]);
    import(&bench, &[&write(&bench, "out2.jsonl", &second[1..])]);
    assert_eq!(apart(&bench), [["prompt: first?", "answer: first."], ["prompt: second?", "answer: second."]]);
    // Both at once, each in a separate directory.
    let bench = Bench::new();
    let folder = bench.user().join("batches");
    for (name, batch) in [("one", &first), ("two", &second)] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        write(&bench, &format!("batches/{name}/in.jsonl"), &batch[..1]);
        write(&bench, &format!("batches/{name}/out.jsonl"), &batch[1..]);
    }
    import(&bench, &[&folder]);
    assert_eq!(apart(&bench), [["prompt: first?", "answer: first."], ["prompt: second?", "answer: second."]]);
    // Both requests first: nobody knows which answer belongs to which, so none is assigned wrongly.
    let bench = Bench::new();
    import(&bench, &[&write(&bench, "in.jsonl", &first[..1])]);
    import(&bench, &[&write(&bench, "in2.jsonl", &second[..1])]);
    let report = import(&bench, &[&write(&bench, "out.jsonl", &first[1..])]).to_string();
    assert!(report.contains("several batches use this id"), "{report}");
    assert_eq!(ids(&bench).len(), 3);
    // In one import the model tells them apart, if it differs.
    let bench = Bench::new();
    let other = batch_request("request-1", "gpt-5", "other?");
    let answer = batch_response("request-1", &response("resp_9", None, 100, "other."));
    import(&bench, &[&write(&bench, "all.jsonl", &[other, first[0].clone(), first[1].clone(), answer])]);
    assert_eq!(apart(&bench), [["prompt: first?", "answer: first."], ["prompt: other?", "answer: other."]]);
}

#[test]
fn a_list_of_items_repeats_nothing() {
    let bench = Bench::new();
    let body = json!({"model": "gpt-5", "conversation": "conv_1", "input": "Same words"});
    let mut answer = response("resp_1", None, 100, "Answer");
    answer["conversation"] = json!({"id": "conv_1"});
    let har = json!({"log": {"version": "1.2", "entries": [{
        "startedDateTime": "2025-09-02T11:00:00Z", "time": 5, "timings": {},
        "request": {"method": "POST", "url": "https://api.openai.com/v1/responses", "headers": [],
                    "postData": {"text": body.to_string()}},
        "response": {"status": 200, "headers": [], "content": {"text": answer.to_string()}}}]}});
    let item = |id: &str, role: &str, text: &str| {
        json!({"id": id, "type": "message", "status": "completed", "role": role,
               "content": [{"type": "input_text", "text": text}]})
    };
    // As the API lists them: newest first.
    let items = [
        item("msg_resp_1", "assistant", "Answer"),
        item("msg_69a5700100000000000000000000000000000000", "user", "Same words"),
    ];
    let list = json!({"object": "list", "data": items, "first_id": "msg_resp_1", "has_more": false});
    for order in [[&har, &list], [&list, &har]] {
        let bench = Bench::new();
        for (number, part) in order.into_iter().enumerate() {
            import(&bench, &[&write(&bench, &format!("conv_1.{number}.json"), std::slice::from_ref(part))]);
        }
        assert_eq!(ids(&bench), ["conv_1"]);
        let mut texts = steps(&bench, "conv_1");
        texts.sort();
        assert_eq!(texts, ["answer: Answer", "prompt: Same words"]);
    }
    drop(bench);
}

#[test]
fn a_later_file_completes_an_earlier_partial_one() {
    // A log without messages and cached tokens, then the response itself.
    let bench = Bench::new();
    let mut log = litellm("resp_1", 100, &json!({}), "");
    log["response"] = json!({});
    import(&bench, &[&write(&bench, "log.json", &[log])]);
    assert_eq!(session(&bench, "resp_1")["tokens"]["cache_read"], 0);
    import(&bench, &[&write(&bench, "response.json", &[response("resp_1", None, 100, "whole")])]);
    let joined = session(&bench, "resp_1");
    assert_eq!(
        (&joined["tokens"]["input"], &joined["tokens"]["cache_read"], &joined["tokens"]["total"]),
        (&json!(6), &json!(4), &json!(15))
    );
    assert_eq!((&joined["message_count"], &joined["billing_source"]), (&json!(1), &json!("reported")));
    // An interrupted stream, then the complete answer: it is one answer.
    let bench = Bench::new();
    import(&bench, &[&fixture("har")]);
    import(
        &bench,
        &[&write(
            &bench,
            "whole.json",
            &[response("resp_h2", Some("resp_h1"), 1_756_812_000, "Low water at six.")],
        )],
    );
    let joined = session(&bench, "resp_h1");
    assert_eq!((&joined["message_count"], &joined["tokens"]["total"]), (&json!(4), &json!(79 + 15)));
    let steps = steps(&bench, "resp_h1");
    assert_eq!(steps[steps.len() - 2..], ["notice: Low wat", "answer: Low water at six."]);
}
