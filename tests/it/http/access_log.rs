//! Who may read a member's sessions, and who did: members ask about themselves, admins about their organisation.

use serde_json::{Value, json};

use super::members::{Company, PEOPLE};
use annals_testkit::Ran;

const ADA: &str = PEOPLE[0][3];
const CHARLES: &str = PEOPLE[2][3];

/// Viewer, kind, member and session of each entry, in order of their text.
fn log_of(answer: &Value) -> Vec<String> {
    let entries = answer["accesses"].as_array().unwrap().iter().map(|entry| {
        let text = |name: &str| entry[name].as_str().unwrap_or("owner").to_owned();
        format!("{} {} {} {}", text("viewer"), text("kind"), text("member"), text("session_id"))
    });
    let mut entries: Vec<String> = entries.collect();
    entries.sort();
    entries
}

fn names(answer: &Value) -> Vec<&str> {
    let viewers = answer["visible_to"].as_array().unwrap().iter();
    viewers.map(|viewer| viewer["name"].as_str().unwrap_or("owner of the machine")).collect()
}

#[test]
fn who_reads_a_session_of_somebody_else_is_in_the_log() {
    let company = Company::new();
    let ask = |name: &str, path: &str| company.server.json_as(company.token(name), path);
    let log = |name: &str| log_of(&ask(name, "/api/v1/access?limit=500"));
    // Lists and sums show nobody's conversation, and whoever reads their own is not noted.
    for name in ["luigi", "sophia"] {
        for path in
            ["/api/v1/sessions", "/api/v1/usage?days=all&by=member", "/api/v1/members", "/api/v1/audit"]
        {
            ask(name, path);
        }
    }
    ask("ada", &format!("/api/v1/codex/sessions/{ADA}/messages"));
    assert_eq!(log("sophia"), [""; 0]);

    for _ in 0..2 {
        ask("luigi", &format!("/api/v1/codex/sessions/{ADA}/messages"));
    }
    let entry = |viewer: &str, kind: &str, member: &str, id: &str| format!("{viewer} {kind} {member} {id}");
    assert_eq!(log("ada"), [entry("luigi", "conversation", "ada", ADA)], "once a day");
    ask("luigi", "/api/v1/search?q=words+ada&source=codex_cli");
    ask("luigi", "/api/v1/sources/codex_cli/streams/messages/records");
    let found = [
        entry("luigi", "conversation", "ada", ADA),
        entry("luigi", "records", "ada", ADA),
        entry("luigi", "search", "ada", ADA),
    ];
    assert_eq!(log("ada"), found);
    // The owner of the machine, and a page.
    let page = company.server.page(&format!("/sessions/codex_cli/{CHARLES}"));
    assert_eq!(page.status, 200);
    assert_eq!(log("charles"), [entry("owner", "conversation", "charles", CHARLES)]);
    ask("sophia", &format!("/api/v1/claude-code/sessions/{CHARLES}/outline"));
    assert_eq!(log("charles").len(), 2);

    // Whose log it is.
    assert!(log("mary").iter().all(|entry| entry.contains(" mary ")), "{:?}", log("mary"));
    assert!(log("luigi").iter().all(|entry| !entry.contains("charles")), "{:?}", log("luigi"));
    assert!(log("luigi").len() >= 3 && log("sophia").iter().any(|entry| entry.contains("charles")));
    assert_eq!(log_of(&ask("luigi", "/api/v1/access?member=charles")), [""; 0]);
    assert_eq!(log_of(&ask("ada", "/api/v1/access?member=charles")), [""; 0]);
    let of_charles = log_of(&ask("sophia", "/api/v1/access?member=charles"));
    assert_eq!(of_charles.len(), 2, "{of_charles:?}");
    let all = log("sophia");
    let paged = company.server.list_as(company.token("sophia"), "/api/v1/access?limit=1", "accesses");
    assert_eq!(log_of(&json!({"accesses": paged})), all);
    // A rebuild makes new rows of the same sessions.
    assert_eq!(company.bench.run(&["rebuild"]).code, 0);
    assert_eq!(log("sophia"), all);
}

#[test]
fn a_member_reads_who_sees_their_sessions() {
    let company = Company::new();
    let server = &company.server;
    let ask = |name: &str| server.json_as(company.token(name), "/api/v1/access");
    assert_eq!(names(&ask("ada")), ["owner of the machine", "sophia", "luigi"]);
    assert_eq!(names(&ask("charles")), ["owner of the machine", "sophia"], "of another organisation");
    server.json_as(company.token("luigi"), &format!("/api/v1/codex/sessions/{ADA}/messages"));

    let page = server.page_as(company.token("ada"), "/members");
    let text = page.text();
    assert_eq!(page.status, 200, "{text}");
    for words in ["Who sees my sessions", "luigi", "admin of engines", "sophia", ADA] {
        assert!(text.contains(words), "{words}\n{text}");
    }
    assert!(!text.contains("mary") && !text.contains("data-member"), "{text}");
    let page = server.page_as(company.token("luigi"), "/members").text();
    for name in ["ada", "mary", "luigi"] {
        assert!(page.contains(&format!("data-member=\"{name}\"")), "{name}\n{page}");
    }
    assert!(!page.contains("charles"), "{page}");

    // In the terminal, over the network and on the hub.
    let run = |name: &str, more: &[&str]| {
        let url = format!("http://{}", server.address);
        let mut command = company.bench.command(&[&["access", &url], more].concat());
        let ran = Ran::of(command.env("ANNALS_PUSH_TOKEN", company.token(name)).output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    let told = run("ada", &[]);
    assert!(told.contains("luigi (admin of engines)") && told.contains(ADA), "{told}");
    assert_eq!(log_of(&serde_json::from_str(&run("charles", &["--json"])).unwrap()), [""; 0]);
    let here = company.bench.json(&["access", "--member", "ada"]);
    assert_eq!(log_of(&here), [format!("luigi conversation ada {ADA}")]);
    assert!(company.bench.run(&["access"]).stdout.contains("luigi"));
}

#[test]
fn admins_see_the_members_of_their_organisation_with_their_cost() {
    let company = Company::new();
    let ask = |name: &str| {
        let answer = company.server.json_as(company.token(name), "/api/v1/members");
        answer["members"].as_array().unwrap().clone()
    };
    let listed = |name: &str| -> Vec<String> {
        ask(name).iter().map(|member| member["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed("luigi"), ["ada", "luigi", "mary", "sophia"]);
    assert_eq!(listed("sophia"), ["ada", "luigi", "mary", "sophia", "charles"]);
    assert_eq!(listed("charles"), ["charles"]);
    let ada = ask("luigi")[0].clone();
    assert!(ada["sessions"].as_i64() >= Some(2) && ada["bytes"].as_i64() > Some(0), "{ada}");
    let sums = company.server.json_as(company.token("luigi"), "/api/v1/usage?days=all&by=member");
    let row = sums["rows"].as_array().unwrap().iter().find(|row| row["key"] == "ada").unwrap().clone();
    assert!(row["response_count"].as_i64() > Some(0), "{sums}");
    assert_eq!(ada["cost_usd"], row["cost_usd"]);
    assert!(sums["rows"].as_array().unwrap().iter().all(|row| row["key"] != "charles"), "{sums}");
}

/// What cannot be noted is not shown to an admin. The member still reads their own.
#[test]
fn nothing_is_shown_of_others_when_the_log_cannot_be_written() {
    let company = Company::new();
    let database = rusqlite::Connection::open(company.bench.archive().join("annals.db")).unwrap();
    database
        .execute_batch("create trigger full before insert on access begin select raise(abort, 'full'); end")
        .unwrap();
    let path = format!("/api/v1/codex/sessions/{ADA}/messages");
    let reply = company.server.get_as(company.token("luigi"), &path);
    assert_eq!(reply.status, 500, "{}", reply.text());
    assert!(!reply.text().contains("the words of ada"), "{}", reply.text());
    assert_eq!(company.server.get_as(company.token("ada"), &path).status, 200);
    assert_eq!(company.server.get(&path).status, 200, "the owner has the archive");
}
