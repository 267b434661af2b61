//! The origin of lines of code, for files that sessions worked on.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{LineageParameters, LineageRequest, Params};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Answered, Refusal, Refusals, answer_or_refuse};
use crate::view::{FileList, FoundFile, Lineage, UnseenFile};

/// One file, or the list of files.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum LineageAnswer {
    File(Box<Lineage>),
    List(FileList),
}

/// Get which session, prompt and tool call wrote each line of a file, or list the files
///
/// No file on disk is read: the lines are those that sessions wrote or read. Available only to the owner, and only
/// for files below the directory of a session. A file that was edited but never seen as a whole is not found; the
/// refusal contains its edits.
#[utoipa::path(get, path = "/api/v1/lineage", tag = "lineage", params(LineageParameters),
    responses((status = 200, description = "Spans of lines with their origins, or files", body = LineageAnswer), Refusals))]
pub async fn of_file(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(parameters): Params<LineageParameters>,
) -> Answered {
    let request = parameters.read()?;
    let answered = answer_or_refuse(app, caller, headers, move |view| match &request {
        LineageRequest::File(query) => Ok(view.lineage(query)?.map(|found| match found {
            FoundFile::Known(lineage, _) => Ok(LineageAnswer::File(lineage)),
            FoundFile::Unseen(unseen) => Err(refusal(*unseen)),
        })),
        LineageRequest::List(page) => Ok(view.lineage_files(page)?.map(|list| Ok(LineageAnswer::List(list)))),
    });
    Ok(answered.await)
}

fn refusal(unseen: UnseenFile) -> Refusal {
    let refusal = Refusal::new(StatusCode::NOT_FOUND, unseen.reason());
    Refusal { edits: unseen.edits, ..refusal }
}
