//! Extractors: the query string, the parts of the path, and the source of a request.

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use serde::de::DeserializeOwned;

use crate::serve::answer::Refusal;
use crate::view::{find_recorded_source, find_source};

/// A query string in which every parameter is known.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Params<T>, Refusal> {
        parameters_of(&parts.uri).map(Params)
    }
}

pub fn parameters_of<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    Query::try_from_uri(uri).map(|Query(parameters)| parameters).map_err(|rejection| {
        let (detail, hint) = in_words(&rejection.body_text());
        Refusal::new(StatusCode::BAD_REQUEST, detail).hint(hint)
    })
}

/// What is wrong with a query string, and what helps, from the words of the library that reads it.
fn in_words(reason: &str) -> (String, String) {
    const ANY: &str = "/docs lists the parameters";
    let reason = reason.rsplit_once("query string: ").map_or(reason, |(_, reason)| reason);
    let quoted = |start: &str| reason.split_once(start)?.1.split('`').next();
    if let Some(name) = quoted("unknown field `") {
        let known = reason.split_once("expected ").map_or("", |(_, known)| known);
        let known = known.trim_start_matches("one of ").replace('`', "").replace(" or ", ", ");
        let hint = if known.is_empty() || known.starts_with("there are") {
            "remove it".to_owned()
        } else {
            format!("known parameters: {known}")
        };
        return (format!("unknown parameter `{name}`"), hint);
    }
    if let Some(name) = quoted("missing field `") {
        return (format!("the parameter `{name}` is missing"), format!("add {name}=…"));
    }
    if let Some(name) = quoted("duplicate field `") {
        return (format!("the parameter `{name}` is given twice"), "remove one".to_owned());
    }
    match reason.split_once(": ") {
        Some((name, _)) if !name.contains(char::is_whitespace) => {
            (format!("invalid value of `{name}`"), ANY.to_owned())
        }
        _ => (reason.to_owned(), ANY.to_owned()),
    }
}

/// The source of a family of routes.
#[derive(Debug, Clone, Copy)]
pub struct OfSource(pub &'static str);

/// From the path, or from the family of routes.
impl<S: Send + Sync> FromRequestParts<S> for OfSource {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<OfSource, Refusal> {
        if let Some(of) = parts.extensions.get::<OfSource>() {
            return Ok(*of);
        }
        let InPath { source, stream, .. } = InPath::from_request_parts(parts, state).await?;
        // Only records are of the archive itself.
        let found = if stream.is_empty() { find_source(&source) } else { find_recorded_source(&source) };
        match found {
            Some(source) => Ok(OfSource(source.manifest().source)),
            None => {
                Err(Refusal::not_found("unknown source")
                    .hint("/api/v1/agent-sessions/sources lists all sources"))
            }
        }
    }
}

/// The variable parts of a path; missing ones are empty.
#[derive(Debug, Default)]
pub struct InPath {
    source: String,
    pub session_id: String,
    pub stream: String,
    pub key: String,
    pub number: String,
    pub name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for InPath {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<InPath, Refusal> {
        let read = RawPathParams::from_request_parts(parts, state).await;
        let read = read.map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "the path is not UTF-8"))?;
        let mut found = InPath::default();
        for (name, value) in &read {
            match name {
                "source" => found.source = value.to_owned(),
                "session_id" => found.session_id = value.to_owned(),
                "stream" => found.stream = value.to_owned(),
                "key" => found.key = value.to_owned(),
                "number" => found.number = value.to_owned(),
                "name" => found.name = value.to_owned(),
                _ => {}
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn refusals_name_the_parameter() {
        let of = |reason: &str| in_words(&format!("Failed to deserialize query string: {reason}"));
        let both = |detail: &str, hint: &str| (detail.to_owned(), hint.to_owned());
        assert_eq!(
            of("colour: unknown field `colour`, expected one of `q`, `days`"),
            both("unknown parameter `colour`", "known parameters: q, days")
        );
        assert_eq!(
            of("x: unknown field `x`, expected `q` or `days`"),
            both("unknown parameter `x`", "known parameters: q, days")
        );
        assert_eq!(
            of("x: unknown field `x`, there are no fields"),
            both("unknown parameter `x`", "remove it")
        );
        assert_eq!(of("missing field `q`"), both("the parameter `q` is missing", "add q=…"));
        assert_eq!(of("duplicate field `q`"), both("the parameter `q` is given twice", "remove one"));
        assert_eq!(
            of("start: invalid digit found in string"),
            both("invalid value of `start`", "/docs lists the parameters")
        );
    }
}
