//! From files, weeks, tools and comparisons to the prompts behind them, with a pointer and by keyboard alone.

use serde_json::json;

use super::walk::{Months, compared};
use annals_testkit::browser::{Browser, DESKTOP, ENTER, PHONE, TAB};

/// Presses Tab until an element has the focus.
fn tab_to(browser: &Browser, selector: &str) {
    let is_there = format!("return document.activeElement.matches('{selector}');");
    for _ in 0..80 {
        if browser.run(&is_there) == true {
            return;
        }
        browser.press(&[TAB]);
    }
    panic!("Tab never reaches {selector}");
}

fn type_keys(browser: &Browser, text: &str) {
    let letters: Vec<String> = text.chars().map(String::from).collect();
    browser.press(&letters.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_folder_leads_to_a_file_and_its_history_to_prompts() {
    let (_server, browser) = Months::get().open();
    browser.go("/files?folder=/home/mira/code/tidewatch/src/alarms");
    let listed = browser.count("#rows tr");
    assert!(listed > 0 && browser.count("#rows svg rect") > 0, "{listed} files");
    browser.click("#rows a[href*='watch.ts']");
    browser.wait("the file", "document.querySelector('.lineage tbody')");
    assert!(browser.count(".gutter a") > 0, "some lines have an origin");
    browser.click(".switch a[href*='view=history']");
    browser.wait("its history", "document.querySelector('.prompted .diff')");
    assert!(browser.count(".prompted .asked") > 0);
    browser.click(".prompted a");
    browser.wait("the step", "document.querySelector('.entry.target')");
    // The folder stays when the period changes.
    browser.go("/files?folder=/home/mira/code/tidewatch");
    browser.click(".bar .switch a[href*='days=365']");
    browser.wait("the period", "location.search.includes('days=365')");
    assert!(browser.text("h1").contains("tidewatch"), "{}", browser.text("h1"));
    browser.close();
}

#[test]
fn a_text_is_pasted_and_traced_by_keyboard() {
    let (_server, browser) = Months::get().open();
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    browser.go("/lineage?file=/home/mira/code/tidewatch/src/alarms/watch.ts");
    let line =
        "return Array.from(document.querySelectorAll('.lineage tbody.exact code'), (code) => code.innerText)
        .sort((one, other) => other.length - one.length)[0];";
    let line = browser.run(line).as_str().unwrap().trim().to_owned();
    browser.go("/files");
    tab_to(&browser, ".paste summary");
    browser.press(&[ENTER]);
    tab_to(&browser, ".paste textarea");
    type_keys(&browser, &line);
    tab_to(&browser, ".paste button");
    browser.press(&[ENTER]);
    browser.wait("the answer", "document.querySelector('h1').innerText === 'Who wrote this text'");
    assert_eq!(browser.count(".lineage td code"), 1);
    assert!(browser.count(".gutter a") == 1, "{} is known: {}", line, browser.text(".lineage"));
    browser.close();
}

#[test]
fn a_number_of_a_tool_opens_its_calls_and_a_call_its_step() {
    let (_server, browser) = Months::get().open();
    browser.go("/tools?days=all");
    let tools = browser.texts("#tools ~ .wide tbody th a");
    browser.click("#tools ~ .wide thead a[href*='sort=failed']");
    browser.wait("the order", "location.search.includes('sort=failed')");
    assert_ne!(browser.texts("#tools ~ .wide tbody th a"), tools);
    let failed: i64 =
        browser.texts("#tools ~ .wide tbody td:nth-child(3)")[0].replace(',', "").parse().unwrap();
    assert!(failed > 0);
    browser.click("#tools ~ .wide tbody td:nth-child(3) a");
    browser
        .wait("the calls", "location.pathname === '/tools/calls' && document.querySelector('.calls tbody')");
    assert_eq!(browser.count(".calls tbody tr"), u64::try_from(failed.min(100)).unwrap());
    assert_eq!(browser.count(".calls tbody .warn"), browser.count(".calls tbody tr"), "each failed");
    browser.click(".calls tbody a");
    browser.wait("the step", "document.querySelector('.entry.target')");
    browser.close();
}

#[test]
fn sessions_are_selected_and_tagged_by_keyboard() {
    let (_server, browser) = Months::get().open();
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    browser.go("/sessions?q=harvest");
    let shown = "return document.querySelector('#selected').checkVisibility();";
    assert_eq!(browser.run(shown), false, "nothing is selected yet");
    browser.press(&["j", "x", "j", "x"]);
    assert_eq!((browser.run(shown), browser.text("#selected output").as_str()), (json!(true), "2 selected:"));
    browser.run("document.querySelector('#selected input[name=tags]').focus();");
    type_keys(&browser, "autumn");
    tab_to(&browser, "#selected button[value=tag]");
    browser.press(&[ENTER]);
    browser.wait(
        "the list",
        "document.querySelectorAll('.row .badge').length > 0 && location.search.includes('harvest')",
    );
    let tagged = "return Array.from(document.querySelectorAll('.row .badge')).filter((badge) => badge.innerText === '#autumn').length;";
    assert_eq!(browser.run(tagged), 2);
    browser.go("/sessions?tag=autumn");
    assert_eq!(browser.count(".row"), 2);
    browser.click(".pick");
    browser.click("#selected [data-action=select-all]");
    assert_eq!(browser.text("#selected output"), "2 selected:");
    browser.run("document.querySelector('#selected input[name=tags]').value = 'autumn';");
    browser.click("#selected button[value=untag]");
    browser.wait("no session", "document.querySelectorAll('.row').length === 0");
    browser.close();
}

#[test]
fn the_counts_of_a_search_are_those_of_its_filters() {
    let (_server, browser) = Months::get().open();
    browser.go("/search?q=tide");
    let filter = ".chips a[href*='source=codex_cli']";
    let count = browser.text(&format!("{filter} .count"));
    assert!(browser.count(".chips a[href*='project=']") > 0);
    browser.click(filter);
    browser.wait("the filter", "location.search.includes('source=codex_cli')");
    let total = browser.text("#total");
    assert!(total.starts_with(&format!("{count} session")), "{count} of {total}");
    browser.close();
}

#[test]
fn a_sub_agent_is_read_where_it_was_started() {
    let (server, browser) = Months::get().open();
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    browser.go("/sessions?q=low+tide");
    browser.click(".row .title");
    browser.wait("the session", "document.querySelector('.subagent')");
    let address = browser.address();
    let before = browser.count(".entry");
    browser.run("document.querySelector('.subagent').closest('.call').open = true; document.querySelector('.subagent summary').focus();");
    browser.press(&[ENTER]);
    browser.wait("its steps", "document.querySelectorAll('.subagent .entry').length > 1");
    assert_eq!((browser.address(), browser.count(".entry") > before), (address.clone(), true));
    let agent = browser.run("return new URL(document.querySelector('.subagent a.agent').href).pathname;");
    let agent = agent.as_str().unwrap().to_owned();
    let id = agent.rsplit('/').next().unwrap();
    let all = server.list(&format!("/api/v1/agent-sessions/claude_code/sessions/{id}/messages"), "messages");
    assert_eq!(browser.count(".subagent .entry"), all.len() as u64, "all of its steps");
    // Its steps link to its own page.
    let link =
        browser.run("return document.querySelector('.subagent .entry .tools a').getAttribute('href');");
    assert!(link.as_str().unwrap().starts_with(&format!("{agent}?at=")), "{link}");
    browser.press(&[ENTER, ENTER]);
    assert_eq!(browser.count(".subagent .entry"), all.len() as u64, "once, however often it is opened");
    browser.close();
}

#[test]
fn a_number_of_the_insights_opens_what_it_counts() {
    let (_server, browser) = Months::get().open();
    browser.go("/insights?days=all");
    let repeated = browser.text(".tiles a[href*='what=repeated'] .big");
    browser.click(".switch a[href*='chart=repeated']");
    browser.wait("the chart", "location.search.includes('chart=repeated')");
    assert!(browser.count(".bars a[href*='what=repeated']") > 0, "bars lead to prompts");
    // By keyboard: from the table of projects to the list, and from there to the step.
    browser.command("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
    browser.run("document.querySelector('#projects ~ .wide tbody td a[href*=\"what=repeated\"]').focus();");
    let number = browser.run("return document.activeElement.innerText;").as_str().unwrap().to_owned();
    browser.press(&[ENTER]);
    browser.wait("the list", "location.pathname === '/insights/moments'");
    assert_eq!(browser.text("#total b"), number);
    let rows = browser.count(".calls tbody tr").to_string();
    assert!(number == rows || rows == "100", "{rows} rows of {number}");
    browser.press(&["j", ENTER]);
    browser.wait("the step", "document.querySelector('.entry.target.prompt')");
    browser.go("/insights/moments?days=all&what=repeated");
    assert_eq!(browser.text("#total b"), repeated);
    browser.close();
}

#[test]
fn a_week_and_a_comparison_lead_to_sessions() {
    let (server, browser) = Months::get().open();
    browser.go("/week?calendar=month&date=last+month");
    assert!(browser.count(".project") > 0 && browser.count(".done > li") > 0);
    let title = browser.text(".done > li a");
    browser.click(".done > li a");
    browser.wait("the session", "document.querySelector('.session h1')");
    assert_eq!(browser.text("h1"), title);
    browser.go(&compared(&server));
    assert_eq!(browser.count(".compared tbody tr"), 11);
    assert_eq!(browser.count(".columns > section"), 2);
    browser.click(".columns section:last-child li a");
    browser.wait("the prompt", "document.querySelector('.entry.target')");
    browser.go("/compare?of=models&days=all");
    let models = browser.run(
        "return Array.from(document.querySelectorAll('select[name=one] option'), (option) => option.value).slice(1, 3);",
    );
    let model = |at: usize| annals_testkit::server::escaped(models[at].as_str().unwrap());
    browser.go(&format!("/compare?of=models&days=all&one={}&other={}", model(0), model(1)));
    assert_eq!(browser.count(".compared tbody tr"), 9);
    browser.close();
}

#[test]
fn a_phone_shows_what_was_asked_for_on_its_first_screen() {
    let (server, browser) = Months::get().open();
    browser.resize(PHONE);
    let file = "/lineage?file=/home/mira/code/tidewatch/src/alarms/watch.ts";
    for (page, part) in [
        ("/files?folder=/home/mira/code/tidewatch".to_owned(), "#rows a"),
        (file.to_owned(), ".lineage code"),
        (format!("{file}&view=history"), ".prompted .asked"),
        ("/week?calendar=month&date=last+month".to_owned(), ".done a"),
        ("/tools/calls?days=all".to_owned(), ".calls tbody a"),
        ("/insights?days=all".to_owned(), ".tiles .big"),
        ("/insights/moments?days=all&what=repeated".to_owned(), ".calls tbody a"),
        (compared(&server), ".compared tbody td"),
    ] {
        browser.go(&page);
        let top =
            browser.run(&format!("return document.querySelector('{part}').getBoundingClientRect().top;"));
        let top = top.as_f64().unwrap();
        assert!(top < 844.0, "{page}: {part} is {top} pixels down");
    }
    browser.resize(DESKTOP);
    browser.close();
}
