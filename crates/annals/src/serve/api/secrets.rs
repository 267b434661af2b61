//! Where secrets appear. Finding them requires reading everything, so one thread scans and all requests see its
//! progress.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::parameters::{Nothing, Params};
use crate::serve::App;
use crate::serve::access::Caller;
use crate::serve::answer::{Refusals, answer};
use crate::view::{ScannedArchive, SecretView};
use annals_core::{Error, Result, Scope};

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SecretAnswer {
    /// `looking` while the archive is scanned, then `done`
    pub status: &'static str,
    pub sessions_looked_at: u64,
    pub session_count: u64,
    /// Sessions that the last scan read: those that changed since the one before
    pub sessions_read: u64,
    /// When the scan that found these ended
    pub looked_at: Option<String>,
    #[schema(value_type = Vec<SecretView>)]
    pub secrets: Arc<Vec<SecretView>>,
    pub next_cursor: Option<String>,
    /// Why the last scan failed
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Results by scope.
#[derive(Default)]
pub struct Secrets(Mutex<HashMap<String, ScannedSecrets>>);

#[derive(Clone)]
struct ScannedSecrets {
    answer: SecretAnswer,
    /// The last run of the archive before the scan.
    run: i64,
    /// Only one scan at a time has it.
    scanned: Arc<Mutex<ScannedArchive>>,
}

/// List secrets by their marks; poll while the status is `looking`
#[utoipa::path(get, path = "/api/v1/secrets", tag = "library",
    responses((status = 200, description = "Marks, and where they appear", body = SecretAnswer), Refusals))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    Params(Nothing {}): Params<Nothing>,
) -> Response {
    let looking = app.clone();
    answer(app, caller, headers, move |view| {
        let run = view.last_run()?;
        Ok(Some(current_results(&looking, caller.scope, run)))
    })
    .await
}

/// The current results; starts a scan if there is none for this state of the archive.
pub fn current_results(app: &Arc<App>, scope: Scope, run: i64) -> SecretAnswer {
    let key = format!("{scope:?}");
    let mut all = app.secrets.0.lock().unwrap_or_else(PoisonError::into_inner);
    let scanned = all.entry(key.clone()).or_insert_with(|| ScannedSecrets {
        answer: empty_answer(),
        run: -1,
        scanned: Arc::default(),
    });
    if scanned.answer.status == "done" && scanned.run != run {
        scanned.answer.status = "looking";
        scanned.answer.sessions_looked_at = 0;
        scanned.run = run;
        let (app, before) = (app.clone(), scanned.scanned.clone());
        // On a separate thread: it takes as long as the archive is large.
        std::thread::spawn(move || {
            let scanned = catch_unwind(AssertUnwindSafe(|| scan(&app, scope, &key, &before)));
            let scanned = scanned.unwrap_or_else(|_| Err(Error::new("the scan panicked")));
            let now = (app.now)();
            app.events.secrets(None);
            change(&app, &key, |answer| {
                answer.status = "done";
                answer.error = None;
                match scanned {
                    Ok((secrets, sessions_read)) => {
                        answer.secrets = Arc::new(secrets);
                        answer.sessions_read = sessions_read;
                        answer.looked_at = Some(now.rfc3339());
                    }
                    Err(error) => {
                        tracing::error!("cannot scan for secrets: {}", error.chain());
                        answer.error = Some("the scan failed; the server's log has the cause".to_owned());
                    }
                }
            });
        });
    }
    scanned.answer.clone()
}

fn scan(
    app: &Arc<App>,
    scope: Scope,
    key: &str,
    scanned: &Mutex<ScannedArchive>,
) -> Result<(Vec<SecretView>, u64)> {
    let store = app.reading.reader()?;
    let mut scanned = scanned.lock().unwrap_or_else(PoisonError::into_inner);
    let found = app.reading.view(&store, scope, &[]).new_secrets(&mut scanned, &mut |done, all| {
        app.events.secrets(Some((done, all)));
        change(app, key, |answer| (answer.sessions_looked_at, answer.session_count) = (done, all));
    });
    app.reading.give_back(store);
    if found.is_err() {
        // What was read of it may be incomplete.
        *scanned = ScannedArchive::default();
    }
    found
}

fn change(app: &App, key: &str, change: impl FnOnce(&mut SecretAnswer)) {
    let mut all = app.secrets.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(scanned) = all.get_mut(key) {
        change(&mut scanned.answer);
    }
}

fn empty_answer() -> SecretAnswer {
    SecretAnswer {
        status: "done",
        sessions_looked_at: 0,
        session_count: 0,
        sessions_read: 0,
        looked_at: None,
        secrets: Arc::default(),
        next_cursor: None,
        error: None,
    }
}
