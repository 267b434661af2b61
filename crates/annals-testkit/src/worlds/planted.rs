//! Homes with many kinds of secrets in every place that a client writes to, and the check that none is shown.

use std::path::Path;

use crate::Bench;
use crate::corpora::chatgpt::{
    Conversation, Generation, call, export, message, result, text_message, write_folder,
};
use serde_json::{Value, json};

/// The sources whose homes contain the secrets.
pub const CLIENTS: [&str; 2] = ["codex_cli", "claude_code"];

/// A secret, and the context that gives it away.
pub struct Planted {
    pub name: &'static str,
    pub value: String,
    /// The value in its context; the value alone if its shape is enough.
    pub in_context: String,
}

/// Name, prefix, alphabet and length of the rest: `a` letters and digits, `x` hexadecimal, `u` capitals and digits.
const SHAPED: &str = "anthropic sk-ant-api03- a 93 | openai sk-proj- a 64 | openai-old sk- a 48 |
    openrouter sk-or-v1- x 64 | groq gsk_ a 52 | perplexity pplx- a 48 | xai xai- a 80 | replicate r8_ a 37 |
    huggingface hf_ a 34 | github ghp_ a 36 | github-app ghs_ a 36 | github-fine github_pat_ a 82 |
    gitlab glpat- a 20 | gitlab-runner glrt- a 20 | bitbucket ATBB a 32 | atlassian ATATT3xFfGF0 a 90 |
    npm npm_ a 36 | pypi pypi-AgEIcHlwaS5vcmc a 90 | rubygems rubygems_ x 48 | docker dckr_pat_ a 27 |
    sonar sqp_ x 40 | aws-id AKIA u 16 | aws-session IQoJb3JpZ2luX2Vj a 200 | google AIza a 35 |
    google-client GOCSPX- a 28 | google-access ya29.a0 a 90 | digitalocean dop_v1_ x 64 | databricks dapi x 32 |
    doppler dp.pt. a 43 | fly fm2_ a 120 | netlify nfp_ a 36 | supabase sbp_ x 40 | planetscale pscale_tkn_ a 43 |
    pulumi pul- x 40 | tailscale tskey-auth- a 32 | vault hvs. a 90 | age AGE-SECRET-KEY-1 u 58 | grafana glc_ a 60 |
    newrelic NRAK- u 27 | sentry sntryu_ x 64 | slack xoxb-100000000001-100000000002- a 24 | stripe sk_live_ a 24 |
    stripe-hook whsec_ a 32 | shopify shpat_ x 32 | square sq0atp- a 22 | linear lin_api_ a 40 | notion ntn_ a 46 |
    figma figd_ a 40 | telegram 1234567890:AA a 33 | facebook EAA a 120";

/// Name, context with the value at `§`, alphabet and length.
const IN_CONTEXT: &[(&str, &str, char, usize)] = &[
    ("aws-secret", "AWS_SECRET_ACCESS_KEY=§", 'a', 40),
    ("password", "DB_PASSWORD=§", 'a', 14),
    ("postgres", "PGPASSWORD=§ psql", 'a', 12),
    ("field", r#"{"client_secret": "§"}"#, 'a', 24),
    ("escaped-field", r#"{\"refreshToken\":\"§\"}"#, 'a', 24),
    ("bearer", "Authorization: Bearer §", 'a', 30),
    ("basic", "Proxy-Authorization: Basic §", 'a', 28),
    ("cookie", "Cookie: theme=dark; session=§", 'a', 26),
    ("header", "X-Api-Key: §", 'a', 26),
    ("address", "postgres://ada:§@db.example:5432/engine", 'a', 12),
    ("address-token", "https://§@git.example/ada/engine.git", 'a', 40),
    ("query", "https://api.example/v1?page=2&access_token=§", 'a', 22),
    ("signed", "https://x.blob.example/a?sv=2026-01-01&sig=§", 'a', 43),
    ("account-key", "AccountName=x;AccountKey=§==;EndpointSuffix=y", 'a', 86),
    ("connection", "Server=db;User Id=ada;Password=§;Database=x", 'a', 16),
    ("netrc", "machine git.example login ada password §", 'a', 16),
    ("curl", "curl -sS -u ada:§ https://api.example", 'a', 16),
    ("mysql", "mysql -h db -u ada -p§ shop", 'a', 16),
    ("sshpass", "sshpass -p § ssh ada@host", 'a', 16),
    ("flag", "tool --password § --port 1", 'a', 16),
    ("npmrc", "//registry.example/:_authToken=§", 'a', 36),
    ("wireguard", "PrivateKey = §=", 'a', 43),
    ("cohere", "COHERE_API_KEY=§", 'a', 40),
    ("cloudflare", "CLOUDFLARE_API_TOKEN: §", 'a', 40),
    ("slack-hook", "https://hooks.slack.com/services/T00000001/B00000002/§", 'a', 24),
    ("discord-hook", "https://discord.com/api/webhooks/123456789012345678/§", 'a', 68),
];

/// All secrets: generated at run time, always the same, and all different.
pub fn secrets() -> Vec<Planted> {
    let mut all: Vec<Planted> = SHAPED
        .split('|')
        .map(|row| {
            let [name, start, alphabet, length] = row.split_whitespace().collect::<Vec<_>>()[..] else {
                panic!("{row}")
            };
            let rest = random(name, alphabet.chars().next().unwrap(), length.parse().unwrap());
            bare(name, format!("{start}{rest}"))
        })
        .collect();
    let part = |name: &str, length: usize| random(name, 'a', length);
    let token = format!("eyJ{}.eyJ{}.{}", part("head", 20), part("body", 60), part("sign", 43));
    all.push(bare("jwt", token));
    all.push(bare("sendgrid", format!("SG.{}.{}", part("sendgrid", 22), part("grid", 43))));
    all.push(bare("mailchimp", format!("{}-us21", random("mailchimp", 'x', 32))));
    all.push(bare("terraform", format!("{}.atlasv1.{}", part("terra", 14), part("form", 66))));
    all.extend(IN_CONTEXT.iter().map(|(name, words, alphabet, length)| {
        let value = random(name, *alphabet, *length);
        Planted { name, in_context: words.replace('§', &value), value }
    }));
    for label in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let value = random(label, 'a', 64);
        let in_context =
            format!("-----{0} {label}-----\n{value}\n{value}\n-----{1} {label}-----", "BEGIN", "END");
        all.push(Planted { name: label, value, in_context });
    }
    all
}

/// Writes homes of all sources with all secrets; in those of Codex and Claude Code they are in all places.
pub fn write(bench: &Bench) {
    let all = secrets();
    for (secret, number) in all.iter().zip(1..) {
        write_transcript(bench, secret, number);
        write_conversation(bench, secret, number);
        for home in [bench.codex(), bench.claude()] {
            let file = |path: String, text: String| write_file(&home.join(path), &text);
            let places = secret.places();
            let head = format!("---\nname: n{number}\ndescription: {}\n---\n", secret.line());
            file(format!("skills/s{number}/SKILL.md"), format!("{head}{places}"));
            file(format!("skills/s{number}/notes.txt"), places.clone());
            if secret.is_bare() {
                file(format!("skills/{}/SKILL.md", secret.value), format!("{head}{places}"));
            }
        }
        let file = |home: &Path, path: String| write_file(&home.join(path), &secret.places());
        file(&bench.codex(), format!("prompts/p{number}.md"));
        file(&bench.codex(), format!("memories/m{number}.md"));
        file(&bench.claude(), format!("commands/c{number}.md"));
        file(&bench.claude(), format!("agents/a{number}.md"));
        file(&bench.claude(), format!("plans/p{number}.md"));
        file(&bench.claude(), format!("projects/-home-ada-engine/memory/m{number}.md"));
        if secret.is_bare() {
            file(&bench.codex(), format!("prompts/{}.md", secret.value));
            file(&bench.claude(), format!("commands/{}.md", secret.value));
        }
    }
    let places: String = all.iter().map(Planted::places).collect();
    write_file(&bench.codex().join("AGENTS.md"), &places);
    write_file(&bench.claude().join("CLAUDE.md"), &places);
    write_file(&bench.codex().join("config.toml"), &config(&all));
    write_file(&bench.claude().join("settings.json"), &settings(&all).to_string());
    super::planted_homes::write_other_homes(bench, &all);
    write_histories(bench, &all);
    write_export(bench, &all);
    assert_eq!(bench.run(&["import", export_of(bench).to_str().unwrap()]).code, 0);
    super::planted_homes::import_other_exports(bench, &all);
}

/// Path of the export that contains all of them.
pub fn export_of(bench: &Bench) -> std::path::PathBuf {
    bench.folder.path().join("export")
}

/// Fails if a text contains a secret in any form.
pub fn assert_none(text: &str, what: &str) {
    let leaks = leaks(&secrets(), text, what);
    assert!(leaks.is_empty(), "{leaks:#?}");
}

/// The secrets that a text contains, each with the text before it.
pub fn leaks(secrets: &[Planted], text: &str, what: &str) -> Vec<String> {
    let leak = |secret: &Planted| {
        let forms = secret.forms();
        let at = forms.iter().find_map(|form| text.find(form))?;
        let mut start = at.saturating_sub(80);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        Some(format!("{what}: {}: {:?}", secret.name, &text[start..at + 8]))
    };
    secrets.iter().filter_map(leak).collect()
}

impl Planted {
    /// Whether the value is recognised without context, and fits into a path.
    pub fn is_bare(&self) -> bool {
        self.in_context == self.value
    }

    /// As it is, in JSON, and in URLs; and its end, which would be enough to leak it.
    pub fn forms(&self) -> Vec<String> {
        let escaped = serde_json::to_string(&self.value).unwrap();
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
        let bytes = self.value.bytes();
        let percent = bytes
            .map(|byte| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
        let end = &self.value[self.value.len() - 10..];
        vec![self.value.clone(), escaped.trim_matches('"').to_owned(), percent.collect(), end.to_owned()]
    }

    /// On one line, as in a title.
    pub fn line(&self) -> String {
        self.in_context.replace('\n', "\\n")
    }

    /// In a path, if it can appear there.
    fn in_path(&self) -> &str {
        if self.is_bare() { &self.value } else { "plain" }
    }

    /// Commands, variables, headers, URLs and bodies, and its own context.
    pub fn places(&self) -> String {
        let value = &self.value;
        let in_context = &self.in_context;
        if in_context.contains('\n') {
            return format!(
                "{in_context}\n{}\n{}\n",
                json!({ "private_key": in_context }),
                quoted(&json!({ "pem": in_context }))
            );
        }
        let body = json!({ "user": "ada", "api_key": value, "nested": { "password": value } });
        format!(
            "Here it is: {in_context}\n{in_context}\n\nexport SERVICE_TOKEN={value}; curl -H \"Authorization: Bearer {value}\" \
             https://api.example/v1\nLANG=C\nSERVICE_SECRET={value}\nHOME=/home/ada\n\n> GET /v1 HTTP/1.1\n\
             > X-Api-Key: {value}\n> Cookie: sid={value}; theme=dark\n< Set-Cookie: sid={value}; Path=/; HttpOnly\n\
             https://ada:{value}@api.example/v1?access_token={value}&page=2\n{body}\n{}\n{}\n\
             origin\thttps://x-access-token:{value}@github.com/ada/engine.git (fetch)\n",
            quoted(&body),
            quoted(&Value::from(quoted(&body)))
        )
    }

    fn command(&self) -> String {
        let (value, in_context) = (&self.value, self.line());
        if self.in_context.contains('\n') {
            return format!("cat > key.pem <<'END'\n{}\nEND", self.in_context);
        }
        format!(
            "export SERVICE_TOKEN={value}; curl -H \"Authorization: Bearer {value}\" https://api.example; : {in_context}"
        )
    }

    /// Fields, flags, headers and variables: nothing but the name beside it reveals the value.
    fn arguments(&self) -> Value {
        let value = &self.value;
        let inner = json!({ "note": "bellpull", "password": value });
        json!({ "user": "bellpull", "api_key": value, "login": { "password": value },
            "args": ["ring", "--token", value], "headers": { "X-Api-Key": value },
            "env": [{ "name": "BELL_PASSWORD", "value": value }], "body": inner.to_string() })
    }

    fn remote(&self) -> String {
        if self.in_context.contains('\n') {
            return "https://github.com/ada/engine.git".to_owned();
        }
        format!("https://x-access-token:{}@github.com/ada/engine.git", self.value)
    }
}

/// JSON inside a JSON string.
fn quoted(value: &Value) -> String {
    serde_json::to_string(&value.to_string()).unwrap()
}

fn bare(name: &'static str, value: String) -> Planted {
    Planted { name, in_context: value.clone(), value }
}

/// Pseudo-random characters, derived from the name.
fn random(name: &str, alphabet: char, length: usize) -> String {
    let letters: &[u8] = match alphabet {
        'a' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        'x' => b"0123456789abcdef",
        'u' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        other => panic!("no alphabet {other}"),
    };
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes.iter().map(|byte| char::from(letters[usize::from(*byte) % letters.len()])).collect()
}

fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn write_lines(path: &Path, lines: &[Value], last: &str) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write_file(path, &format!("{text}{last}\n"));
}

fn session_id(number: usize) -> String {
    format!("0199a1b2-0000-7000-8000-{number:012}")
}

/// A Codex session, with a line of an unknown type and a truncated one.
fn write_transcript(bench: &Bench, secret: &Planted, number: usize) {
    let id = session_id(number);
    let (places, path) = (secret.places(), secret.in_path());
    let folder = format!("/home/ada/{path}/engine");
    let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-11-15T10:00:01.000Z", "type": kind, "payload": payload });
    let item = |payload: Value| line("response_item", payload);
    let event = |payload: Value| line("event_msg", payload);
    let message = |role: &str, kind: &str| {
        item(json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": places }] }))
    };
    let arguments = json!({ "command": ["bash", "-lc", secret.command()], "workdir": folder });
    let output = json!({ "output": places, "metadata": { "exit_code": 0, "duration_seconds": 0.2 } });
    let patch = format!("*** Begin Patch\n*** Add File: src/{path}.txt\n+{}\n*** End Patch", secret.line());
    let git = json!({ "commit_hash": "0a1b2c3d", "branch": format!("fix/{path}"), "repository_url": secret.remote() });
    let lines = [
        line(
            "session_meta",
            json!({ "id": id, "timestamp": "2026-11-15T10:00:00.000Z", "cwd": folder, "originator": "codex_cli_rs",
                "cli_version": "0.80.0", "source": "cli", "model_provider": "openai", "git": git,
                "instructions": places }),
        ),
        line("turn_context", json!({ "cwd": folder, "model": "gpt-5-codex", "user_instructions": places })),
        message("user", "input_text"),
        event(json!({ "type": "user_message", "message": places, "images": [] })),
        event(json!({ "type": "agent_reasoning", "text": places })),
        item(json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": places }] })),
        item(
            json!({ "type": "function_call", "name": "shell", "arguments": arguments.to_string(), "call_id": "call_1" }),
        ),
        item(json!({ "type": "function_call_output", "call_id": "call_1", "output": output.to_string() })),
        item(
            json!({ "type": "function_call", "name": "ring", "arguments": secret.arguments().to_string(), "call_id": "call_3" }),
        ),
        item(
            json!({ "type": "function_call_output", "call_id": "call_3", "output": secret.arguments().to_string() }),
        ),
        item(
            json!({ "type": "custom_tool_call", "status": "completed", "call_id": "call_2", "name": "apply_patch",
            "input": patch }),
        ),
        item(json!({ "type": "custom_tool_call_output", "call_id": "call_2", "output": places })),
        event(json!({ "type": "error", "message": places })),
        event(json!({ "type": "agent_message", "message": places })),
        message("assistant", "output_text"),
        line("compacted", json!({ "message": places, "replacement_history": [] })),
        line("weather_report", json!({ "sky": places, "api_key": secret.value, path: 1 })),
        item(json!({ "type": "surprise", "text": places })),
    ];
    let cut = message("user", "input_text").to_string();
    let file = format!("sessions/2026/11/15/rollout-2026-11-15T10-00-00-{id}.jsonl");
    write_lines(&bench.codex().join(file), &lines, &cut[..cut.len() - 4]);
}

/// Some of the files that conversations write.
pub fn files() -> Vec<String> {
    let file = |secret: &Planted| {
        let path = secret.in_path();
        format!("/home/ada/{path}/engine/{path}.txt")
    };
    secrets().iter().step_by(9).map(file).collect()
}

/// A Claude Code session of the same kind.
fn write_conversation(bench: &Bench, secret: &Planted, number: usize) {
    let id = session_id(number);
    let (places, path) = (secret.places(), secret.in_path());
    let folder = format!("/home/ada/{path}/engine");
    let mut count = 0;
    let mut line = |kind: &str, more: Value| {
        count += 1;
        let mut line = json!({ "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": folder,
            "sessionId": id, "version": "2.1.197", "type": kind, "gitBranch": format!("fix/{path}"),
            "uuid": format!("d4d4{number:04}-0000-4000-8000-{count:012}"), "timestamp": "2026-11-15T10:00:02.000Z" });
        for (name, value) in more.as_object().unwrap() {
            line[name] = value.clone();
        }
        line
    };
    let body = |role: &str, content: Value| {
        json!({ "message": { "id": format!("msg_{number}"), "type": "message", "role": role, "model": "claude-sonnet-4-5",
            "content": content, "usage": { "input_tokens": 1, "output_tokens": 1 } } })
    };
    let file = format!("{folder}/{path}.txt");
    // Calls with the same id are copies of each other: only those that `files` lists have separate ids.
    let own = if number % 9 == 1 { number } else { 0 };
    let call = |id: &str, name: &str, input: Value| json!([{ "type": "tool_use", "id": format!("{id}_{own}"), "name": name, "input": input }]);
    let result = |id: &str| json!([{ "tool_use_id": format!("{id}_{own}"), "type": "tool_result", "content": places }]);
    let lines = [
        line("user", body("user", json!(places))),
        line(
            "assistant",
            body("assistant", json!([{ "type": "thinking", "thinking": places, "signature": "c2ln" }])),
        ),
        line("assistant", body("assistant", json!([{ "type": "text", "text": places }]))),
        line("assistant", body("assistant", call("toolu_1", "Bash", json!({ "command": secret.command() })))),
        line("user", body("user", result("toolu_1"))),
        line(
            "assistant",
            body("assistant", call("toolu_2", "Write", json!({ "file_path": file, "content": places }))),
        ),
        line("user", body("user", result("toolu_2"))),
        line("assistant", body("assistant", call("toolu_3", "mcp__bell__ring", secret.arguments()))),
        line("user", body("user", json!([{ "type": "surprise", "text": places }]))),
        line(
            "attachment",
            json!({ "attachment": { "type": "hook_success", "stdout": places, "command": secret.command() } }),
        ),
        line("system", json!({ "subtype": "local_command", "content": places })),
        json!({ "type": "summary", "summary": format!("Use {}", secret.line()), "leafUuid": "none" }),
        json!({ "type": "custom-title", "customTitle": format!("Use {}", secret.line()), "sessionId": id }),
        json!({ "type": "brand-new-row", "sessionId": id, "payload": { "password": secret.value, "text": places, path: 1 } }),
    ];
    let cut = line("user", body("user", json!(places))).to_string();
    let project = bench.claude().join("projects/-home-ada-engine");
    write_lines(&project.join(format!("{id}.jsonl")), &lines, &cut[..cut.len() - 4]);
    write_file(&project.join(&id).join("tool-results/b1.txt"), &places);
    let todos = json!([{ "content": format!("Use {}", secret.line()), "status": "pending", "activeForm": secret.line() }]);
    write_file(&bench.claude().join(format!("todos/{id}-agent-{id}.json")), &todos.to_string());
}

/// An export whose conversations, instructions, files and lists contain them.
fn write_export(bench: &Bench, all: &[Planted]) {
    let mut talks = Vec::new();
    for (secret, number) in all.iter().zip(1..) {
        let (places, path) = (secret.places(), secret.in_path());
        let mut talk = Conversation::new(&session_id(5_000 + number), &format!("Use {}", secret.line()));
        talk.fields.insert("conversation_origin".into(), json!(secret.line()));
        talk.fields.insert("memory_scope".into(), json!({ "api_key": secret.value }));
        let context = json!({ "content_type": "user_editable_context", "user_profile": places,
            "user_instructions": places });
        talk.node("context", "client-created-root", message("context", "user", context));
        let mut prompt =
            text_message("prompt", "user", json!([places, { "content_type": "surprise", "text": places }]));
        prompt["metadata"]["attachments"] =
            json!([{ "id": format!("file-{number:020}"), "name": format!("{path}.txt"), "size": 1 }]);
        talk.node("prompt", "context", prompt);
        talk.node("call", "prompt", call("call", "python", &secret.command()));
        talk.node(
            "result",
            "call",
            result("result", "python", json!({ "content_type": "execution_output", "text": places })),
        );
        talk.node(
            "more",
            "result",
            result(
                "more",
                "web",
                json!({ "content_type": "tether_quote", "title": secret.line(),
            "url": secret.remote(), "text": places }),
            ),
        );
        let mut answer = text_message("answer", "assistant", json!([places]));
        answer["metadata"]["content_references"] = json!([{ "type": "webpage", "url": secret.remote(), "title": secret.line(), "start_idx": 0, "end_idx": 1 }]);
        talk.node("other", "more", answer.clone());
        talk.node(
            "unknown",
            "more",
            message(
                "unknown",
                "assistant",
                json!({ "content_type": "hologram", "beam": places,
            "password": secret.value }),
            ),
        );
        talk.node("answer", "more", answer);
        talk.node(
            &format!("last {path}"),
            "answer",
            message(
                "last",
                "assistant",
                json!({ "content_type": "thoughts",
            "thoughts": [{ "summary": secret.line(), "content": places }] }),
            ),
        );
        talks.push(talk);
    }
    let entries: Vec<Value> = all
        .iter()
        .zip(1..)
        .map(|(secret, number)| {
            json!({ "id": format!("entry-{number}"),
        "conversation_id": session_id(5_000 + number), "title": secret.line(), "rating": "thumbs_up",
        "content": secret.places(), "is_anonymous": true })
        })
        .collect();
    let settings: serde_json::Map<String, Value> = all
        .iter()
        .zip(1..)
        .map(|(secret, number)| {
            (format!("n{number}"), json!({ "token": secret.value, "note": secret.line() }))
        })
        .collect();
    let folder = export_of(bench);
    write_folder(&export(Generation::Second, &talks), &folder);
    for (name, value) in [
        ("shared_conversations.json", json!(entries)),
        ("message_feedback.json", json!(entries)),
        ("group_chats.json", json!({ "chats": entries })),
        ("user_settings.json", json!([{ "user_id": "user-ada", "settings": settings }])),
    ] {
        write_file(&folder.join(name), &value.to_string());
    }
    for secret in all.iter().filter(|secret| secret.is_bare()) {
        write_file(&folder.join(format!("{}.json", secret.value)), "{\"strange\": 1}");
    }
}

fn write_histories(bench: &Bench, all: &[Planted]) {
    let (mut prompts, mut names, mut typed) = (Vec::new(), Vec::new(), Vec::new());
    for (secret, number) in all.iter().zip(1..) {
        let id = session_id(number);
        prompts.push(json!({ "session_id": id, "ts": 1_772_442_000, "text": secret.places() }));
        names.push(json!({ "id": id, "thread_name": format!("Use {}", secret.line()),
            "updated_at": "2026-11-15T10:10:00.5Z" }));
        let pasted = json!({ "1": { "id": 1, "type": "text", "content": secret.places() } });
        typed.push(
            json!({ "display": secret.in_context, "pastedContents": pasted, "timestamp": 1_772_445_600_000_u64,
            "project": format!("/home/ada/{}", secret.in_path()), "sessionId": id }),
        );
    }
    let cut = prompts[0].to_string();
    write_lines(&bench.codex().join("history.jsonl"), &prompts, &cut[..cut.len() - 4]);
    write_lines(&bench.codex().join("session_index.jsonl"), &names, "{");
    let cut = typed[0].to_string();
    write_lines(&bench.claude().join("history.jsonl"), &typed, &cut[..cut.len() - 4]);
}

fn config(all: &[Planted]) -> String {
    let mut text = "model = \"gpt-5-codex\"\n".to_owned();
    for (secret, number) in all.iter().zip(1..) {
        let (value, in_context) = (&secret.value, Value::from(secret.line()));
        text += &format!(
            "# {}\n[mcp_servers.bell{number}]\ncommand = \"bell\"\nargs = [\"--token={value}\"]\n\
             env = {{ NAME{number} = \"{value}\" }}\nbearer_token = \"{value}\"\nhttp_headers = {{ \"X-Api-Key\" = \
             \"{value}\" }}\nnote = {in_context}\n[projects.\"/home/ada/{number}/{}\"]\ntrust_level = \"trusted\"\n",
            secret.line(),
            secret.in_path()
        );
    }
    text
}

fn settings(all: &[Planted]) -> Value {
    let (mut environment, mut allowed, mut helpers) = (json!({}), Vec::new(), json!({}));
    for (secret, number) in all.iter().zip(1..) {
        environment[format!("NAME{number}")] = json!(secret.value);
        allowed.push(format!("Bash({})", secret.line()));
        helpers[format!("h{number}")] = json!({ "apiKey": secret.value, "note": secret.line() });
    }
    json!({ "env": environment, "permissions": { "allow": allowed }, "helpers": helpers, "model": "opus" })
}
