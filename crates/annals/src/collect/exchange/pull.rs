//! `annals pull`: fetches one's own data from a hub.

use super::client::{Hub, HubAddress};
use super::import::FILES_AT_ONCE;
use super::push::hello;
use super::receive::{ReceivedFiles, Receiver};
use super::wire::{
    Arrangements, ArrangementsAfter, Hello, PulledAnswer, PulledBlobs, PulledFiles, read_frame,
};
use crate::collect::options::{Environment, Progress};
use crate::collect::run::{self, Run};
use annals_core::{Arrangement, Error, Result, Scope, from_hex};
use annals_sources::registry;
use annals_store::{HomeName, HubState, ReceivedHome, Store};

/// Blobs that are asked for at once; the hub answers with as many as fit.
const BLOBS_AT_ONCE: usize = 2_000;

#[derive(Debug, Default, Clone)]
pub struct PullReport {
    pub url: String,
    pub member: Option<String>,
    /// Whether the copies are exact or masked.
    pub policy: String,
    pub homes: u64,
    pub received: ReceivedFiles,
    pub requests: u64,
    pub received_bytes: u64,
    pub arrangements: u64,
}

/// The caller holds the lock.
pub fn pull(
    address: &HubAddress,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<PullReport> {
    let store = run::open(environment, registry().iter().copied())?;
    let mut hub = Hub::at(address)?;
    let greeting = Hello { pulls: true, ..hello(&store, environment, Vec::new())? };
    let (answer, archive) = hub.hello(&greeting)?;
    let mut report = PullReport {
        url: address.url.clone(),
        member: answer.member.clone(),
        policy: answer.policy.clone(),
        ..PullReport::default()
    };
    let state = store.hub(&archive)?.unwrap_or_else(|| HubState {
        archive: archive.clone(),
        url: address.url.clone(),
        policy: answer.policy.clone(),
        confirmed_at: None,
        pushed_at: None,
        pushed_commit: 0,
        choice: String::new(),
        pulled_commit: 0,
    });
    if from_hex(&greeting.archive).as_ref() == Some(&archive) {
        return Err(Error::new("the hub is this archive"));
    }
    if state.pulled_commit == answer.commit {
        (report.requests, report.received_bytes) = (hub.requests, hub.received_bytes);
        return Ok(report);
    }
    let run = Run::start(&store, environment, "pull")?;
    let committed = Store::open(environment.data_dir)?;
    let now = (environment.now)();
    let mut receiver = Receiver::new(store, committed, None, now)?;
    let own = own_homes(receiver.store(), &archive)?;
    for home in &answer.homes {
        // The hub has less of what was captured here than there is.
        if answer.policy == "masked" && own.contains(&home.name) {
            continue;
        }
        report.homes += 1;
        let received =
            ReceivedHome { member: None, name: &home.name, archive: &archive, policy: &answer.policy };
        let instance = receiver.store().received_home(&received, now)?;
        let mut after = String::new();
        loop {
            let page: PulledAnswer = hub.ask("offers", &PulledFiles { home: home.id, after })?;
            if page.files.len() > FILES_AT_ONCE {
                return Err(Error::new("the hub offers more files at once than agreed"));
            }
            let missing = receiver.missing(instance, &home.name.source, &page.files)?;
            let mut rest = missing.as_slice();
            while !rest.is_empty() {
                let hashes = rest[..rest.len().min(BLOBS_AT_ONCE)].to_vec();
                let frames = hub.send("content", &serde_json::to_vec(&PulledBlobs { hashes })?)?;
                let (mut input, mut packed) = (frames.as_slice(), Vec::new());
                while let Some(blob) = read_frame(&mut input)? {
                    if rest.get(packed.len()) != Some(&blob.hash) {
                        return Err(Error::new("the hub sent what was not asked for"));
                    }
                    packed.push(blob);
                }
                if packed.is_empty() {
                    return Err(Error::new("the hub sent nothing of what it offered"));
                }
                receiver.store().stage_blobs(None, &packed, now)?;
                rest = &rest[packed.len()..];
            }
            progress.advance(page.files.len() as u64, 0);
            report.received.add(receiver.take(instance, &home.name.source, &page.files)?);
            match page.after {
                Some(next) => after = next,
                None => break,
            }
        }
    }
    report.arrangements = pull_arrangements(&mut hub, receiver.store(), state.pulled_commit)?;
    receiver.store().save_hub(&HubState { pulled_commit: answer.commit, ..state })?;
    (report.requests, report.received_bytes) = (hub.requests, hub.received_bytes);
    let summary = format!("{:?}", report.received);
    run.finish(receiver.store(), &summary)?;
    Ok(report)
}

/// The homes that this archive has from elsewhere than the hub.
fn own_homes(store: &Store, hub: &[u8]) -> Result<Vec<HomeName>> {
    let homes = store.offered_homes(None)?.into_iter();
    Ok(homes.filter(|home| home.archive.as_deref() != Some(hub)).map(|home| home.name).collect())
}

fn pull_arrangements(hub: &mut Hub, store: &mut Store, commit: i64) -> Result<u64> {
    let (mut after, mut new) = (0, 0);
    loop {
        let answer: Arrangements = hub.ask("arranged", &ArrangementsAfter { commit, after })?;
        let Some(next) = answer.after else { return Ok(new) };
        after = next;
        let versions: Vec<Arrangement> = answer.versions.iter().filter_map(Arrangement::of_record).collect();
        new += store.arrange(Scope::Owner, &versions)? as u64;
    }
}
