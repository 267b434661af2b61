//! Requests to ChatGPT's page, and what the responses mean.

use serde_json::{Value, json};

use super::intake::conversation_captures;
use super::listing::{ACCOUNT, CLOUD_TASKS, GPTS, GROUP_CHATS, LISTINGS, PROJECTS};
use super::nodes::conversation_id;
use super::pages::{PROJECT, escaped};
use super::{assemble, canvas, files, listing, pages};
use crate::json::Json;
use crate::live::{
    Assembled, Judged, ListPage, Listed, ListedItem, Listing, Live, LiveAnswer, LiveRequest, PageRequest, Way,
};
use crate::{Capture, ElementBody, Settings};

pub struct OwnPage;

pub const ORIGIN: &str = "https://chatgpt.com";
/// Names another address of the page.
pub const ORIGIN_VARIABLE: &str = "ANNALS_CHATGPT_URL";

/// Turns of a conversation in a page.
const TURNS: usize = 50;

impl Live for OwnPage {
    fn version(&self) -> &'static str {
        "4"
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
            404 | 405 | 410 => Judged::Missing,
            422 => Judged::TooLarge,
            429 => Judged::Refused,
            _ => Judged::Broken,
        }
    }

    fn listings(&self) -> &'static [Listing] {
        LISTINGS
    }

    fn listing_request(&self, listing: &Listing, way: usize, page: PageRequest<'_>) -> Option<LiveRequest> {
        pages::listing_request(listing, way, page)
    }

    fn listing_page(
        &self,
        listing: &Listing,
        page: PageRequest<'_>,
        body: &str,
    ) -> Option<ListPage<ListedItem>> {
        pages::listing_page(listing, page, body)
    }

    fn listing_detail(&self, listing: &Listing, id: &str) -> Option<LiveRequest> {
        match listing.name {
            GPTS => Some(LiveRequest::get(format!("/backend-api/gizmos/{}", escaped(id)))),
            // Plan and workspaces.
            ACCOUNT => Some(LiveRequest::get("/backend-api/accounts/check/v4-2023-04-27")),
            CLOUD_TASKS => Some(LiveRequest::get(format!("/backend-api/wham/tasks/{}", escaped(id)))),
            GROUP_CHATS => {
                let room = escaped(id);
                Some(LiveRequest::get(format!(
                    "/backend-api/calpico/chatgpt/rooms/{room}/messages?limit=100"
                )))
            }
            _ => None,
        }
    }

    fn detailed(&self, id: &str, listed: &str, answer: &str) -> String {
        listing::detailed(id, listed, answer)
    }

    fn kept_detail(&self, listing: &Listing, document: &str, item: &ListedItem) -> Option<String> {
        // What a task says of its last change is to be believed: many are long done.
        if listing.name != CLOUD_TASKS {
            return None;
        }
        let details = Json::parse(document.as_bytes())?.get("details")?;
        let is_it = |detail: &Json<'_>| {
            detail.get_text("detail_of").as_deref() == Some(&*item.id)
                && detail.get("listed").is_some_and(|listed| listed.bytes() == item.body.as_bytes())
        };
        let answer = details.items().find(is_it)?.get("answer")?;
        Some(String::from_utf8_lossy(answer.bytes()).into_owned())
    }

    fn listing_captures(&self, listing: &Listing, body: &str) -> Vec<Capture<'static>> {
        files::of_listing(listing.name, body)
    }

    fn lists(&self, parts: &dyn Fn(&str) -> Vec<String>) -> Vec<String> {
        let own = ["plain", "archived"].map(str::to_owned);
        let projects = parts(PROJECTS).into_iter().filter(|id| id.starts_with("g-p-"));
        own.into_iter().chain(projects.map(|id| format!("{PROJECT}{id}"))).collect()
    }

    fn list_request(&self, list: &str, page: PageRequest<'_>) -> LiveRequest {
        pages::list_request(list, page)
    }

    fn list_page(&self, list: &str, page: PageRequest<'_>, body: &str) -> Option<ListPage<Listed>> {
        pages::list_page(list, page, body)
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

    fn single(&self, id: &str, way: Way, page: PageRequest<'_>) -> LiveRequest {
        let (id, turns) = (escaped(id), page.size(TURNS));
        LiveRequest::get(match (way, page.place) {
            (Way::Tree, _) => format!("/backend-api/conversation/{id}"),
            (Way::Pages, None) => {
                format!("/backend-api/conversations/{id}?include_has_versions=true&num_turns={turns}")
            }
            (Way::Pages, Some(place)) => format!(
                "/backend-api/conversations/{id}/messages?before={}&include_has_versions=true&num_turns={turns}",
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

    fn has_beside(&self, body: &[u8]) -> bool {
        // Only conversations with a canvas have documents.
        let names: [&[u8]; 2] = [b"\"textdoc_id\"", b"\"canmore."];
        names.iter().any(|name| memchr::memmem::find(body, name).is_some())
    }

    fn beside(&self, id: &str) -> LiveRequest {
        LiveRequest::get(format!("/backend-api/conversation/{}/textdocs", escaped(id)))
    }

    fn captures_beside(&self, id: &str, body: &str) -> Option<Vec<Capture<'static>>> {
        canvas::captures(id, body)
    }

    fn file(&self, id: &str, record: &Value) -> (String, LiveRequest) {
        let of = |name: &str| record[name].as_str().map(escaped);
        let path = match (of("sandbox_path"), of("conversation_id"), of("message_id"), of("gizmo_id")) {
            (Some(path), Some(conversation), Some(message), _) => format!(
                "/backend-api/conversation/{conversation}/interpreter/download?message_id={message}&sandbox_path={path}"
            ),
            (_, Some(conversation), ..) => {
                format!(
                    "/backend-api/files/download/{}?conversation_id={conversation}&inline=false",
                    escaped(id)
                )
            }
            (_, None, _, Some(gizmo)) => {
                format!("/backend-api/files/download/{}?gizmo_id={gizmo}&inline=false", escaped(id))
            }
            _ => format!("/backend-api/files/download/{}?inline=false", escaped(id)),
        };
        (files::asset_path(id), LiveRequest::get(path))
    }

    fn file_facts(&self, id: &str, record: &Value) -> Option<LiveRequest> {
        // Files of a sandbox have no id there.
        let lacks =
            ["name", "mime_type", "size_bytes", "created_at"].iter().any(|name| record[*name].is_null());
        let is_known = record["sandbox_path"].is_null() && files::has_an_id(id);
        (lacks && is_known).then(|| LiveRequest::get(format!("/backend-api/files/{}", escaped(id))))
    }

    fn file_fact_captures(&self, id: &str, body: &str) -> Vec<Capture<'static>> {
        files::of_facts(id, body).into_iter().collect()
    }

    fn file_captures(&self, id: &str, bytes: &[u8]) -> Vec<Capture<'static>> {
        let note = files::of_bytes(id, bytes);
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
            (answer(405, "application/json", "{}"), Judged::Missing),
            (answer(422, "application/json", "{}"), Judged::TooLarge),
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
}
