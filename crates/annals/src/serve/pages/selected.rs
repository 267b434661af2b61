//! What is done with the sessions that are selected in a list: one form, which works without script.

use std::sync::Arc;

use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderName, HeaderValue};
use axum::response::IntoResponse;

use super::arrange::{read, see};
use super::session::{conversation, plain};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, arrange, with_view};
use crate::view::{ArrangementPatch, SessionView, View};
use annals_core::{Error, Result};

/// Sessions that are changed, and exported, at once.
const MOST: usize = 500;
const EXPORTED: usize = 100;
/// Bytes of an export; the command line has no limit.
const LARGEST: usize = 48 << 20;

/// The form as it is sent: names may repeat.
type Fields = Vec<(String, String)>;

enum Action {
    Change(ArrangementPatch),
    Export,
}

struct Selected {
    /// Sources and ids.
    sessions: Vec<(String, String)>,
    action: Action,
    /// The list that the sessions were selected in.
    list: String,
}

impl Selected {
    fn of(fields: Fields) -> Result<Selected> {
        let (mut sessions, mut action, mut tags) = (Vec::new(), String::new(), String::new());
        let mut list = "/sessions".to_owned();
        for (name, value) in fields {
            match name.as_str() {
                "session" => {
                    let (source, id) = value.split_once(':').ok_or_else(|| invalid("session"))?;
                    sessions.push((source.to_owned(), id.to_owned()));
                }
                "do" => action = value,
                "tags" => tags = value,
                "list" if is_list(&value) => list = value,
                "list" => Err(invalid("list"))?,
                _ => Err(Error::bad_request("unknown field").hint("use the form of the list of sessions"))?,
            }
        }
        let most = if action == "export" { EXPORTED } else { MOST };
        if sessions.is_empty() {
            Err(Error::bad_request("no session is selected").hint("go back, and select sessions"))?;
        }
        if sessions.len() > most {
            Err(Error::bad_request(format!("more than {most} sessions are selected"))
                .hint("`annals export` has no limit"))?;
        }
        let separates = |letter: char| letter == ',' || letter.is_whitespace();
        let tags = || -> Result<Option<Vec<String>>> {
            let tags: Vec<String> =
                tags.split(separates).filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
            match tags.is_empty() {
                true => Err(Error::bad_request("no tag is given").hint("go back, and enter one")),
                false => Ok(Some(tags)),
            }
        };
        let none = ArrangementPatch::default;
        let action = match action.as_str() {
            "export" => Action::Export,
            "tag" => Action::Change(ArrangementPatch { add_tags: tags()?, ..none() }),
            "untag" => Action::Change(ArrangementPatch { remove_tags: tags()?, ..none() }),
            "star" => Action::Change(ArrangementPatch { starred: Some(true), ..none() }),
            "hide" => Action::Change(ArrangementPatch { hidden: Some(true), ..none() }),
            "show" => Action::Change(ArrangementPatch { hidden: Some(false), ..none() }),
            _ => Err(invalid("do").hint("use tag, untag, star, hide, show or export"))?,
        };
        Ok(Selected { sessions, action, list })
    }
}

fn invalid(name: &str) -> Error {
    Error::bad_request(format!("invalid value of `{name}`"))
}

/// Only the list itself is returned to, whoever made the form.
fn is_list(address: &str) -> bool {
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain && (address == "/sessions" || address.starts_with("/sessions?"))
}

pub(super) async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    form: std::result::Result<Form<Fields>, FormRejection>,
) -> Answered {
    let Selected { sessions, action, list } = Selected::of(read(form)?)?;
    let missing = || Refusal::not_found("session not found");
    match action {
        Action::Change(patch) => {
            let changed = arrange(&app, caller, move |view| {
                let Some(found) = find(view, &sessions)? else { return Ok(None) };
                let mut versions = Vec::new();
                for session in &found {
                    let Some(of) = view.arranged_part(session, None)? else { return Ok(None) };
                    versions.extend(view.arranging(&of, &patch)?);
                }
                Ok(Some(versions))
            });
            changed.await?.map(|()| see(&list)).ok_or_else(missing)
        }
        Action::Export => {
            let found = with_view(app, caller, move |view| {
                find(view, &sessions)?.map(|found| documents(view, &found)).transpose()
            });
            let text = found.await?.ok_or_else(missing)?;
            let attached: [(HeaderName, HeaderValue); 1] =
                [(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=sessions.md"))];
            Ok((attached, plain("text/markdown; charset=utf-8", text)).into_response())
        }
    }
}

/// All of them; none if one is not there.
fn find(view: &View<'_>, sessions: &[(String, String)]) -> Result<Option<Vec<SessionView>>> {
    let mut found = Vec::with_capacity(sessions.len());
    for (source, id) in sessions {
        let Some(session) = view.exact_session(source, id)? else { return Ok(None) };
        found.push(session);
    }
    Ok(Some(found))
}

/// The conversations as one document, in the order of the list.
fn documents(view: &View<'_>, sessions: &[SessionView]) -> Result<String> {
    let mut text = String::new();
    for session in sessions {
        if !text.is_empty() {
            text.push_str("\n---\n\n");
        }
        conversation(view, session, &mut text)?;
        if text.len() > LARGEST {
            Err(Error::bad_request("the sessions are too large for one document")
                .hint("select fewer, or use `annals export`"))?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Action, Selected, is_list};

    fn read(fields: &[(&str, &str)]) -> Result<Selected, String> {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Selected::of(fields.collect()).map_err(|error| error.what)
    }

    #[test]
    fn a_form_names_sessions_and_what_to_do() {
        let found =
            read(&[("session", "a:1"), ("session", "b:2:3"), ("do", "tag"), ("tags", "x, y")]).unwrap();
        assert_eq!(found.sessions, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2:3".to_owned())]);
        assert!(
            matches!(found.action, Action::Change(patch) if patch.add_tags.as_ref().unwrap() == &["x", "y"])
        );
        for (fields, why) in [
            (vec![("do", "hide")], "no session is selected"),
            (vec![("session", "a:1"), ("do", "tag"), ("tags", " , ")], "no tag is given"),
            (vec![("session", "a:1"), ("do", "burn")], "invalid value of `do`"),
            (vec![("session", "a"), ("do", "hide")], "invalid value of `session`"),
            (vec![("session", "a:1"), ("do", "hide"), ("list", "//evil")], "invalid value of `list`"),
            (vec![("colour", "red")], "unknown field"),
        ] {
            assert_eq!(read(&fields).err().as_deref(), Some(why));
        }
        let many = vec![("session", "a:1"); 101];
        assert!(read(&[&many[..], &[("do", "hide")]].concat()).is_ok());
        assert!(read(&[&many[..], &[("do", "export")]].concat()).is_err());
    }

    #[test]
    fn a_form_leads_back_to_its_list_only() {
        assert!(is_list("/sessions") && is_list("/sessions?q=a%20b&sort=cost"));
        for other in
            ["/", "/sessionsx", "//sessions?", "https://x/sessions?", "/sessions?\r\nSet-Cookie: a=b"]
        {
            assert!(!is_list(other), "{other}");
        }
    }
}
