//! Requests to ChatGPT's page, and what the responses mean.

use serde_json::json;

use super::files::Kept;
use super::intake::conversation_captures;
use super::listing::{ACCOUNT, DATA_CONTROLS, GPTS, INSTRUCTIONS, LISTINGS, MODELS, PROJECTS, SHARES};
use super::nodes::conversation_id;
use super::times::moment;
use super::{assemble, files, listing};
use crate::json::Json;
use crate::live::{Assembled, Judged, ListPage, Listed, Listing, Live, LiveAnswer, LiveRequest, Way};
use crate::{Capture, ElementBody, Settings};

pub struct OwnPage;

pub const ORIGIN: &str = "https://chatgpt.com";
/// Names another address of the page.
pub const ORIGIN_VARIABLE: &str = "ANNALS_CHATGPT_URL";

/// The most that a list answers at once; more is an error.
const LIST_PAGE: usize = 100;
const TURNS: usize = 50;
const PROJECT: &str = "project ";

impl Live for OwnPage {
    fn version(&self) -> &'static str {
        "3"
    }

    fn origin(&self, settings: &dyn Settings) -> String {
        let origin = settings.get(ORIGIN_VARIABLE).unwrap_or_else(|| ORIGIN.to_owned());
        origin.trim_end_matches('/').to_owned()
    }

    fn script(&self) -> &'static str {
        include_str!("live.js")
    }

    fn judge(&self, answer: &LiveAnswer) -> Judged {
        let is_page = answer.content_type.starts_with("text/html");
        match answer.status {
            0 if answer.failure == "late" => Judged::Late,
            0 => Judged::Unreachable,
            _ if answer.challenge => Judged::Challenge,
            200 | 403 | 503 if is_page => Judged::Challenge,
            200 if answer.content_type == "bytes" => Judged::Good,
            200 => match Json::parse(answer.body.as_bytes()) {
                Some(json) if json.is_object() || json.is_array() => Judged::Good,
                _ => Judged::Broken,
            },
            401 => Judged::Expired,
            403 => Judged::Forbidden,
            404 | 410 => Judged::Missing,
            429 => Judged::Refused,
            _ => Judged::Broken,
        }
    }

    fn listings(&self) -> &'static [Listing] {
        LISTINGS
    }

    fn listing_request(&self, listing: &Listing, way: usize, place: Option<&str>) -> Option<LiveRequest> {
        let behind =
            |name: &str| place.map(|place| format!("&{name}={}", escaped(place))).unwrap_or_default();
        let path = match (listing.name, way) {
            ("memories", 0) => "/backend-api/memories?include_memory_entries=true".to_owned(),
            (INSTRUCTIONS, 0) => "/backend-api/user_system_messages".to_owned(),
            (GPTS, 0) => format!("/backend-api/gizmos/mine?limit=100{}", behind("cursor")),
            (GPTS, 1) => format!("/backend-api/gizmos/discovery/mine?limit=100{}", behind("cursor")),
            (GPTS, 2) => format!("/public-api/gizmos/discovery/mine?limit=100{}", behind("cursor")),
            (PROJECTS, 0) => {
                format!("/backend-api/gizmos/snorlax/sidebar?conversations_per_gizmo=0{}", behind("cursor"))
            }
            (PROJECTS, 1) => format!("/backend-api/gizmos/bootstrap/projects?limit=100{}", behind("cursor")),
            (SHARES, 0) => format!(
                "/backend-api/shared_conversations?order=created&limit=100&offset={}",
                escaped(place.unwrap_or("0"))
            ),
            (ACCOUNT, 0) => "/backend-api/me".to_owned(),
            (MODELS, 0) => "/backend-api/models".to_owned(),
            ("settings", 0) => "/backend-api/settings/user".to_owned(),
            (DATA_CONTROLS, 0) => "/backend-api/settings/data_controls".to_owned(),
            ("beta_features", 0) => "/backend-api/settings/beta_features".to_owned(),
            _ => return None,
        };
        Some(LiveRequest::get(path))
    }

    fn listing_page(&self, listing: &Listing, place: Option<&str>, body: &str) -> Option<ListPage<String>> {
        let json = Json::parse(body.as_bytes()).filter(|json| json.is_object())?;
        let (items, nameless) = listing::ids(listing.name, json)?;
        let listed = items.len() + nameless;
        let next = match listing.name {
            GPTS | PROJECTS => cursor(listing::container(json))?,
            // A short page is the last.
            SHARES if listed < LIST_PAGE => None,
            SHARES => Some((offset(place) + listed).to_string()),
            _ => None,
        };
        Some(ListPage { items, next, nameless })
    }

    fn listing_detail(&self, listing: &Listing, id: &str) -> Option<LiveRequest> {
        match listing.name {
            GPTS => Some(LiveRequest::get(format!("/backend-api/gizmos/{}", escaped(id)))),
            // Plan and workspaces.
            ACCOUNT => Some(LiveRequest::get("/backend-api/accounts/check/v4-2023-04-27")),
            _ => None,
        }
    }

    fn lists(&self, parts: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
        let own = ["plain", "archived"].map(str::to_owned);
        let projects = parts(PROJECTS).into_iter().filter(|id| id.starts_with("g-p-"));
        own.into_iter().chain(projects.map(|id| format!("{PROJECT}{id}"))).collect()
    }

    fn list_request(&self, list: &str, place: Option<&str>) -> LiveRequest {
        LiveRequest::get(match list.strip_prefix(PROJECT) {
            Some(project) => format!(
                "/backend-api/gizmos/{}/conversations?limit=50&cursor={}",
                escaped(project),
                escaped(place.unwrap_or("0"))
            ),
            None => format!(
                "/backend-api/conversations?offset={}&limit={LIST_PAGE}&order=updated{}",
                offset(place),
                // The plain list leaves archived conversations out.
                if list == "archived" { "&is_archived=true" } else { "" }
            ),
        })
    }

    fn list_page(&self, list: &str, place: Option<&str>, body: &str) -> Option<ListPage<Listed>> {
        let json = Json::parse(body.as_bytes())?;
        let listed = json.get("items").filter(|items| items.is_array())?;
        let (mut items, mut nameless) = (Vec::new(), 0);
        for item in listed.items() {
            let id = item.get_text("id").or_else(|| item.get_text("conversation_id"));
            let Some(id) = id else {
                nameless += 1;
                continue;
            };
            let updated = item.get("update_time").or_else(|| item.get("create_time")).and_then(moment);
            items.push(Listed { id: id.into_owned(), updated });
        }
        // One odd item is odd; if all of them are, the list is.
        if items.is_empty() && nameless > 0 {
            return None;
        }
        let listed = items.len() + nameless;
        let next = if list.starts_with(PROJECT) {
            cursor(json)?
        } else {
            // `total` was seen to be a number of pages, or nothing: a short page is the end.
            let limit = json.get_integer("limit").and_then(|limit| usize::try_from(limit).ok());
            let full = limit.filter(|limit| (1..=LIST_PAGE).contains(limit)).unwrap_or(LIST_PAGE);
            // Unless it says itself that it left some out: then it is short in the middle.
            let lacks = json.get("has_missing_conversations").and_then(Json::boolean) == Some(true);
            let goes_on = listed >= full || lacks && listed > 0;
            goes_on.then(|| (offset(place) + listed).to_string())
        };
        Some(ListPage { items, next, nameless })
    }

    fn several(&self, ids: &[String]) -> LiveRequest {
        let body = json!({"conversation_ids": ids}).to_string();
        LiveRequest { path: "/backend-api/conversations/batch".to_owned(), body: Some(body) }
    }

    fn most_at_once(&self) -> usize {
        10
    }

    fn read_several(&self, body: &str) -> Option<Vec<(String, String)>> {
        let json = Json::parse(body.as_bytes())?;
        let list = if json.is_array() { json } else { json.get("conversations")? };
        let found = list.items().filter(|item| item.is_object()).map(|item| {
            let text = String::from_utf8_lossy(item.bytes()).into_owned();
            (conversation_id(&item.object(), item.bytes()), text)
        });
        Some(found.collect())
    }

    fn single(&self, id: &str, way: Way, place: Option<&str>) -> LiveRequest {
        let id = escaped(id);
        LiveRequest::get(match (way, place) {
            (Way::Tree, _) => format!("/backend-api/conversation/{id}"),
            (Way::Pages, None) => {
                format!("/backend-api/conversations/{id}?include_has_versions=true&num_turns={TURNS}")
            }
            (Way::Pages, Some(place)) => format!(
                "/backend-api/conversations/{id}/messages?before={}&include_has_versions=true&num_turns={TURNS}",
                escaped(place)
            ),
        })
    }

    fn assemble(&self, id: &str, pages: &[String]) -> Assembled {
        assemble::assemble(id, pages)
    }

    fn captures<'b>(&self, body: &'b [u8]) -> Vec<Capture<'b>> {
        conversation_captures(body).unwrap_or_default()
    }

    fn file(&self, id: &str, thing: Option<&str>) -> (String, LiveRequest) {
        let of = thing.map(|thing| format!("conversation_id={}&", escaped(thing))).unwrap_or_default();
        let path = format!("/backend-api/files/download/{}?{of}inline=false", escaped(id));
        (files::asset_path(id), LiveRequest::get(path))
    }

    fn file_captures(&self, id: &str, bytes: &[u8]) -> Vec<Capture<'static>> {
        let head = &bytes[..bytes.len().min(64)];
        let note = files::of_member(id, bytes.len() as u64, head, Kept::Yes);
        let kept = Capture {
            path: files::asset_path(id),
            store: "files",
            reader: "asset",
            header: serde_json::Map::new(),
            body: ElementBody::Member,
            counts: false,
        };
        std::iter::once(kept).chain(note.map(|(note, body)| note.capture(body.into()))).collect()
    }
}

/// The place of the next page, if there is one: a text or a number. Anything else is none that is known, and not the end.
fn cursor(page: Json<'_>) -> Option<Option<String>> {
    let Some(cursor) = page.get("cursor").filter(|cursor| !cursor.is_null()) else { return Some(None) };
    let text = cursor.text().map(|text| text.into_owned());
    let is_number = cursor.bytes().iter().all(u8::is_ascii_digit);
    let number = || is_number.then(|| String::from_utf8_lossy(cursor.bytes()).into_owned());
    let place = text.filter(|_| cursor.is_string()).or_else(number)?;
    Some(Some(place).filter(|place| !place.is_empty()))
}

fn offset(place: Option<&str>) -> usize {
    place.and_then(|place| place.parse().ok()).unwrap_or(0)
}

/// As a part of an address.
fn escaped(text: &str) -> String {
    // Nothing, and dots however they are written, would lead to another address.
    if ["", ".", ".."].contains(&text) {
        return format!("%25{text}");
    }
    annals_core::in_address(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, content_type: &str, body: &str) -> LiveAnswer {
        LiveAnswer { status, content_type: content_type.into(), body: body.into(), ..LiveAnswer::default() }
    }

    #[test]
    fn answers_are_told_apart() {
        let table = [
            (answer(200, "application/json", "{}"), Judged::Good),
            (answer(200, "application/json", "[]"), Judged::Good),
            (answer(200, "application/json", "{\"title\": \"cut of"), Judged::Broken),
            (answer(200, "application/json", "null"), Judged::Broken),
            (answer(200, "text/html; charset=utf-8", "<title>Just a moment...</title>"), Judged::Challenge),
            (answer(401, "application/json", "{}"), Judged::Expired),
            (answer(403, "application/json", "{}"), Judged::Forbidden),
            (answer(403, "text/html", "<html>"), Judged::Challenge),
            (answer(404, "application/json", "{}"), Judged::Missing),
            (answer(410, "application/json", "{}"), Judged::Missing),
            (answer(422, "application/json", "{}"), Judged::Broken),
            (answer(429, "application/json", "{}"), Judged::Refused),
            (answer(500, "text/html", "<html>"), Judged::Broken),
            (answer(503, "text/html", "<html>"), Judged::Challenge),
            (LiveAnswer { failure: "late".into(), ..LiveAnswer::default() }, Judged::Late),
            (LiveAnswer::default(), Judged::Unreachable),
            (LiveAnswer { challenge: true, ..answer(429, "text/html", "") }, Judged::Challenge),
        ];
        for (answer, expected) in table {
            assert_eq!(OwnPage.judge(&answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn listings_may_be_called_otherwise_and_never_end_by_surprise() {
        let listing = |name: &str| LISTINGS.iter().find(|listing| listing.name == name).unwrap();
        let page = |name: &str, body: &str| OwnPage.listing_page(listing(name), None, body);
        assert_eq!(page("memories", r#"{"items":[{"id":"m1"}]}"#).unwrap().items, ["m1"]);
        assert_eq!(page(SHARES, r#"{"items":[{"share_id":"s1"}]}"#).unwrap().items, ["s1"]);
        let odd = page(SHARES, r#"{"items":[{"share_id":"s1"},{"title":"?"}]}"#).unwrap();
        assert_eq!((odd.items.len(), odd.nameless), (1, 1));
        assert_eq!(page(SHARES, r#"{"items":[{"title":"?"}]}"#), None);
        let projects = r#"{"items":[{"gizmo":{"gizmo":{"id":"g-p-1"}}}],"cursor":7}"#;
        assert_eq!(page(PROJECTS, projects).unwrap().next.as_deref(), Some("7"));
        assert_eq!(page(PROJECTS, r#"{"items":[],"cursor":{"next":7}}"#), None);
    }

    #[test]
    fn lists_end_with_a_short_page_and_never_with_a_strange_one() {
        let item =
            |number: usize| format!("{{\"id\":\"c{number}\",\"update_time\":\"2026-03-01T12:00:00Z\"}}");
        let items: Vec<String> = (0..100).map(item).collect();
        let full = format!("{{\"items\":[{}],\"total\":7,\"limit\":100}}", items.join(","));
        assert_eq!(OwnPage.list_page("plain", Some("100"), &full).unwrap().next.as_deref(), Some("200"));
        let short = format!("{{\"items\":[{}],\"total\":700}}", item(1));
        let page = OwnPage.list_page("plain", None, &short).unwrap();
        assert_eq!(
            (page.next, page.items[0].updated.map(|at| at.rfc3339())),
            (None, Some("2026-03-01T12:00:00.000Z".into()))
        );
        let lacks = format!("{{\"items\":[{}],\"has_missing_conversations\":true}}", item(1));
        assert_eq!(OwnPage.list_page("plain", Some("100"), &lacks).unwrap().next.as_deref(), Some("101"));
        let empty = "{\"items\":[],\"has_missing_conversations\":true}";
        assert_eq!(OwnPage.list_page("plain", Some("100"), empty).unwrap().next, None);
        assert_eq!(OwnPage.list_page("plain", None, "{\"conversations\":[]}"), None);
        let project = format!("{{\"items\":[{}],\"cursor\":\"abc=\"}}", item(1));
        let page = OwnPage.list_page("project g-p-1", None, &project).unwrap();
        assert_eq!(page.next.as_deref(), Some("abc="));
        for (cursor, next) in [("25", Some("25")), ("\"\"", None), ("null", None)] {
            let page = format!("{{\"items\":[{}],\"cursor\":{cursor}}}", item(1));
            let page = OwnPage.list_page("project g-p-1", None, &page).unwrap();
            assert_eq!(page.next.as_deref(), next, "{cursor}");
        }
        for cursor in ["{}", "[1]", "true", "1.5"] {
            let page = format!("{{\"items\":[{}],\"cursor\":{cursor}}}", item(1));
            assert_eq!(OwnPage.list_page("project g-p-1", None, &page), None, "{cursor}");
        }
        let odd = format!("{{\"items\":[{{\"title\":\"no id\"}},{}]}}", item(1));
        let page = OwnPage.list_page("plain", None, &odd).unwrap();
        assert_eq!((page.items.len(), page.nameless), (1, 1));
        assert_eq!(OwnPage.list_page("plain", None, "{\"items\":[{\"title\":\"no id\"}]}"), None);
        assert!(OwnPage.list_request("project g-p-1", Some("abc=")).path.ends_with("cursor=abc%3D"));
    }
}
