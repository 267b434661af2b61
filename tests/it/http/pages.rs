//! Pages without a browser: they are complete, fragments too, and refusals say what to do.

use std::time::Duration;

use regex::Regex;

use crate::http::members::{Company, PEOPLE, seen_by};
use annals_testkit::codex::{ID, conversation, rollout};
use annals_testkit::server::{Reply, Server};
use annals_testkit::worlds::planted;
use annals_testkit::{Bench, sources};

/// Everything that a page or its script would request from this server.
fn links(page: &str, at: &str) -> Vec<String> {
    let link = Regex::new(r#"(?:href|src|data-from|data-steps|data-copy-from)="([^"]*)""#).unwrap();
    let whole = |found: &str| {
        let address = found.replace("&amp;", "&").replace("&#38;", "&").replace("&#39;", "'");
        let address = address.split('#').next().unwrap().to_owned();
        match address.as_bytes().first() {
            Some(b'/') => address,
            Some(b'?') => format!("{}{address}", at.split('?').next().unwrap()),
            _ => String::new(),
        }
    };
    link.captures_iter(page).map(|found| whole(&found[1])).filter(|address| !address.is_empty()).collect()
}

fn one_session() -> (Bench, Server) {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    bench.sync();
    let server = Server::without_refresh(&bench);
    (bench, server)
}

/// A complete page in which nothing can run that is not ours.
#[track_caller]
fn assert_page(reply: &Reply, status: u16) -> String {
    let text = reply.text();
    assert_eq!(reply.status, status, "{text}");
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    let policy = reply.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
    assert!(text.starts_with("<!doctype html>") && text.trim_end().ends_with("</html>"), "{text}");
    assert!(text.contains("<title>") && text.contains("<h1"), "{text}");
    for inline in ["<style", " style=", "javascript:", "<script>", " onclick="] {
        assert!(!text.contains(inline), "{inline} in {text}");
    }
    text
}

#[test]
fn a_refusal_is_a_page_that_says_what_to_do() {
    let (_bench, server) = one_session();
    let nobody = server.get_with("/", &[("Accept", "text/html")]);
    let text = assert_page(&nobody, 401);
    assert!(text.contains("annals up") && text.contains("the link that it prints"), "{text}");
    assert!(!text.contains("gears") && !text.contains(&server.token));
    let wrong = server.get_with("/?token=wrong", &[("Accept", "text/html")]);
    assert!(assert_page(&wrong, 401).contains("annals up"));
    let foreign = server.get_with("/", &[("Accept", "text/html"), ("Host", "evil.example")]);
    assert!(assert_page(&foreign, 403).contains("annals serve --host"));
    for path in [
        "/nothing",
        "/sessions/nobody/x",
        "/sessions/codex_cli/nothing",
        &format!("/sessions/codex_cli/{ID}/raw/nothing"),
        &format!("/sessions/codex_cli/{ID}/output/nothing/0"),
        &format!("/sessions/codex_cli/{ID}/output/nothing/x"),
        &format!("/sessions/codex_cli/{ID}/picture/nothing/0"),
        "/library/item?source=codex_cli&kind=prompts&id=nothing",
        "/assets/nothing.css",
    ] {
        let text = assert_page(&server.page(path), 404);
        assert!(text.contains("Not found") && text.contains("href=\"/\""), "{path}: {text}");
    }
    for path in [
        "/?other=1",
        "/sessions?colour=red",
        "/sessions?source=nobody",
        "/sessions?since=someday",
        "/sessions?limit=0",
        "/sessions?cursor=nonsense",
        "/sessions?errors=perhaps",
        &format!("/sessions/codex_cli/{ID}?page=2"),
        &format!("/sessions/codex_cli/{ID}?from=first"),
        &format!("/sessions/codex_cli/{ID}/steps?to=2"),
        &format!("/sessions/codex_cli/{ID}/find"),
        "/search?words=x",
        "/tools?days=0",
        "/tools?source=nobody",
        "/usage?days=x",
        "/library?as_of=someday",
        "/library?since=someday",
        "/library/item?source=codex_cli",
        "/audit?x=1",
        "/gaps?status=lost",
        "/insights?sort=cost",
        "/insights?sort=",
        "/week?calendar=year",
        "/week?date=someday",
        "/compare?of=songs",
        "/compare?one=x&three=y",
        "/tools?sort=size",
        "/tools/calls?failed=perhaps",
        "/tools/calls?order=size",
        "/files?view=songs",
        "/lineage?file=x&view=songs",
        "/usage?colour",
        "/settings?x=1",
        "/usage?by=colour",
        "/usage/csv?by=session",
        "/?heat=tides",
        "/sessions?sort=size",
        "/sessions?machine=a&machine=b",
        &format!("/sessions/codex_cli/{ID}?view=songs"),
        "/secrets?reveal=true",
    ] {
        let reply = server.page(path);
        let text = assert_page(&reply, 400);
        assert!(text.contains("Bad request"), "{path}: {text}");
        // In the words of people, not of a library.
        assert!(!text.contains("deserialize") && !text.contains("unknown field"), "{path}: {text}");
    }
    let reply = server.request(
        "POST",
        "/sessions",
        &[
            ("Accept", "text/html"),
            ("Cookie", &server.cookie_of(&server.token)),
            ("Sec-Fetch-Site", "same-origin"),
        ],
    );
    assert_page(&reply, 405);
}

#[test]
fn pages_are_complete_and_contain_nothing_executable() {
    let (_bench, server) = one_session();
    let session = format!("/sessions/codex_cli/{ID}");
    for path in [
        "/",
        "/sessions",
        "/sessions?q=gears&source=codex_cli&project=&since=2026-01-01",
        "/sessions?q=nothing-like-it",
        "/search",
        "/search?q=gears",
        "/search?q=%22",
        "/tools",
        "/tools?days=all",
        "/usage?days=90&source=claude_code",
        "/library",
        "/library?as_of=2026-01-01",
        "/library?as_of=2026-01-01&since=2025-01-01&source=codex",
        "/audit",
        "/secrets",
        "/gaps",
        "/gaps?status=recovered&source=codex",
        "/files",
        "/lineage",
        "/lineage?file=",
        "/files?view=latest",
        "/files?folder=/nowhere&days=90&source=codex",
        "/insights?days=all&project=&machine=",
        "/insights?days=all&chart=repeated&rows=all",
        "/insights/moments?days=all&what=repeated",
        "/week",
        "/week?calendar=month&date=2026-11-01",
        "/week?calendar=day&date=yesterday",
        "/compare",
        "/compare?of=models&days=all",
        &format!("/compare?one=codex_cli:{ID}&other={ID}"),
        "/compare?one=codex_cli:nobody",
        "/tools?sort=slowest&days=all",
        "/tools/calls?days=all&failed=true&order=slowest&tool=exec",
        "/search?q=%22gears+nobody+wrote%22+tool:Nothing&source=codex_cli",
        "/settings",
        "/?chart=tokens&by=project&heat=cost",
        "/usage?since=2026-11-01&until=2026-11-15&compare=true&by=source&rows=all",
        "/sessions?sort=cost&days=90",
        "/sessions?sort=failures",
        "/sessions?sort=messages&include_subagents=true&parent=nobody",
        &format!("{session}?view=prompts"),
        &format!("{session}?view=failures&from=2"),
        &session,
        &format!("{session}?from=99999"),
        &format!("{session}?from=-3"),
        &format!("{session}?at=nothing&q=gears"),
    ] {
        assert_page(&server.page(path), 200);
    }
    let home = server.page("/settings").text();
    for card in server.json("/api/v1/agent-sessions/sources")["sources"].as_array().unwrap() {
        let source = card["source"].as_str().unwrap();
        assert!(home.contains(&format!("data-source=\"{source}\"")), "no card of {source}");
    }
    assert!(sources::with_home().iter().all(|source| home.contains(source)));
    // An asset may be cached forever, since its address changes with it.
    for address in links(&home, "/").iter().filter(|address| address.starts_with("/assets/")) {
        let reply = server.get_with(address, &[]);
        assert_eq!(reply.status, 200, "{address}");
        assert!(reply.header("cache-control").contains("immutable"), "{address}");
    }
}

#[test]
fn fragments_of_a_session_add_up() {
    let (_bench, server) = one_session();
    let base = format!("/sessions/codex_cli/{ID}");
    let page = server.page(&base).text();
    let steps = server.page(&format!("{base}/steps?from=0")).text();
    assert!(!steps.contains("<html") && steps.contains("about gears"), "{steps}");
    let ids = |text: &str| {
        let id = Regex::new(r#"<article class="entry[^"]*" id="m-([^"]+)""#).unwrap();
        id.captures_iter(text).map(|found| found[1].to_owned()).collect::<Vec<_>>()
    };
    let messages = server.list(&format!("/api/v1/codex/sessions/{ID}/messages"), "messages");
    let message_ids: Vec<&str> = messages.iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!((ids(&steps), ids(&page)), (ids(&steps), ids(&steps)));
    assert_eq!(ids(&steps), message_ids);
    assert!(server.page(&format!("{base}/steps?from=1000")).text().trim().is_empty());
    assert!(server.page(&format!("{base}/outline")).text().contains("gears"));
    assert!(server.page(&format!("{base}/markdown")).text().contains("about gears"));
    let found = server.json(&format!("{base}/find?q=about"));
    assert_eq!(found["matches"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["matches"][0]["id"], message_ids[message_ids.len() - 1]);
    let raw = server.page(&format!("{base}/raw/{}", message_ids[0])).text();
    assert!(raw.contains("&quot;type&quot;") && raw.contains("gears"), "{raw}");
}

/// The page of the original record passes the same door as all others.
#[test]
fn raw_bytes_are_masked() {
    let bench = Bench::new();
    planted::write(&bench);
    bench.sync();
    let server = Server::without_refresh(&bench);
    let secrets = planted::secrets();
    for source in planted::CLIENTS {
        let session = &server.list(&format!("/api/v1/agent-sessions/{source}/sessions"), "sessions")[0];
        let id = session["session_id"].as_str().unwrap();
        let messages =
            server.list(&format!("/api/v1/agent-sessions/{source}/sessions/{id}/messages"), "messages");
        let mut marks = 0;
        for message in &messages {
            let path = format!("/sessions/{source}/{id}/raw/{}", message["id"].as_str().unwrap());
            let text = assert_page(&server.page(&path), 200);
            assert_eq!(planted::leaks(&secrets, &text, &path), Vec::<String>::new());
            marks += text.matches("<mark class=\"secret\"").count();
        }
        assert!(marks > 20, "{source}: only {marks}");
    }
}

#[test]
fn members_see_only_their_own_pages() {
    let company = Company::new();
    for [member, ..] in PEOPLE {
        let (token, seen) = (company.token(member), seen_by(member));
        let pages = [
            "/",
            "/sessions?include_subagents=true",
            "/search?q=words",
            "/tools?days=all",
            "/usage?days=all",
            "/library",
            "/audit",
        ];
        let text: String = pages.map(|path| assert_page(&company.server.page_as(token, path), 200)).concat();
        for [name, _, _, id] in PEOPLE.into_iter().filter(|person| !person[3].is_empty()) {
            let visible = seen.contains(&name);
            for mark in [id.to_owned(), format!("the words of {name}"), format!("/home/{name}/work")] {
                assert_eq!(text.contains(&mark), visible, "{member} and {mark} of {name}");
            }
            let step =
                company.server.list(&format!("/api/v1/codex/sessions/{id}/messages"), "messages")[0]["id"]
                    .clone();
            let step = step.as_str().unwrap();
            for source in ["codex_cli", "claude_code"] {
                for end in ["", "/steps", "/outline", "/markdown", "/find?q=words", "/raw/STEP"] {
                    if end == "/raw/STEP" && source != "codex_cli" {
                        continue;
                    }
                    let path = format!("/sessions/{source}/{id}{}", end.replace("STEP", step));
                    let status = company.server.page_as(token, &path).status;
                    assert_eq!(status, if visible { 200 } else { 404 }, "{member} opens {name}'s {path}");
                }
            }
        }
        assert_eq!(text.contains("words of owner"), seen.contains(&"owner"), "{member}");
    }
}

/// The page and the API know what the last sync saw on disk: the same percentage, tables and files as the terminal.
#[test]
fn the_audit_page_shows_what_the_terminal_shows() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let state = rusqlite::Connection::open(bench.codex().join("state_5.sqlite")).unwrap();
    let tables = format!(
        "create table threads (id text primary key, name text); insert into threads values ('{ID}', 'Engine');
         create table newcomers (id text)"
    );
    state.execute_batch(&tables).unwrap();
    drop(state);
    std::fs::write(bench.codex().join("strange.txt"), "a note of unknown kind").unwrap();
    std::fs::write(bench.codex().join("strange.bin"), [0_u8, 159, 146, 150].repeat(100)).unwrap();
    let cache = bench.codex().join("cache/deep");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("blob"), "x".repeat(5_000)).unwrap();
    bench.sync();
    let server = Server::without_refresh(&bench);
    let of_codex = |audits: &serde_json::Value| {
        let audits = audits["sources"].as_array().unwrap().iter();
        audits.clone().find(|audit| audit["source"] == "codex_cli").unwrap().clone()
    };
    let terminal = of_codex(&bench.json(&["audit"]));
    let served = of_codex(&server.json("/api/v1/audit"));
    for part in ["percent", "files", "bytes", "lines", "stores", "unaccounted", "unknown_files", "tables"] {
        assert_eq!(served[part], terminal[part], "{part}");
    }
    assert!(terminal["percent"].as_f64().unwrap() < 100.0, "{}", terminal["percent"]);
    let page = assert_page(&server.page("/audit"), 200);
    let percent = format!("{} %", terminal["percent"]);
    for shown in
        [&percent, "state_5.sqlite/newcomers", "unknown table", "strange.txt", "strange.bin", "caches"]
    {
        assert!(page.contains(shown), "no {shown} in {page}");
    }
}

/// A name means the same directories in the terminal and on the page, and nothing is found by a part of a path.
#[test]
fn a_project_is_filtered_as_in_the_terminal() {
    let (bench, server) = one_session();
    let session = &server.json("/api/v1/sessions")["sessions"][0];
    let cwd = session["cwd"].as_str().unwrap().to_owned();
    let name = cwd.rsplit('/').next().unwrap();
    for project in [cwd.as_str(), name, &name[..name.len() - 1]] {
        let terminal = bench.json(&["sessions", "--project", project])["sessions"].as_array().unwrap().len();
        assert_eq!(
            server.json(&format!("/api/v1/sessions?project={project}"))["total"],
            terminal,
            "{project}"
        );
        let page = assert_page(&server.page(&format!("/sessions?project={project}")), 200);
        assert_eq!(page.matches("<li class=\"row\"").count(), terminal, "{project}");
    }
    let page = assert_page(&server.page("/sessions?project=nothing-of-this-name"), 400);
    assert!(page.contains("no project is named"), "{page}");
}

#[test]
fn markdown_contains_edits() {
    let bench = super::all_fixtures();
    let server = Server::without_refresh(&bench);
    let mut edited = 0;
    for session in server.list("/api/v1/sessions", "sessions") {
        let base = format!(
            "/sessions/{}/{}",
            session["source"].as_str().unwrap(),
            annals_testkit::server::escaped(session["session_id"].as_str().unwrap())
        );
        let steps = server.page(&format!("{base}/steps")).text();
        if steps.contains("<pre class=\"diff\"") {
            edited += 1;
            let text = server.page(&format!("{base}/markdown")).text();
            assert!(text.contains("\n```diff\n"), "{base}: {text}");
        }
    }
    assert!(edited > 3, "{edited} sessions with edits");
}

#[test]
fn tables_are_for_spreadsheets_too() {
    let (_bench, server) = one_session();
    let reply = server.page("/usage/csv?by=model&days=all");
    let text = reply.text();
    assert_eq!((reply.status, reply.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert!(text.starts_with("model,cost_usd,input,"), "{text}");
}

#[test]
fn the_palette_offers_what_fits() {
    let (_bench, server) = one_session();
    let offers = server.json("/palette?q=gears");
    let kinds: Vec<&str> =
        offers["items"].as_array().unwrap().iter().map(|item| item["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.last(), Some(&"Search"), "{offers}");
    assert!(
        server.json("/palette")["items"].as_array().unwrap().iter().all(|item| item["kind"] == "Session")
    );
    assert_eq!(server.page("/palette?x=1").status, 400);
}

#[test]
fn a_week_is_the_same_on_the_page_and_in_the_terminal() {
    let (bench, server) = one_session();
    let session = server.json(&format!("/api/v1/codex/sessions/{ID}"));
    let day = session["started_at"].as_str().unwrap().split('T').next().unwrap().to_owned();
    let page = assert_page(&server.page(&format!("/week?date={day}")), 200);
    assert!(page.contains(&format!("/sessions/codex_cli/{ID}")), "{page}");
    let week = bench.json(&["week", "--no-git", &day]);
    let prompt = week["projects"][0]["sessions"][0]["prompts"][0].as_str().unwrap();
    assert!(page.contains(prompt), "no {prompt} in {page}");
    let markdown = server.page(&format!("/week/markdown?date={day}"));
    assert_eq!(markdown.text(), bench.run(&["week", "--no-git", &day]).stdout);
    // The week before has nothing, and leads back.
    let before = Regex::new("rel=\"prev\" href=\"([^\"]+)\"").unwrap().captures(&page).unwrap()[1].to_owned();
    let before = assert_page(&server.page(&before.replace("&#38;", "&")), 200);
    assert!(before.contains("Nothing was archived") && before.contains("rel=\"next\""), "{before}");
}

#[test]
fn two_sessions_are_compared() {
    let (bench, server) = one_session();
    drop(server);
    let other = "0199a1b2-0000-7000-8000-00000000cc02";
    bench.transcript(&rollout(other), &conversation(other, "pears"));
    bench.sync();
    let server = Server::without_refresh(&bench);
    let page = assert_page(&server.page(&format!("/compare?one=codex_cli:{ID}&other={other}")), 200);
    for part in [ID, other, "Prompts", "Tool calls", "Estimated cost", "gears", "pears"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let missing =
        assert_page(&server.page(&format!("/compare?one=codex_cli:{ID}&other=codex_cli:nobody")), 200);
    assert!(missing.contains("There is no session codex_cli:nobody."), "{missing}");
    let none = assert_page(&server.page("/compare?of=models&one=nobody&other=nobody&days=all"), 200);
    assert!(none.contains("No session used a model nobody."), "{none}");
    // A session leads here.
    let session = server.page(&format!("/sessions/codex_cli/{ID}")).text();
    assert!(session.contains(&format!("/compare?one=codex_cli%3A{ID}")), "{session}");
}

#[test]
fn a_search_that_finds_nothing_offers_looser_ones() {
    let (_bench, server) = one_session();
    let page = assert_page(&server.page("/search?q=gears+tool:Nothing&role=thinking"), 200);
    for part in ["/search?q=gears%20tool%3ANothing\"", "Without the filters", "Without tool:Nothing"] {
        assert!(page.contains(part), "no {part} in {page}");
    }
    let page = assert_page(&server.page("/search?q=%22gears+zzyzx%22+gears+tool:Nothing"), 200);
    assert!(page.contains("gears zzyzx in any order") && page.contains("alone has 1 result"), "{page}");
    let found = server.page("/search?q=gears").text();
    assert!(!found.contains("aria-label=\"Other searches\""), "{found}");
}

#[test]
fn the_owner_captures_from_the_settings_page() {
    let bench = Bench::new();
    bench.transcript(&rollout(ID), &conversation(ID, "gears"));
    let server = Server::start(&bench);
    let cookie = server.cookie_of(&server.token);
    let ask =
        |site: &str| server.send_form("/settings", &[("Cookie", &cookie), ("Sec-Fetch-Site", site)], "");
    assert_eq!(ask("cross-site").status, 403);
    let reply = ask("same-origin");
    assert_eq!((reply.status, reply.header("location")), (303, "/settings"));
    let page = assert_page(&server.page("/settings"), 200);
    assert!(page.contains("Sync now") && page.contains("Last captured"), "{page}");
    assert!(server.json("/api/v1/sessions")["total"] == 1);
    drop(server);
    let (_bench, server) = one_session();
    let page = assert_page(&server.page("/settings"), 200);
    assert!(page.contains("does not capture") && !page.contains("Sync now"), "{page}");
}

#[test]
fn two_moments_of_the_library_are_compared() {
    let bench = Bench::new();
    let codex = bench.codex();
    let hours_ago = |hours: u64| annals_testkit::clock::system_now() - Duration::from_secs(hours * 3_600);
    let write = |name: &str, text: &str, hours: u64| {
        let path = codex.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_modified(hours_ago(hours)).unwrap();
    };
    write("AGENTS.md", "Oil the gears.\n", 3);
    write("prompts/review.md", "Review the gears.\n", 3);
    write("prompts/stays.md", "Stay.\n", 3);
    bench.sync();
    write("AGENTS.md", "Oil the gears twice.\n", 1);
    write("prompts/new.md", "Something new.\n", 1);
    std::fs::remove_file(codex.join("prompts/review.md")).unwrap();
    bench.sync();
    let server = Server::without_refresh(&bench);
    let between = annals_testkit::clock::now() - jiff::SignedDuration::from_hours(2);
    let escaped = annals_testkit::server::escaped(&between.to_string());
    let page = assert_page(&server.page(&format!("/library?since={escaped}")), 200);
    let changes = page.split("id=\"changes\"").nth(1).unwrap().split("</section>").next().unwrap();
    let row = |name: &str| {
        let rows = changes.split("<tr data-entry>").skip(1);
        rows.filter(|row| row.contains(&format!(">{name}</a>"))).map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, change) in [("new", "added"), ("AGENTS.md", "changed"), ("review", "removed")] {
        let rows = row(name);
        let is_so = rows.len() == 1 && rows[0].contains(&format!("badge {change}"));
        assert!(is_so, "{name} is not {change}: {changes}");
    }
    assert!(row("stays").is_empty() && changes.contains("1 item unchanged"), "{changes}");
    let alone = assert_page(&server.page(&format!("/library?as_of={escaped}")), 200);
    assert!(!alone.contains("id=\"changes\""), "nothing to compare with");
}
