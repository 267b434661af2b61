//! What people do with the pages, in a real browser on months of made-up work.

use std::sync::OnceLock;

use serde_json::{Value, json};

use annals_testkit::browser::{Browser, DESKTOP, ENTER, ESCAPE, PHONE, TAB};
use annals_testkit::files::copy_folder;
use annals_testkit::server::Server;
use annals_testkit::worlds::story;
use annals_testkit::{Bench, fixtures, sources};

/// Import fixtures with something to see.
const IMPORTED: [(&str, &str); 2] = [("chatgpt", "second_generation"), ("openai_api", "responses")];

/// Months of work; created once, since nothing changes it.
pub struct Months {
    bench: Bench,
}

impl Months {
    pub fn get() -> &'static Months {
        static MONTHS: OnceLock<Months> = OnceLock::new();
        MONTHS.get_or_init(|| {
            let bench = Bench::new();
            let sync = || assert_eq!(bench.run(&["sync"]).code, 0);
            let count = story::write(&bench.user(), annals_testkit::clock::since_1970(), 3, sync).unwrap();
            assert_eq!(bench.run(&["sync"]).code, 0);
            assert!(count > 60, "{count} sessions");
            for (source, fixture) in IMPORTED {
                bench.import(&[&fixtures::case(source, fixture).join("exports/1")]);
            }
            for (source, case) in fixtures::with_exports() {
                if IMPORTED.iter().all(|(imported, _)| *imported != source) {
                    bench.import(&[&case.join("exports/1")]);
                }
            }
            for (source, case) in fixtures::with_home() {
                if !story::CLIENTS.contains(&source) {
                    copy_folder(&case.join("home"), &bench.home_of(source));
                }
            }
            sync();
            Months { bench }
        })
    }

    /// A server, and a browser that has opened its link.
    pub fn open(&self) -> (Server, Browser) {
        let server = Server::without_refresh(&self.bench);
        let browser = Browser::open(&server.address, &server.token);
        (server, browser)
    }
}

/// The newest session of a source, with the address of its page.
pub fn newest(server: &Server, source: &str) -> String {
    let list = server.json(&format!("/api/v1/sessions?source={source}&limit=1"));
    format!("/sessions/{source}/{}", list["sessions"][0]["session_id"].as_str().unwrap())
}

/// The address that compares the newest sessions of two sources.
pub fn compared(server: &Server) -> String {
    let both = ["codex_cli", "claude_code"].map(|source| newest(server, source).replace("/sessions/", ""));
    let [one, other] = both.map(|path| path.replacen('/', ":", 1));
    format!("/compare?one={one}&other={other}")
}

/// Every page, with something on it.
pub fn every_page(server: &Server) -> Vec<String> {
    // That page reloads itself when the scan has ended.
    server.wait_for_secrets();
    let mut pages =
        ["/", "/sessions", "/sessions?q=nothing-like-it", "/search", "/search?q=alarm", "/tools?days=all"]
            .map(str::to_owned)
            .to_vec();
    pages.extend(["/usage?days=90&compare=true", "/usage?days=all&by=source&rows=all"].map(str::to_owned));
    pages.extend(["/sessions?sort=cost", "/insights?days=all", "/files", "/settings"].map(str::to_owned));
    pages.extend(
        [
            "/library",
            "/library?since=2020-01-01",
            "/audit",
            "/secrets",
            "/secrets?by=session",
            "/gaps",
            "/?chart=tokens&by=source&heat=cost",
        ]
        .map(str::to_owned),
    );
    let file = "/lineage?file=/home/mira/code/tidewatch/src/alarms/watch.ts";
    pages.extend([file.to_owned(), format!("{file}&view=history")]);
    pages.extend(["/files?folder=/home/mira/code/tidewatch/src", "/files?view=latest"].map(str::to_owned));
    pages.extend(
        ["/week?date=last+week", "/week?calendar=month", "/tools?sort=slowest&days=all"].map(str::to_owned),
    );
    pages.extend(
        ["/tools/calls?days=all&failed=true", "/search?q=%22tide+alarm+nobody%22+sonnet"].map(str::to_owned),
    );
    pages.extend(
        ["failed", "repeated", "context", "missed"]
            .map(|what| format!("/insights/moments?days=all&what={what}")),
    );
    pages.push("/insights?days=all&chart=repeated&rows=all".to_owned());
    pages.extend(["/compare", "/compare?of=models"].map(str::to_owned));
    pages.push(compared(server));
    for source in sources::all() {
        let session = newest(server, source);
        let id = session.rsplit('/').next().unwrap();
        let messages =
            server.list(&format!("/api/v1/agent-sessions/{source}/sessions/{id}/messages"), "messages");
        pages.push(format!("{session}/raw/{}", messages[0]["id"].as_str().unwrap()));
        pages.extend(["edits", "failures"].map(|view| format!("{session}?view={view}")));
        pages.push(session);
    }
    let items = server.list("/api/v1/library", "items");
    let changed = items.iter().find(|item| item["name"] == "review").unwrap_or(&items[0]);
    let part = |name: &str| annals_testkit::server::escaped(changed[name].as_str().unwrap());
    pages.push(format!("/library/item?source={}&kind={}&id={}", part("source"), part("kind"), part("id")));
    pages
}

#[test]
fn the_link_opens_the_home_page_and_the_token_leaves_the_address() {
    let (server, browser) = Months::get().open();
    assert_eq!(browser.address(), "/");
    let body = browser.run("return document.documentElement.outerHTML;");
    assert!(!body.as_str().unwrap().contains(&server.token));
    assert_eq!(browser.run("return document.cookie;"), "", "scripts can not read it");
    let cards = server.json("/api/v1/agent-sessions/sources");
    let cards = cards["sources"].as_array().unwrap();
    let is_absent = |card: &Value| card["source_status"] == "unavailable" && card["files"] == 0;
    let absent = cards.iter().filter(|card| is_absent(card)).count();
    assert!(absent < cards.len(), "{cards:?}");
    assert_eq!(browser.count(".sources li[data-source]"), (cards.len() - absent) as u64);
    assert!(browser.count(".heat rect") > 300, "a year of days");
    assert!(browser.count(".bars rect") > 10, "cost or tokens");
    assert_eq!(browser.count(".tile"), 4);
    browser.go("/settings");
    assert_eq!(browser.count(".card[data-source]"), (cards.len() - absent) as u64);
    assert_eq!(browser.count(".folded li[data-source]"), absent as u64);
    browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true;");
    let folded = if absent > 0 { browser.text(".folded") } else { String::new() };
    assert_eq!(browser.count(".folded"), u64::from(absent > 0));
    for card in cards {
        let label = card["provider_label"].as_str().unwrap();
        if is_absent(card) {
            assert!(folded.contains(label), "{folded}");
            continue;
        }
        let text = browser.text(&format!(".card[data-source={}]", card["source"].as_str().unwrap()));
        assert!(text.contains(label), "{text}");
        match card["session_count"].as_i64().unwrap() {
            0 => assert!(text.contains("Set up:"), "{text}"),
            count => assert!(text.contains(&count.to_string()), "{count}: {text}"),
        }
    }
    browser.close();
}

#[test]
fn the_list_and_its_address_update_while_typing() {
    let (server, browser) = Months::get().open();
    browser.go("/sessions");
    let all = browser.text("#total");
    browser.type_into("main input[name=q]", "low tide");
    browser.wait("the list", "document.querySelectorAll('.row').length === 1");
    assert!(browser.text(".row .title").contains("low tide"), "{}", browser.text(".row .title"));
    assert!(browser.address().contains("q=low+tide"), "{}", browser.address());
    browser.go(&browser.address());
    assert_eq!(browser.count(".row"), 1, "the address is enough to see it again");
    assert_eq!(browser.run("return document.querySelector('main input[name=q]').value;"), "low tide");
    browser.go("/sessions");
    assert_eq!(browser.text("#total"), all);
    browser.click("input[name=errors]");
    browser.wait("the filter", "location.search.includes('errors=true')");
    let failed = server.json("/api/v1/sessions?errors=true")["total"].as_i64().unwrap();
    browser.wait("the number", &format!("document.querySelector('#total').innerText.includes('{failed}')"));
    assert!(failed > 0 && !all.contains(&format!("{failed} ")), "{failed} of {all}");
    browser.close();
}

#[test]
fn a_provider_is_switched_to_and_back() {
    let (server, browser) = Months::get().open();
    browser.go("/sessions");
    for source in story::CLIENTS {
        browser.click(&format!(".facets a[href*='source={source}']"));
        browser.wait("the list", &format!("location.search.includes('source={source}')"));
        let label = browser.text(".facets a[aria-current] .name");
        let sources = browser.texts(".row .source");
        assert!(!sources.is_empty() && sources.iter().all(|shown| *shown == label), "{label}: {sources:?}");
        let total = server.json(&format!("/api/v1/sessions?source={source}"))["total"].as_i64().unwrap();
        assert!(browser.text("#total").contains(&total.to_string()));
    }
    browser.click(".facets li:first-child a");
    browser.wait("all again", "!location.search.includes('source=')");
    browser.close();
}

#[test]
fn the_list_loads_more_until_its_end() {
    let (server, browser) = Months::get().open();
    let total = server.json("/api/v1/sessions")["total"].as_u64().unwrap();
    browser.go("/sessions");
    let first = browser.count(".row");
    assert!(first < total, "{first} of {total}");
    let mut before = 0;
    while before < total {
        browser.run("window.scrollTo(0, document.body.scrollHeight);");
        browser.wait("more rows", &format!("document.querySelectorAll('.row').length > {before}"));
        before = browser.count(".row");
    }
    assert_eq!(browser.count(".row"), total);
    let different =
        "return new Set(Array.from(document.querySelectorAll('.row .title'), (row) => row.href)).size;";
    assert_eq!(browser.run(different), total, "each once");
    assert_eq!(browser.count(".more"), 0);
    browser.close();
}

#[test]
fn a_session_of_each_source_shows_messages_and_calls() {
    let (server, browser) = Months::get().open();
    for source in story::CLIENTS {
        browser.go(&newest(&server, source));
        assert!(browser.count(".entry") > 5, "{source}");
        for kind in
            [".entry.prompt", ".entry.answer .prose", "details.call.shell", "details.call.edit", ".steps li"]
        {
            assert!(browser.count(kind) > 0, "no {kind} in a session of {source}");
        }
        browser.run("for (const work of document.querySelectorAll('details.work')) work.open = true;");
        // A call is folded until it is opened.
        let shown = "return document.querySelector('details.call.shell pre').checkVisibility();";
        browser.run("for (const call of document.querySelectorAll('details.call')) call.open = false;");
        assert_eq!(browser.run(shown), false);
        browser.click("details.call.shell > summary");
        assert_eq!(browser.run(shown), true);
        assert!(!browser.text("details.call.shell .io pre").trim().is_empty());
        // An edit is shown as a diff.
        browser.click("details.call.edit > summary");
        let differences = browser.texts("details.call.edit .diff .da");
        assert!(!differences.is_empty() && differences[0].starts_with('+'), "{source}: {differences:?}");
        assert!(browser.count(".timeline .prompts a") > 0);
    }
    browser.go(&newest(&server, "claude_code"));
    browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true;");
    browser.click("a.agent");
    browser.wait(
        "the sub-agent",
        "document.querySelector('.ties') && document.querySelectorAll('.entry').length > 2",
    );
    assert!(browser.text(".ties").contains("Started by"), "{}", browser.text(".ties"));
    browser.click(".ties a");
    browser.wait("its parent", "document.querySelector('h1').innerText.includes('low tide')");
    browser.close();
}

#[test]
fn imported_sessions_are_shown_and_branches_switch() {
    let (server, browser) = Months::get().open();
    for (source, _) in IMPORTED {
        browser.go(&newest(&server, source));
        for kind in [".entry.prompt", ".entry.answer", "details.call"] {
            assert!(browser.count(kind) > 0, "no {kind} in a session of {source}");
        }
        browser.click("details.call > summary");
        assert!(browser.count("details.call[open]") > 0, "{source}");
    }
    browser.go(&newest(&server, "chatgpt"));
    let before = browser.texts(".entry .prose");
    browser.click(".branches a");
    browser.wait("the other branch", "location.search.includes('branch=')");
    assert!(browser.text("#conversation").contains("another branch"), "it says so");
    let after = browser.texts(".entry .prose");
    assert_ne!(before, after, "another branch says something else");
    assert!(browser.count(".entry.target") == 1, "and the step that was chosen is marked");
    browser.click("#conversation .note a");
    browser.wait("the branch of the client", "!location.search.includes('branch=')");
    assert_eq!(browser.texts(".entry .prose"), before);
    browser.close();
}

#[test]
fn matches_are_highlighted_in_the_session() {
    let (_server, browser) = Months::get().open();
    browser.go("/search");
    browser.type_into("main input[name=q]", "estuary unseen");
    browser.wait("results", "document.querySelectorAll('.passage mark').length > 0");
    assert!(browser.address().starts_with("/search?q=estuary"), "{}", browser.address());
    browser.click(".passage a");
    browser.wait("the message", "document.querySelector('.entry.target mark')");
    let text = browser.text(".entry.target");
    assert!(text.contains("estuary"), "{text}");
    let seen = "const box = document.querySelector('.entry.target').getBoundingClientRect();
        return box.bottom > 0 && box.top < innerHeight;";
    assert_eq!(browser.run(seen), true, "it is where the eye is");
    let marks = browser.texts(".entry.target mark");
    assert!(marks.iter().any(|mark| mark.eq_ignore_ascii_case("estuary")), "{marks:?}");
    browser.close();
}

#[test]
fn find_in_session_finds_words() {
    let (server, browser) = Months::get().open();
    browser.go(&newest(&server, "claude_code"));
    browser.type_into("[data-find] input[name=q]", "raw_metres");
    browser.wait("matches", "!document.querySelector('[data-action=find-next]').disabled");
    browser.click("[data-action=find-next]");
    browser.wait("the first", "document.querySelector('.entry.target mark.found')");
    assert!(browser.text(".entry.target").contains("raw_metres"));
    assert!(browser.text("[data-find] output").starts_with("1 of"));
    browser.click("[data-action=find-next]");
    browser.run("scrollTo(0, document.documentElement.scrollHeight);");
    let in_sight = "const box = document.querySelector('[data-find] input').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight;";
    assert_eq!(browser.run(in_sight), true, "the box stays where the hands are");
    browser.close();
}

#[test]
fn the_palette_opens_sessions_pages_and_actions_by_keyboard() {
    let (_server, browser) = Months::get().open();
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    let open =
        "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));";
    browser.run(open);
    browser.wait("the box", "document.activeElement.matches('#palette input')");
    browser.type_into("#palette input", "low tide");
    browser.wait("a session", "document.querySelector('#palette li .kind')?.textContent === 'Session'");
    browser.press(&[ENTER]);
    browser.wait("the session", "document.querySelector('#pane h1')?.innerText.includes('low tide')");
    browser.run(open);
    browser.wait("the box", "document.activeElement.matches('#palette input')");
    browser.type_into("#palette input", "light and dark");
    browser.wait("the action", "document.querySelector('#palette li .kind')?.textContent === 'Action'");
    browser.press(&[ENTER]);
    assert_eq!(browser.run("return document.documentElement.dataset.theme;"), "dark");
    assert_eq!(browser.run("return document.querySelector('#palette').open;"), false);
    browser.close();
}

#[test]
fn the_list_stays_while_sessions_change_beside_it() {
    let (server, browser) = Months::get().open();
    let first = newest(&server, "claude_code");
    browser.go(&first);
    browser.run("window.sameDocument = true;");
    browser.click(".beside li a:not([aria-current])");
    browser.wait(
        "another session",
        &format!("location.pathname !== '{first}' && document.querySelector('.entry')"),
    );
    let title = browser.text(".beside a[aria-current] .name");
    assert_eq!(browser.text("#pane h1"), title);
    assert_eq!(browser.run("return window.sameDocument;"), true, "the list was not loaded again");
    browser.run("history.back();");
    browser.wait(
        "the first again",
        &format!(
            "location.pathname === '{first}' && document.querySelector('#pane').dataset.base === '{first}'"
        ),
    );
    assert_eq!(browser.run("return window.sameDocument;"), true);
    browser.close();
}

#[test]
fn a_session_is_narrowed_to_what_failed_or_changed_files() {
    let (server, browser) = Months::get().open();
    browser.go(&newest(&server, "claude_code"));
    let all = browser.run("return document.querySelector('#conversation').dataset.total;");
    for (view, kind) in [("edits", "details.call .diff"), ("failures", "details.call.failed")] {
        browser.click(&format!(".about .switch a[href*='view={view}']"));
        browser.wait(
            "the view",
            &format!("location.search.includes('view={view}') && document.querySelector('#narrowed')"),
        );
        assert!(browser.count("#narrowed .entry") > 0, "{view}");
        assert_eq!(
            browser.count("#narrowed .entry"),
            browser.count(&format!("#narrowed .entry:has({kind})")),
            "{view}"
        );
    }
    browser.click(".about .switch a:first-child");
    browser.wait("everything", "document.querySelector('#conversation')");
    assert_eq!(browser.run("return document.querySelector('#conversation').dataset.total;"), all);
    browser.close();
}

#[test]
fn sub_agents_unfold_below_their_session() {
    let (_server, browser) = Months::get().open();
    browser.go("/sessions");
    let before = browser.count(".row");
    browser.click(".row a.agents");
    browser.wait("the sub-agents", "document.querySelector('.nested .row')");
    assert!(browser.count(".row") > before);
    assert_eq!(browser.count(".nested .row"), browser.count(".nested .badge.sub-agent"));
    browser.click(".row a.agents");
    browser.wait("the fold", "!document.querySelector('.nested')");
    assert_eq!(browser.count(".row"), before);
    browser.close();
}

#[test]
fn a_token_is_typed_where_it_is_asked_for() {
    let (server, browser) = Months::get().open();
    browser.command("Network.clearBrowserCookies", &json!({}));
    browser.go("/sessions");
    browser.type_into("input[name=token]", &server.token);
    browser.press(&[ENTER]);
    browser.wait("the home page", "document.querySelector('.tiles')");
    assert_eq!(browser.address(), "/", "the token is not in the address");
    let faults =
        browser.faults().into_iter().filter(|fault| !fault.contains("responded with a status of 401"));
    assert_eq!(faults.collect::<Vec<_>>(), Vec::<String>::new());
    browser.close_checked();
}

/// Words are not broken letter by letter, whatever the table.
#[test]
fn a_phone_shows_words_as_words() {
    let (server, browser) = Months::get().open();
    server.wait_for_secrets();
    browser.resize(PHONE);
    for page in ["/secrets", "/gaps", "/usage?days=90", "/audit"] {
        browser.go(page);
        let narrow =
            "return Array.from(document.querySelectorAll('main td:not(.number), main th:not(.number)'))
            .filter((cell) => cell.checkVisibility() && cell.innerText.length > 20 && cell.offsetWidth < 90)
            .map((cell) => cell.innerText);";
        assert_eq!(browser.run(narrow), json!([]), "{page}");
    }
    browser.resize(DESKTOP);
    browser.close();
}

#[test]
fn times_are_those_of_the_reader() {
    let (server, browser) = Months::get().open();
    browser.command("Emulation.setTimezoneOverride", &json!({ "timezoneId": "Asia/Tokyo" }));
    browser.go(&newest(&server, "claude_code"));
    assert!(!browser.text(".about .numbers").contains("UTC"));
    let hours = "return ['.period time', '.entry time'].map((place) => {
        const time = document.querySelector(place);
        const there = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'Asia/Tokyo' });
        return time.textContent === there.format(new Date(time.dateTime));
    });";
    assert_eq!(browser.run(hours), json!([true, true]));
    browser.close();
}

#[test]
fn dark_is_chosen_and_stays() {
    let (_server, browser) = Months::get().open();
    let theme = "return document.documentElement.dataset.theme;";
    let back = "return getComputedStyle(document.body).backgroundColor;";
    browser.prefer("light");
    assert_eq!(browser.run(theme), "system");
    let light = browser.run(back);
    browser.prefer("dark");
    let dark = browser.run(back);
    assert_ne!(light, dark, "what the system prefers is enough");
    browser.prefer("light");
    browser.click(".theme");
    assert_eq!((browser.run(theme), browser.run(back)), (json!("dark"), dark.clone()));
    browser.go("/sessions");
    assert_eq!(
        (browser.run(theme), browser.run(back)),
        (json!("dark"), dark),
        "on every page, from its first moment"
    );
    browser.click(".theme");
    browser.go("/");
    assert_eq!((browser.run(theme), browser.run(back)), (json!("light"), light));
    browser.close();
}

#[test]
fn no_page_is_wider_than_a_phone() {
    let (server, browser) = Months::get().open();
    browser.resize(PHONE);
    for page in every_page(&server) {
        browser.go(&page);
        browser.run("for (const folded of document.querySelectorAll('details')) folded.open = true;");
        let widths = browser.run("return [document.documentElement.scrollWidth, innerWidth];");
        let widest = "let widest = ['', 0];
            for (const part of document.querySelectorAll('body *')) {
              // Text may be wider than its box.
              const { left, width } = part.getBoundingClientRect();
              const text = getComputedStyle(part).overflowX === 'visible' ? part.scrollWidth : 0;
              const right = left + Math.max(width, text);
              let above = part.parentElement;
              while (above && getComputedStyle(above).overflowX === 'visible') above = above.parentElement;
              if (right > widest[1] && (!above || above === document.documentElement)) widest = [part.outerHTML.slice(0, 200), right];
            }
            return widest;";
        assert_eq!(widths, json!([390, 390]), "{page} is {} wide: {}", widths[0], browser.run(widest));
    }
    browser.resize(DESKTOP);
    browser.close();
}

#[test]
fn everything_is_reached_by_keyboard() {
    let (_server, browser) = Months::get().open();
    // A window without focus loses keys that are pressed before it has focus.
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    browser.wait("the page that hears keys", "document.hasFocus()");
    browser.press(&[TAB]);
    browser.wait("the first stop", "document.activeElement.innerText === 'Skip to content'");
    browser.press(&[ENTER, TAB]);
    browser.wait("the content", "document.querySelector('main').contains(document.activeElement)");
    browser.press(&["g", "s"]);
    browser.wait("the list", "location.pathname === '/sessions'");
    browser.press(&["j", "j", "k", "j"]);
    assert_eq!(
        browser.run(
            "return Array.from(document.querySelectorAll('.row')).findIndex((row) => row.matches('.here'));"
        ),
        1
    );
    let title = browser.text(".row.here .title");
    browser.press(&[ENTER]);
    browser.wait("the session", "document.querySelector('.session h1')");
    assert_eq!(browser.text("h1"), title);
    browser.press(&["j"]);
    browser.wait("an entry", "document.querySelector('.entry.here')");
    for _ in 0..30 {
        if browser.count(".entry.here details") > 0 {
            break;
        }
        browser.press(&["j"]);
    }
    let open = "return document.querySelector('.entry.here details').open;";
    let before = browser.run(open);
    browser.press(&["o"]);
    assert_ne!(browser.run(open), before, "o opens and closes");
    browser.press(&["?"]);
    assert_eq!(browser.run("return document.querySelector('#keys').open;"), true);
    browser.press(&[ESCAPE]);
    assert_eq!(browser.run("return document.querySelector('#keys').open;"), false);
    browser.press(&["t"]);
    assert_eq!(browser.run("return document.documentElement.dataset.theme;"), "dark");
    browser.press(&["f"]);
    assert_eq!(browser.run("return document.activeElement.matches('[data-key=f]');"), true);
    browser.press(&[ESCAPE, "/"]);
    assert_eq!(browser.run("return document.activeElement.matches('[data-key=\"/\"]');"), true);
    browser.press(&["a", "l", "a", "r", "m", ENTER]);
    browser.wait("the search", "location.pathname === '/search' && document.querySelector('.passage')");
    browser.press(&["j"]);
    assert_eq!(browser.count(".passage.here"), 1);
    let match_id = browser.run("return new URL(document.querySelector('.passage.here a').href).hash;");
    browser.press(&[ENTER]);
    browser.wait("the match itself", "document.querySelector('.entry.target')");
    assert_eq!(browser.run("return '#' + document.querySelector('.entry.target').id;"), match_id);
    browser.close();
}

/// The checks at the end of every test do find what they look for.
#[test]
fn faults_of_a_page_are_noticed() {
    let (_server, browser) = Months::get().open();
    assert_eq!(browser.faults(), Vec::<String>::new());
    browser.run(
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';
         document.head.append(script);
         const picture = new Image(); picture.src = 'http://elsewhere.example/x.png'; document.body.append(picture);
         console.error('something is wrong');
         fetch('/nothing');",
    );
    browser.wait("all of it", "performance.getEntriesByName(location.origin + '/nothing').length");
    let faults = browser.faults().join("\n");
    for sign in ["Content Security Policy", "inline script", "elsewhere.example", "something is wrong", "404"]
    {
        assert!(faults.contains(sign), "no {sign} in\n{faults}");
    }
    assert_eq!(browser.run("return window.ran === undefined;"), true);
    browser.close_checked();
}
