//! The OpenAPI document, generated from the handlers and their response types.
//!
//! Handlers are listed here and in the router: `utoipa-axum` would list them once, but the routes of each source are those of the
//! registry, which no macro can see. Tests request every path of the document.

use std::sync::OnceLock;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;
use utoipa::openapi::path::{Parameter, PathItem};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, OpenApiVersion, RefOr};

use super::{
    activity, archive, arrangement, library, lineage, members, search, secrets, sessions, status, usage,
};
use crate::view::{FileEdit, find_source, source_routes};

#[derive(OpenApi)]
#[openapi(
    info(title = "annals", description = "Search and browse a person's whole history with AI assistants."),
    paths(
        archive::sources,
        sessions::list,
        sessions::one,
        sessions::messages,
        activity::outline,
        activity::lines,
        sessions::analytics,
        search::found,
        lineage::of_file,
        usage::sums,
        usage::responses,
        activity::days,
        activity::year,
        activity::all_sessions,
        arrangement::of_session,
        arrangement::patch_session,
        arrangement::delete_session,
        arrangement::of_message,
        arrangement::patch_message,
        arrangement::delete_message,
        arrangement::of_project,
        arrangement::patch_project,
        arrangement::delete_project,
        arrangement::searches,
        arrangement::save_search,
        arrangement::remove_search,
        library::items,
        library::item,
        secrets::list,
        members::list,
        members::access,
        archive::manifest,
        archive::records,
        archive::record,
        archive::audit,
        archive::gaps,
        status::status,
        status::health
    ),
    components(schemas(FileEdit)),
    security(("token" = []))
)]
struct Api;

const FAMILY: &str = "/api/v1/agent-sessions/{source}";

/// The document; some sources have routes in addition to the shared ones.
pub fn document_of_all() -> &'static Document {
    static DOCUMENT: OnceLock<Document> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let mut document = Api::openapi();
        document.openapi = OpenApiVersion::Version31;
        let shared: Vec<(String, PathItem)> = document
            .paths
            .paths
            .iter()
            .filter_map(|(path, item)| Some((path.strip_prefix(FAMILY)?.to_owned(), item.clone())))
            .collect();
        for (source, route) in source_routes() {
            for (rest, item) in &shared {
                let mut item = item.clone();
                let operations = [&mut item.get, &mut item.patch, &mut item.delete];
                for operation in operations.into_iter().flatten() {
                    operation.operation_id = operation.operation_id.take().map(|id| format!("{source}_{id}"));
                    operation.tags =
                        find_source(source).map(|source| vec![source.manifest().label.to_owned()]);
                    let parameters = operation.parameters.take().unwrap_or_default();
                    let own = |parameter: &RefOr<Parameter>| match parameter {
                        RefOr::T(parameter) => parameter.name != "source",
                        RefOr::Ref(_) => true,
                    };
                    operation.parameters = Some(parameters.into_iter().filter(own).collect());
                }
                document.paths.paths.insert(format!("/api/v1/{route}{rest}"), item);
            }
        }
        let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", token);
        document
    })
}

pub async fn document() -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, serde_json::to_vec(document_of_all()).unwrap_or_default()).into_response()
}
