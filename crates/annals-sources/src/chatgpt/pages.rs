//! How documents and lists of the account are requested, page by page, and what follows a page.

use super::listing;
use super::listing::{
    ACCOUNT, AUTOMATIONS, BETA_FEATURES, CLOUD_TASKS, DATA_CONTROLS, FILE_LIBRARY, GENERATED_IMAGES, GPTS,
    GROUP_CHATS, INSTRUCTIONS, MEMORIES, MEMORY_SUMMARY, MODELS, PINS, PROJECTS, SETTINGS, SHARES, TASKS,
};
use super::times::moment;
use crate::json::Json;
use crate::live::{ListPage, Listed, ListedItem, Listing, LiveRequest, NextPage, PageRequest};
use serde_json::json;

/// The most that a list answers at once; more is an error.
const LIST_PAGE: usize = 100;
const PROJECT_PAGE: usize = 50;
/// The most tasks at once.
const TASK_PAGE: usize = 20;
pub const PROJECT: &str = "project ";

/// Automations are listed by what becomes of them.
const AUTOMATION_STATES: [&str; 3] = ["scheduled", "paused", "finished"];

pub fn listing_request(listing: &Listing, way: usize, page: PageRequest<'_>) -> Option<LiveRequest> {
    let place = page.place.unwrap_or_default();
    let behind = |name: &str, place: &str| match place {
        "" => String::new(),
        place => format!("&{name}={}", escaped(place)),
    };
    let (limit, tasks) = (page.size(LIST_PAGE), page.size(TASK_PAGE));
    let path = match (listing.name, way) {
        (MEMORIES, 0) => {
            format!("/backend-api/memories?include_memory_entries=true{}", behind("cursor", place))
        }
        (MEMORY_SUMMARY, 0) => "/backend-api/memories/about_you/summary/stream".to_owned(),
        (INSTRUCTIONS, 0) => "/backend-api/user_system_messages".to_owned(),
        (GPTS, 0) => format!("/backend-api/gizmos/mine?limit={limit}{}", behind("cursor", place)),
        (GPTS, 1) => format!("/backend-api/gizmos/discovery/mine?limit={limit}{}", behind("cursor", place)),
        (GPTS, 2) => format!("/public-api/gizmos/discovery/mine?limit={limit}{}", behind("cursor", place)),
        (PROJECTS, 0) => format!(
            "/backend-api/gizmos/snorlax/sidebar?conversations_per_gizmo=0{}",
            behind("cursor", place)
        ),
        (PROJECTS, 1) => {
            format!("/backend-api/gizmos/bootstrap/projects?limit={limit}{}", behind("cursor", place))
        }
        (SHARES, 0) => {
            let (offset, cursor) = offset_and_cursor(page);
            let cursor = behind("cursor", cursor);
            format!("/backend-api/shared_conversations?order=created&limit={limit}&offset={offset}{cursor}")
        }
        (AUTOMATIONS, 0) => {
            let (state, cursor) = automation_place(place);
            format!("/backend-api/automations?filter={state}{}", behind("cursor", cursor))
        }
        (TASKS, 0) => format!("/backend-api/tasks?limit={tasks}{}", behind("cursor", place)),
        (CLOUD_TASKS, 0) => {
            format!("/backend-api/wham/tasks/list?limit={tasks}{}", behind("cursor", place))
        }
        (GROUP_CHATS, 0) => format!(
            "/backend-api/calpico/chatgpt/rooms/summary?limit={limit}&include_pinned=true{}",
            behind("cursor", place)
        ),
        (GENERATED_IMAGES, 0) => {
            format!("/backend-api/my/recent/image_gen?limit={limit}{}", behind("after", place))
        }
        (FILE_LIBRARY, 0) => {
            let body = json!({"limit": limit, "cursor": page.place}).to_string();
            return Some(LiveRequest { path: "/backend-api/files/library".to_owned(), body: Some(body) });
        }
        (PINS, 0) => "/backend-api/pins".to_owned(),
        (ACCOUNT, 0) => "/backend-api/me".to_owned(),
        (MODELS, 0) => "/backend-api/models".to_owned(),
        (SETTINGS, 0) => "/backend-api/settings/user".to_owned(),
        (DATA_CONTROLS, 0) => "/backend-api/settings/data_controls".to_owned(),
        (BETA_FEATURES, 0) => "/backend-api/settings/beta_features".to_owned(),
        _ => return None,
    };
    Some(LiveRequest::get(path))
}

pub fn listing_page(listing: &Listing, page: PageRequest<'_>, body: &str) -> Option<ListPage<ListedItem>> {
    let json = Json::parse(body.as_bytes())?;
    let (found, nameless) = listing::items_and_nameless(listing.name, json)?;
    let listed = found.len() + nameless;
    let next = match listing.name {
        SHARES => after_offset(json, page, listed)?,
        AUTOMATIONS => {
            let (state, _) = automation_place(page.place.unwrap_or_default());
            let after = AUTOMATION_STATES.iter().skip_while(|known| **known != state).nth(1);
            match (cursor(json)?, after) {
                (Some(cursor), _) => NextPage::At(format!("{state} {cursor}")),
                (None, Some(after)) => NextPage::Part((*after).to_owned()),
                (None, None) => NextPage::End,
            }
        }
        name if listing::is_one_document(name) => NextPage::End,
        _ => at_or_end(cursor(listing::container(json))?.or(cursor(json)?)),
    };
    let body = |item: Json<'_>| String::from_utf8_lossy(item.bytes()).into_owned();
    let items = found.into_iter().map(|(id, item)| ListedItem { id, body: body(item) }).collect();
    Some(ListPage { items, next, nameless })
}

pub fn list_request(list: &str, page: PageRequest<'_>) -> LiveRequest {
    LiveRequest::get(match list.strip_prefix(PROJECT) {
        Some(project) => format!(
            "/backend-api/gizmos/{}/conversations?limit={}&cursor={}",
            escaped(project),
            page.size(PROJECT_PAGE),
            escaped(page.place.unwrap_or("0"))
        ),
        None => {
            let (offset, cursor) = offset_and_cursor(page);
            // The plain list leaves archived conversations out.
            let archived = if list == "archived" { "&is_archived=true" } else { "" };
            let cursor =
                if cursor.is_empty() { String::new() } else { format!("&cursor={}", escaped(cursor)) };
            let limit = page.size(LIST_PAGE);
            format!(
                "/backend-api/conversations?offset={offset}&limit={limit}&order=updated{archived}{cursor}"
            )
        }
    })
}

pub fn list_page(list: &str, page: PageRequest<'_>, body: &str) -> Option<ListPage<Listed>> {
    let json = Json::parse(body.as_bytes())?;
    let listed = listing::array(json, &["items", "conversations", "data"])?;
    let (mut items, mut nameless) = (Vec::new(), 0);
    for item in listed.items() {
        let inner = item.get("conversation").filter(|inner| inner.is_object());
        let places = [Some(item), inner];
        let places = || places.iter().flatten();
        let id =
            places().find_map(|place| place.get_text("id").or_else(|| place.get_text("conversation_id")));
        let Some(id) = id else {
            nameless += 1;
            continue;
        };
        let times = ["update_time", "updated_at", "create_time"];
        let updated = times.iter().find_map(|name| places().find_map(|place| place.get(name)));
        items.push(Listed { id: id.into_owned(), updated: updated.and_then(moment) });
    }
    // One odd item is odd; if all of them are, the list is.
    if items.is_empty() && nameless > 0 {
        return None;
    }
    let listed = items.len() + nameless;
    let next = match list.starts_with(PROJECT) {
        true => at_or_end(cursor(json)?),
        false => after_offset(json, page, listed)?,
    };
    Some(ListPage { items, next, nameless })
}

/// The place of the next page, if there is one: a text or a number. Anything else is none that is known, and not the end.
fn cursor(page: Json<'_>) -> Option<Option<String>> {
    let goes_on = page.get("has_more").and_then(Json::boolean);
    if goes_on == Some(false) {
        return Some(None);
    }
    let found = ["cursor", "next_cursor"].iter().filter_map(|name| page.get(name));
    let Some(cursor) = found.into_iter().find(|cursor| !cursor.is_null()) else {
        // There are more items, but no cursor.
        return (goes_on != Some(true)).then_some(None);
    };
    let text = cursor.text().map(|text| text.into_owned());
    let is_number = cursor.bytes().iter().all(u8::is_ascii_digit);
    let number = || is_number.then(|| String::from_utf8_lossy(cursor.bytes()).into_owned());
    let place = text.filter(|_| cursor.is_string()).or_else(number)?;
    Some(Some(place).filter(|place| !place.is_empty()))
}

fn at_or_end(place: Option<String>) -> NextPage {
    place.map_or(NextPage::End, NextPage::At)
}

/// What follows a page of a list that is requested by offsets. `total` was seen to be a number of pages, or nothing: only a
/// page that is shorter than its own limit is the end.
fn after_offset(json: Json<'_>, page: PageRequest<'_>, listed: usize) -> Option<NextPage> {
    let next = offset_and_cursor(page).0 + listed;
    let (requested, cursor) = (page.size(LIST_PAGE), cursor(json)?);
    if let Some(cursor) = cursor {
        return Some(NextPage::At(format!("{next} {cursor}")));
    }
    if listed == 0 {
        return Some(NextPage::End);
    }
    let number = |name: &str| json.get_integer(name).and_then(|number| usize::try_from(number).ok());
    let limit = number("limit").filter(|limit| (1..=LIST_PAGE).contains(limit));
    // Unless it says itself that it left some out: then it is short in the middle.
    let is_true = |name: &str| json.get(name).and_then(Json::boolean);
    let lacks = is_true("has_missing_conversations") == Some(true);
    let next = next.to_string();
    Some(match limit {
        _ if lacks || listed >= limit.unwrap_or(requested).min(requested) => NextPage::At(next),
        _ if is_true("has_more") == Some(false) => NextPage::End,
        Some(_) if number("total").is_none_or(|total| total <= offset_and_cursor(page).0 + listed) => {
            NextPage::End
        }
        _ => NextPage::Perhaps(next),
    })
}

/// A place in a list that is requested by offsets: the offset, and the cursor of the page before, if it had one.
fn offset_and_cursor(page: PageRequest<'_>) -> (usize, &str) {
    let (offset, cursor) = page.place.map_or(("", ""), |place| place.split_once(' ').unwrap_or((place, "")));
    (offset.parse().unwrap_or(0), cursor)
}

fn automation_place(place: &str) -> (&str, &str) {
    match place.split_once(' ').unwrap_or((place, "")) {
        ("", cursor) => (AUTOMATION_STATES[0], cursor),
        place => place,
    }
}

/// As a part of an address.
pub fn escaped(text: &str) -> String {
    // Nothing, and dots however they are written, would lead to another address.
    if ["", ".", ".."].contains(&text) {
        return format!("%25{text}");
    }
    annals_core::in_address(text)
}

#[cfg(test)]
mod tests {
    use super::super::listing::LISTINGS;
    use super::*;

    fn at(place: &str) -> PageRequest<'_> {
        PageRequest { place: Some(place), halvings: 0 }
    }

    const FIRST: PageRequest<'static> = PageRequest { place: None, halvings: 0 };

    fn listing(name: &str) -> &'static Listing {
        LISTINGS.iter().find(|listing| listing.name == name).unwrap()
    }

    #[test]
    fn listings_may_be_called_otherwise_and_never_end_by_surprise() {
        let page = |name: &str, body: &str| listing_page(listing(name), FIRST, body);
        let ids = |name: &str, body: &str| {
            let items = page(name, body).unwrap().items;
            items.into_iter().map(|item| item.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(MEMORIES, r#"{"items":[{"id":"m1"}]}"#), ["m1"]);
        assert_eq!(ids(SHARES, r#"{"items":[{"share_id":"s1"}]}"#), ["s1"]);
        let odd = page(SHARES, r#"{"items":[{"share_id":"s1"},{"title":"?"}]}"#).unwrap();
        assert_eq!((odd.items.len(), odd.nameless), (1, 1));
        assert_eq!(page(SHARES, r#"{"items":[{"title":"?"}]}"#), None);
        let projects = r#"{"items":[{"gizmo":{"gizmo":{"id":"g-p-1"}}}],"cursor":7}"#;
        assert_eq!(page(PROJECTS, projects).unwrap().next, NextPage::At("7".into()));
        assert_eq!(page(PROJECTS, r#"{"items":[],"cursor":{"next":7}}"#), None);
        // A listing that never had pages may have them one day.
        let more = page(MEMORIES, r#"{"memories":[{"id":"m1"}],"cursor":"x"}"#).unwrap();
        assert_eq!(more.next, NextPage::At("x".into()));
        assert_eq!(page(MEMORIES, r#"{"memories":[{"id":"m1"}],"has_more":true}"#), None);
        assert_eq!(ids(PINS, r#"[{"item":{"id":"c1"}},{"item":{"gizmo":{"id":"g-p-1"}}}]"#), ["c1", "g-p-1"]);
        let room = r#"{"rooms":[{"room":{"id":"r1"}}],"cursor":null}"#;
        assert_eq!(ids(GROUP_CHATS, room), ["r1"]);
        assert_eq!(ids(GENERATED_IMAGES, r#"{"items":[{"asset_pointer":"sediment://file_9"}]}"#), ["file_9"]);
    }

    #[test]
    fn automations_are_listed_state_by_state() {
        let page =
            |place: &str, body: &str| listing_page(listing(AUTOMATIONS), at(place), body).unwrap().next;
        let empty = r#"{"items":[],"cursor":null}"#;
        assert_eq!(page("", r#"{"items":[{"id":"a"}],"cursor":"x"}"#), NextPage::At("scheduled x".into()));
        assert_eq!(page("scheduled x", empty), NextPage::Part("paused".into()));
        assert_eq!(page("finished", empty), NextPage::End);
        let request = |place: &str| listing_request(listing(AUTOMATIONS), 0, at(place)).unwrap().path;
        assert_eq!(request("paused x="), "/backend-api/automations?filter=paused&cursor=x%3D");
    }

    #[test]
    fn pages_become_smaller_until_one_item_is_left() {
        let path = |halvings: u32| list_request("plain", PageRequest { place: Some("200"), halvings }).path;
        assert!(path(0).contains("offset=200&limit=100&"), "{}", path(0));
        assert!(path(2).contains("offset=200&limit=25&"), "{}", path(2));
        assert!(path(9).contains("limit=1&") && path(9) == path(99), "{}", path(9));
        let item = r#"{"id":"c1"}"#;
        let full = format!("{{\"items\":[{}]}}", [item; 25].join(","));
        let page = PageRequest { place: None, halvings: 2 };
        assert_eq!(list_page("plain", page, &full).unwrap().next, NextPage::At("25".into()));
    }

    #[test]
    fn lists_end_with_a_short_page_and_never_with_a_strange_one() {
        let item =
            |number: usize| format!("{{\"id\":\"c{number}\",\"update_time\":\"2026-03-01T12:00:00Z\"}}");
        let items: Vec<String> = (0..100).map(item).collect();
        let full = format!("{{\"items\":[{}],\"total\":7,\"limit\":100}}", items.join(","));
        assert_eq!(list_page("plain", at("100"), &full).unwrap().next, NextPage::At("200".into()));
        let short = |more: &str| format!("{{\"items\":[{}]{more}}}", item(1));
        for (more, next) in [
            (",\"limit\":100,\"total\":null", NextPage::End),
            (",\"limit\":100,\"total\":1", NextPage::End),
            (",\"limit\":100,\"total\":700", NextPage::Perhaps("1".into())),
            // How many it would have had, nobody knows.
            (",\"total\":700", NextPage::Perhaps("1".into())),
            (",\"limit\":1", NextPage::At("1".into())),
            (",\"limit\":28,\"cursor\":\"x y\"", NextPage::At("1 x y".into())),
            (",\"has_more\":false", NextPage::End),
            (",\"has_missing_conversations\":true", NextPage::At("1".into())),
        ] {
            assert_eq!(list_page("plain", FIRST, &short(more)).unwrap().next, next, "{more}");
        }
        assert!(list_request("plain", at("1 x y")).path.ends_with("&cursor=x%20y"));
        let page = list_page("plain", FIRST, &short("")).unwrap();
        assert_eq!(page.items[0].updated.map(|at| at.rfc3339()), Some("2026-03-01T12:00:00.000Z".into()));
        let empty = "{\"items\":[],\"has_missing_conversations\":true}";
        assert_eq!(list_page("plain", at("100"), empty).unwrap().next, NextPage::End);
        assert_eq!(list_page("plain", FIRST, "{\"conversations\":[]}"), None);
        assert_eq!(list_page("plain", FIRST, "[]"), None);
        let others =
            ["{\"conversations\":[{\"conversation\":{\"id\":\"c1\"}}]}", "[{\"conversation_id\":\"c1\"}]"];
        for other in others {
            assert_eq!(list_page("plain", FIRST, other).unwrap().items[0].id, "c1", "{other}");
        }
        let project = format!("{{\"items\":[{}],\"cursor\":\"abc=\"}}", item(1));
        let page = list_page("project g-p-1", FIRST, &project).unwrap();
        assert_eq!(page.next, NextPage::At("abc=".into()));
        for (cursor, next) in
            [("25", NextPage::At("25".into())), ("\"\"", NextPage::End), ("null", NextPage::End)]
        {
            let page = format!("{{\"items\":[{}],\"cursor\":{cursor}}}", item(1));
            assert_eq!(list_page("project g-p-1", FIRST, &page).unwrap().next, next, "{cursor}");
        }
        for cursor in ["{}", "[1]", "true", "1.5"] {
            let page = format!("{{\"items\":[{}],\"cursor\":{cursor}}}", item(1));
            assert_eq!(list_page("project g-p-1", FIRST, &page), None, "{cursor}");
            assert_eq!(list_page("plain", FIRST, &page), None, "{cursor}");
        }
        let odd = format!("{{\"items\":[{{\"title\":\"no id\"}},{}]}}", item(1));
        let page = list_page("plain", FIRST, &odd).unwrap();
        assert_eq!((page.items.len(), page.nameless), (1, 1));
        assert_eq!(list_page("plain", FIRST, "{\"items\":[{\"title\":\"no id\"}]}"), None);
        assert!(list_request("project g-p-1", at("abc=")).path.ends_with("cursor=abc%3D"));
    }
}
