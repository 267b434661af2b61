//! Extractors: the query string, the parts of the path, and the source of a request.

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::serve::answer::Refusal;
use crate::view::find_source;

/// A query string in which every parameter is known.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Params<T>, Refusal> {
        Query::try_from_uri(&parts.uri).map(|Query(parameters)| Params(parameters)).map_err(|rejection| {
            Refusal::new(StatusCode::BAD_REQUEST, rejection.body_text()).hint("/docs lists the parameters")
        })
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
        let InPath { source, .. } = InPath::from_request_parts(parts, state).await?;
        match find_source(&source) {
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
                _ => {}
            }
        }
        Ok(found)
    }
}
