//! Every route of the API and every page with the token of a member, an admin and somebody who was removed: nobody reads or
//! changes what is not theirs.

use serde_json::{Value, json};

use super::members::{Company, PEOPLE, seen_by};
use annals_testkit::server::escaped;

/// Whose data is looked for in answers to the others.
const VICTIM: [&str; 4] = PEOPLE[2];

/// Addresses of a template, filled in with what is the victim's.
fn filled(template: &str, key: &str) -> String {
    let [name, _, _, id] = VICTIM;
    template
        .replace("{source}", "codex_cli")
        .replace("{session_id}", id)
        .replace("{stream}", "messages")
        .replace("{key}", &escaped(key))
        .replace("{name}", &format!("search-of-{name}"))
}

fn query(path: &str, parameters: &Value) -> String {
    let [name, _, _, id] = VICTIM;
    let required = parameters.as_array().into_iter().flatten().filter(|parameter| parameter["in"] == "query");
    let values = required.filter_map(|parameter| {
        let value = match parameter["name"].as_str().unwrap() {
            "q" => format!("words {name}"),
            "project" => format!("/home/{name}/work"),
            "file" => format!("/home/{name}/work/a.rs"),
            "kind" => "prompts".to_owned(),
            "id" => name.to_owned(),
            "session_id" => id.to_owned(),
            "member" => name.to_owned(),
            "source" => "codex_cli".to_owned(),
            "days" => "all".to_owned(),
            _ => return None,
        };
        Some(format!("{}={}", parameter["name"].as_str().unwrap(), escaped(&value)))
    });
    let values: Vec<String> = values.collect();
    if values.is_empty() { path.to_owned() } else { format!("{path}?{}", values.join("&")) }
}

/// Pages and what they load, with addresses of the victim's sessions.
fn pages(key: &str) -> Vec<String> {
    let session = format!("/sessions/codex_cli/{}", VICTIM[3]);
    let below =
        ["", "/steps?from=1", "/outline", "/markdown", "/find?q=words"].map(|end| format!("{session}{end}"));
    let steps = ["raw/KEY", "output/KEY/0", "picture/KEY/0"]
        .map(|end| format!("{session}/{}", end.replace("KEY", key)));
    let project = escaped(&format!("/home/{}/work", VICTIM[0]));
    let all = [
        "/",
        "/sessions",
        "/search?q=words",
        "/tools?days=all",
        "/tools/calls?days=all",
        "/usage?days=",
        "/usage/csv",
        "/library",
        "/files",
        "/insights",
        "/week",
        "/week/markdown",
        "/audit",
        "/secrets",
        "/gaps",
        "/settings",
        "/members",
        "/members?member=charles",
        "/palette?q=words",
    ];
    let all = all.map(str::to_owned).into_iter().chain(below).chain(steps);
    all.chain([format!("/sessions?project={project}"), format!("/compare?a={0}&b={0}", VICTIM[3])]).collect()
}

#[test]
fn no_route_shows_or_changes_what_is_not_the_callers() {
    let company = Company::new();
    let server = &company.server;
    let [name, _, _, id] = VICTIM;
    let own = format!("/api/v1/codex/sessions/{id}/messages");
    let key = server.json_as(company.token(name), &own)["messages"][0]["id"].as_str().unwrap().to_owned();
    let bearer = |token: &str| format!("Bearer {token}");
    let put = server.send_json(
        "PUT",
        &filled("/api/v1/searches/{name}", &key),
        &[("Authorization", &bearer(company.token(name)))],
        &json!({"query": "gears"}),
    );
    assert_eq!(put.status, 200, "{}", put.text());
    assert_eq!(company.bench.run(&["members", "remove", "mary"]).code, 0);

    let marks =
        [id.to_owned(), format!("the words of {name}"), format!("/home/{name}/work"), format!("/{name}-c")];
    let victims = |token: &str| {
        let arranged = server.json_as(token, &format!("/api/v1/codex/sessions/{id}/arrangement"));
        format!("{arranged} {}", server.json_as(token, "/api/v1/searches"))
    };
    let before = victims(company.token(name));
    let document = server.json("/openapi.json");
    let (mut asked, mut written, mut refused) = (0, 0, 0);
    for (template, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in
            item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object())
        {
            let path = query(&filled(template, &key), &operation["parameters"]);
            let method = method.to_uppercase();
            let ask = |token: &str| {
                let headers = [("Authorization", bearer(token))];
                let headers = headers.each_ref().map(|(header, value)| (*header, value.as_str()));
                let body = match template.contains("/searches/") {
                    true => json!({"query": "mine now"}),
                    false => json!({"starred": true, "name": "mine now"}),
                };
                match method.as_str() {
                    "GET" => server.get_as(token, &path),
                    _ => server.send_json(&method, &path, &headers, &body),
                }
            };
            for caller in ["ada", "luigi"] {
                assert!(!seen_by(caller).contains(&name));
                let reply = ask(company.token(caller));
                assert!(reply.status < 500, "{caller} {method} {path}: {}", reply.text());
                let text = reply.full_text();
                // An answer may repeat the question.
                let named = [escaped(&marks[2]), marks[2].clone(), id.to_owned()];
                for mark in
                    marks.iter().filter(|mark| !named.contains(mark) || !path.contains(&escaped(mark)))
                {
                    assert!(!text.contains(mark.as_str()), "{caller} {method} {path}: {mark}\n{text}");
                }
                let is_named = template.contains("{session_id}");
                assert!(
                    !is_named || reply.status == 404,
                    "{caller} {method} {path}: {}\n{text}",
                    reply.status
                );
                asked += 1;
                written += usize::from(method != "GET");
            }
            if !operation["security"].as_array().is_some_and(|security| security.contains(&json!({})))
                && !["/healthz", "/openapi.json", "/docs"].contains(&template.as_str())
            {
                assert_eq!(ask(company.token("mary")).status, 401, "removed: {method} {path}");
                refused += 1;
            }
        }
    }
    for page in pages(&key) {
        for caller in ["ada", "luigi"] {
            let reply = server.page_as(company.token(caller), &page);
            assert!(reply.status < 500 && reply.status != 401, "{caller} {page}: {}", reply.status);
            let text = reply.full_text();
            for mark in
                marks.iter().filter(|mark| !page.contains(&escaped(mark)) && !page.contains(mark.as_str()))
            {
                assert!(!text.contains(mark.as_str()), "{caller} {page}: {mark}\n{text}");
            }
            assert!(!page.contains(id) || !text.contains("the words of"), "{caller} {page}\n{text}");
            asked += 1;
        }
        assert_eq!(server.get_as(company.token("mary"), &page).status, 401, "removed: {page}");
        refused += 1;
    }
    assert_eq!(victims(company.token(name)), before, "nothing of the victim's changed");
    println!("{asked} requests, {written} of them writing, {refused} with the token of a removed member");
    assert!(asked > 150 && written > 20 && refused > 60, "{asked} {written} {refused}");
}
