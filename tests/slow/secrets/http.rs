//! Requests every route of the API document with every possible value, and none shows a secret.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use annals_testkit::Bench;
use annals_testkit::server::{Server, escaped, with};
use annals_testkit::worlds::planted;

/// Keys requested per stream: enough to include every kind of item and secret.
const KEYS: usize = 120;

/// Values for the variable parts of routes, from the server's own lists.
struct Walk<'s> {
    server: &'s Server,
    /// By source and route prefix.
    sessions: BTreeMap<String, Vec<String>>,
}

impl Walk<'_> {
    fn new(server: &Server) -> Walk<'_> {
        Walk { server, sessions: BTreeMap::new() }
    }

    fn sources(&self) -> Vec<String> {
        let answer = self.server.json("/api/v1/agent-sessions/sources");
        names(&answer["sources"], "source")
    }

    /// Every way to fill in the variable parts of a route.
    fn addresses(&mut self, template: &str) -> Vec<String> {
        if template == "/api/v1/library/item" {
            return self.library_items();
        }
        if template == "/api/v1/projects/arrangement" {
            return self.projects();
        }
        let Some((before, rest)) = template.split_once('{') else { return vec![template.to_owned()] };
        let (part, after) = rest.split_once('}').unwrap();
        let found = match part {
            "source" => self.sources(),
            "session_id" => self.session_ids(before),
            "stream" => {
                let manifest = before.replace("/streams/", "/manifest");
                names(&self.server.json(&manifest)["streams"], "name")
            }
            "key" if before.ends_with("/lines/") => self.steps(before.trim_end_matches("/lines/")),
            // A few of each session: the rest repeats.
            "key" if after == "/arrangement" => {
                let mut steps = self.steps(before.trim_end_matches("/messages/"));
                steps.truncate(2);
                steps
            }
            "name" => vec!["mine".to_owned()],
            "key" => self.keys(before),
            other => {
                panic!("say here what stands for {{{other}}}, so that its answers are searched for secrets")
            }
        };
        let filled = found.iter().map(|value| format!("{before}{}{after}", escaped(value)));
        filled.collect::<Vec<_>>().iter().flat_map(|address| self.addresses(address)).collect()
    }

    fn session_ids(&mut self, before: &str) -> Vec<String> {
        let list = before.trim_end_matches('/');
        if let Some(cached) = self.sessions.get(list) {
            return cached.clone();
        }
        let sessions = self.server.list(&format!("{list}?include_subagents=true&limit=500"), "sessions");
        let ids = names(&Value::from(sessions), "session_id");
        self.sessions.insert(list.to_owned(), ids.clone());
        ids
    }

    fn library_items(&self) -> Vec<String> {
        let items = self.server.list("/api/v1/library", "items");
        let step = items.len().div_ceil(4 * KEYS).max(1);
        let part = |item: &Value, name: &str| escaped(item[name].as_str().unwrap());
        let address = |item: &Value| {
            let [source, kind, id] = ["source", "kind", "id"].map(|name| part(item, name));
            format!("/api/v1/library/item?source={source}&kind={kind}&id={id}")
        };
        items.iter().step_by(step).map(address).collect()
    }

    /// Directories of sessions that are shown as they are.
    fn projects(&self) -> Vec<String> {
        let sessions = self.server.list("/api/v1/sessions?limit=500", "sessions");
        let paths = sessions.iter().filter_map(|session| session["cwd"].as_str());
        let paths: BTreeSet<&str> = paths.filter(|path| !path.contains("[secret:")).collect();
        paths.iter().map(|path| format!("/api/v1/projects/arrangement?project={}", escaped(path))).collect()
    }

    /// Steps of a session; its lines are requested by them.
    fn steps(&self, session: &str) -> Vec<String> {
        names(&Value::from(self.server.list(&format!("{session}/messages?limit=500"), "messages")), "id")
    }

    fn keys(&self, before: &str) -> Vec<String> {
        let list = before.trim_end_matches('/');
        let records = self.server.list(&format!("{list}?limit=500"), "records");
        let keys = records.iter().filter_map(|record| {
            ["key", "call_id", "id"].iter().find_map(|name| record[*name].as_str()).map(str::to_owned)
        });
        let keys: Vec<String> = keys.collect::<BTreeSet<_>>().into_iter().collect();
        let step = keys.len().div_ceil(KEYS).max(1);
        keys.into_iter().step_by(step).collect()
    }
}

fn names(list: &Value, name: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry[name].as_str().unwrap().to_owned()).collect()
}

/// Requests besides the plain one, by the parameters that the document lists.
fn variants(parameters: &Value) -> Vec<String> {
    let mut variants = vec![Vec::new()];
    let mut each = |values: &[&str]| {
        let with_value = |value: &&str| {
            variants
                .iter()
                .map(|cached: &Vec<String>| [&cached[..], &[value.to_string()]].concat())
                .collect::<Vec<_>>()
        };
        variants = values.iter().flat_map(with_value).collect();
    };
    for parameter in parameters.as_array().into_iter().flatten().filter(|cached| cached["in"] == "query") {
        match parameter["name"].as_str().unwrap() {
            "limit" => each(&["limit=500"]),
            "full" => each(&["full=true", "full=false"]),
            "copies" => each(&["copies=true"]),
            "branch" if parameter["description"].as_str().is_some_and(|text| text.contains("`all`")) => {
                each(&["branch=all"]);
            }
            "include_subagents" => each(&["include_subagents=true"]),
            "days" => each(&["days=all"]),
            "by" => each(&["by=day", "by=model", "by=project", "by=session", "by=source", "by=member"]),
            // Required for a search; elsewhere it only filters.
            "q" if parameter["required"] == true => {
                each(&["q=token", "q=password+OR+secret", "q=curl+key", "q=kind:library+the", "q=bellpull"]);
            }
            // Secrets appear in the names of these files as well as in them.
            "file" => {
                let files: Vec<String> =
                    planted::files().iter().map(|file| format!("file={}", escaped(file))).collect();
                each(&files.iter().map(String::as_str).collect::<Vec<_>>());
            }
            "start" => each(&["start=1"]),
            "sort" => each(&["sort=best", "sort=recent"]),
            // These only filter results, and the cursor is followed anyway.
            "cursor" | "project" | "branch" | "model" | "since" | "until" | "q" | "source" | "session_id"
            | "status" | "role" | "kind" | "errors" | "archived" | "gone" | "as_of" | "id" | "end"
            | "tag" | "starred" | "has_note" | "hidden" | "member" => {}
            other => panic!("say here how `{other}` is asked, so that its answers are searched for secrets"),
        }
    }
    variants.iter().map(|values| values.join("&")).collect()
}

#[test]
fn no_route_shows_a_secret() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let secrets = planted::secrets();
    let document = server.json("/openapi.json");
    server.wait_for_secrets();
    let mut walk = Walk::new(&server);
    let bearer = format!("Bearer {}", server.token);
    let (mut leaks, mut seen) = (Vec::new(), BTreeSet::new());
    let mut marks: BTreeMap<String, usize> = BTreeMap::new();
    for (template, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap();
        let mut changed = 0;
        for method in operations.keys().filter(|method| *method != "get") {
            let body = match method.as_str() {
                "patch" => json!({"name": secrets[0].value, "note": secrets[1].places()}),
                "put" => json!({"query": secrets[2].value}),
                // Later: what it removes is looked for first.
                "delete" => continue,
                other => panic!("say here how {other} {template} is asked"),
            };
            for address in walk.addresses(template) {
                let headers = [("Authorization", bearer.as_str())];
                let reply = server.send_json(&method.to_uppercase(), &address, &headers, &body);
                assert_eq!(reply.status, 200, "{method} {address}: {}", reply.text());
                leaks.extend(planted::leaks(&secrets, &reply.full_text(), &address));
                changed += 1;
            }
        }
        if !operations.contains_key("get") {
            assert!(changed > 0, "{template} was never answered");
            continue;
        }
        let variants = variants(&item["get"]["parameters"]);
        let mut found = 0;
        for address in walk.addresses(template) {
            for variant in &variants {
                let mut cursor = String::new();
                loop {
                    let path = with(&with(&address, variant), &cursor);
                    let reply = server.get(&path);
                    // A key that is masked in the list leads nowhere.
                    let by_key = template.ends_with("{key}") || template.ends_with("/item");
                    let masked = by_key && address.contains("secret");
                    assert!(reply.status == 200 || masked && reply.status == 404, "{path}: {}", reply.text());
                    found += usize::from(reply.status == 200);
                    let whole = reply.full_text();
                    *marks.entry(template.clone()).or_default() += whole.matches("[secret:").count();
                    // The same response from two routes is searched once.
                    if seen.insert(blake3::hash(whole.as_bytes()).to_hex()) {
                        leaks.extend(planted::leaks(&secrets, &whole, &path));
                    }
                    match reply.json()["next_cursor"].as_str() {
                        Some(next) => cursor = format!("cursor={next}"),
                        None => break,
                    }
                }
            }
        }
        let may_be_empty = template.contains("/outside-connectors/");
        assert!(found > 0 || may_be_empty, "{template} was never answered");
    }
    for path in ["/docs", "/openapi.json", "/api/v1/nothing"] {
        leaks.extend(planted::leaks(&secrets, &server.get(path).full_text(), path));
    }
    leaks.extend(planted::leaks(&secrets, &server.stop().stderr, "the log"));
    assert!(leaks.is_empty(), "{} leaks\n{}", leaks.len(), leaks[..leaks.len().min(40)].join("\n"));
    for name in [
        "/sessions",
        "/sessions/{session_id}",
        "/messages",
        "/outline",
        "/lines/{key}",
        "/analytics/tools",
        "/records",
        "/records/{key}",
        "/api/v1/library",
        "/api/v1/library/item",
        "/api/v1/secrets",
    ] {
        let count: usize =
            marks.iter().filter(|(path, _)| path.ends_with(name)).map(|(_, count)| count).sum();
        assert!(count >= secrets.len() / 2, "only {count} marks in answers of {name}");
    }
}

/// Names by which the client's credential file could be requested.
fn credential_paths(home: &std::path::Path) -> Vec<String> {
    let file = home.join("auth.json").to_str().unwrap().to_owned();
    let mut ways: Vec<String> =
        ["auth.json", "auth", "./auth.json", "codex/auth.json", ".codex/auth.json", "auth.json\0"]
            .map(str::to_owned)
            .to_vec();
    ways.extend((1..8).map(|depth| format!("{}auth.json", "../".repeat(depth))));
    ways.extend([file.clone(), format!("file://{file}"), format!("//{file}"), file.replace('/', "\\")]);
    ways
}

#[test]
fn the_credential_file_cannot_be_reached() {
    let bench = Bench::new();
    bench.transcript(
        &annals_testkit::codex::rollout(annals_testkit::codex::ID),
        &annals_testkit::codex::conversation(annals_testkit::codex::ID, "gears"),
    );
    let marker = "MARKER0credential0of0the0client";
    for home in [bench.codex(), bench.claude()] {
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("auth.json"), format!(r#"{{"OPENAI_API_KEY":"{marker}"}}"#)).unwrap();
        std::fs::write(home.join(".credentials.json"), format!(r#"{{"token":"{marker}"}}"#)).unwrap();
    }
    let server = Server::start(&bench);
    let document = server.json("/openapi.json");
    let variable = regex::Regex::new(r"\{[a-z_]+\}").unwrap();
    let mut requests = 0;
    for template in document["paths"].as_object().unwrap().keys() {
        for way in credential_paths(&bench.codex()) {
            // As one component of a URL, and as people type it.
            for value in
                [escaped(&way), way.replace('\0', "%00"), way.replace("..", "%2e%2e").replace('\0', "%00")]
            {
                let sourced = template.replace("{source}", "codex_cli").replace("{stream}", "config");
                for path in [
                    variable.replace_all(template, value.as_str()),
                    variable.replace_all(&sourced, value.as_str()),
                ] {
                    let reply = server.get(&path);
                    assert!([200, 400, 404, 405].contains(&reply.status), "{path}: {}", reply.status);
                    assert!(reply.status != 200 || !path.contains("auth"), "{path}: {}", reply.text());
                    assert!(!reply.full_text().contains(marker), "{path}");
                    requests += 1;
                }
            }
        }
    }
    assert!(requests > 1_000);
    for [parameter, of] in
        [["q", "codex/sessions"], ["project", "codex/sessions"], ["cursor", "codex/sessions"]]
    {
        for way in credential_paths(&bench.codex()) {
            let reply = server.get(&format!("/api/v1/{of}?{parameter}={}", escaped(&way)));
            assert!(
                [200, 400].contains(&reply.status) && !reply.full_text().contains(marker),
                "{}",
                reply.text()
            );
        }
    }
    for path in ["/auth.json", "/../auth.json", "/%2e%2e/auth.json", "//auth.json", "/docs/../auth.json"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    assert!(!bench.run(&["records", "codex_cli/config", "--full", "--reveal"]).stdout.contains(marker));
}
