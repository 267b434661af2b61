//! Sends what is new to the hub of the settings while a server or a watcher runs.

use std::sync::Arc;
use std::time::Duration;

use super::{HubArguments, PAUSE, address_of, named_choice};
use crate::cli::settings::Declared;
use crate::cli::ui::output::log_line;
use crate::collect::{FirstPush, Nobody, PushOptions, push};
use crate::config::Config;
use crate::view::Door;
use annals_core::{Error, Result};
use annals_store::Store;

/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// Starts to send, if the settings name a hub. It ends with the process, which may be at any moment.
pub fn push_in_background(config: Arc<Config>) {
    if config.push_url().is_none() {
        return;
    }
    drop(std::thread::spawn(move || {
        let (mut sent_commit, mut pause, mut failure) = (None, PAUSE, String::new());
        loop {
            match push_new(&config, sent_commit) {
                Ok(commit) => {
                    (sent_commit, pause) = (Some(commit), PAUSE);
                    failure.clear();
                }
                Err(error) => {
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    // The same failure is reported once.
                    let error = format!("warning: nothing was sent to the hub: {}", error.chain());
                    if failure != error {
                        log_line(&Door::masking_alone().show(&error).to_string());
                        failure = error;
                    }
                }
            }
            std::thread::sleep(pause);
        }
    }));
}

/// Returns the commit up to which the hub has everything.
fn push_new(config: &Config, sent_commit: Option<i64>) -> Result<i64> {
    let commit = Store::open_reader(&config.data_dir)?.last_commit()?;
    if sent_commit == Some(commit) {
        return Ok(commit);
    }
    let address = address_of(config, &HubArguments::default())?;
    let mut refuse = |_: &FirstPush<'_>| {
        Err(Error::new("you have not agreed to the policy of the hub")
            .hint("run `annals push` once in a terminal"))
    };
    let mut options = PushOptions {
        address: &address,
        choice: named_choice(config.push_choice())?,
        dry_run: false,
        unattended: true,
        confirm: &mut refuse,
    };
    push(&mut options, &Declared(config).environment(), &mut Nobody)?;
    Ok(commit)
}
