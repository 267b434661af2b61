//! `annals push`: sends what a hub does not have yet.

use super::choice::PushChoice;
use super::client::{Hub, HubAddress};
use super::hub::ARRANGEMENTS;
use super::import::{FILES_AT_ONCE, identity};
use super::masked::{MaskedBytes, Masker};
use super::wire::{
    Arrangements, Hello, HelloAnswer, PART, PROTOCOL, PushedAnswer, PushedFiles, arrangement_record,
    write_frame,
};
use crate::collect::options::{Environment, Progress};
use annals_core::{Arrangement, Error, FileId, Result, Scope, to_hex};
use annals_store::{ContentHash, ExchangeFile, HomeName, HubState, OfferedHome, Store};

/// Bytes of versions that one request commits; a longer file is committed alone.
const COMMIT_BYTES: u64 = 64 << 20;
/// Files are sent again if blobs of theirs were dropped meanwhile.
const ROUNDS: u32 = 3;

#[derive(Debug, Default, Clone)]
pub struct PushReport {
    pub url: String,
    pub policy: String,
    /// Whose token it is.
    pub member: Option<String>,
    pub homes: Vec<PushedHome>,
    pub requests: u64,
    pub sent_bytes: u64,
    pub arrangements: u64,
    /// Files that are damaged here, and were left out.
    pub left_out: Vec<String>,
    /// Files in which secrets cannot be replaced: no text, or too long. They were left out.
    pub unmasked: Vec<String>,
    /// The hub has forgotten them.
    pub forgotten_files: u64,
}

#[derive(Debug, Clone)]
pub struct PushedHome {
    pub name: HomeName,
    /// Files that are new or changed.
    pub files: u64,
    pub bytes: u64,
    /// Files that were not chosen.
    pub left_out: u64,
}

/// What the user is asked before the first push.
#[derive(Debug)]
pub struct FirstPush<'a> {
    pub url: &'a str,
    pub member: Option<&'a str>,
    pub policy: &'a str,
}

pub struct PushOptions<'a> {
    pub address: &'a HubAddress,
    pub choice: PushChoice,
    /// Lists what would be sent, and sends nothing.
    pub dry_run: bool,
    /// Nobody is there who would notice that more is sent than before.
    pub unattended: bool,
    pub confirm: &'a mut dyn FnMut(&FirstPush<'_>) -> Result<bool>,
}

pub fn push(
    options: &mut PushOptions<'_>,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<PushReport> {
    let mut store = Store::open(environment.data_dir)?;
    let mut hub = Hub::at(options.address)?;
    let (answer, archive) = hub.hello(&hello(&store, environment, Vec::new())?)?;
    let state = store.hub(&archive)?;
    let choice = options.choice.fingerprint();
    let commit = store.last_commit()?;
    let mut report = PushReport {
        url: options.address.url.clone(),
        policy: answer.policy.clone(),
        member: answer.member.clone(),
        ..PushReport::default()
    };
    let masker = match answer.policy.as_str() {
        "masked" => {
            let mut new = [0; 32];
            let failed = |error| Error::new(format!("the operating system gives no random bytes: {error}"));
            getrandom::fill(&mut new).map_err(failed)?;
            let key = store.setting_or_make("mask_key", || new.to_vec())?;
            Some(Masker::new(&key.ok_or_else(|| Error::new("the archive has no key for masks"))?))
        }
        _ => None,
    };
    let is_known = |state: &HubState| state.pushed_commit == commit && state.choice == choice;
    if state.as_ref().is_some_and(is_known) {
        report.requests = hub.requests;
        return Ok(report);
    }
    let state = agreed(state, &answer, &archive, options, environment)?;
    if !options.dry_run {
        store.save_hub(&state)?;
    }
    let homes: Vec<OfferedHome> = store
        .offered_homes(None)?
        .into_iter()
        // What came from the hub is there.
        .filter(|home| {
            options.choice.has_source(&home.name.source)
                && (home.archive.as_ref() != Some(&archive) || home.name.machine == environment.machine)
        })
        .collect();
    let numbers = if options.dry_run {
        Vec::new()
    } else {
        let names = homes.iter().map(|home| sent_name(masker.as_ref(), home)).collect();
        hub.hello(&hello(&store, environment, names)?)?.0.homes
    };
    for home in &homes {
        let name = sent_name(masker.as_ref(), home);
        let number = numbers.iter().find(|number| number.name == name).map(|number| number.id);
        let to = Destination { archive: &archive, number, masker: masker.as_ref() };
        let sent = push_home(&mut store, &mut hub, &to, home, options, &mut report, progress)?;
        report.homes.push(sent);
    }
    if !options.dry_run {
        // A choice of projects and days is one of sessions: what is said about others stays here.
        let whole = options.choice == PushChoice::default();
        if whole {
            report.arrangements = push_arrangements(
                &store,
                &mut hub,
                if state.choice == choice { state.pushed_commit } else { 0 },
                masker.as_ref(),
            )?;
        }
        let pushed_at = Some((environment.now)());
        store.save_hub(&HubState { pushed_commit: commit, choice, pushed_at, ..state })?;
    }
    (report.requests, report.sent_bytes) = (hub.requests, hub.sent_bytes);
    Ok(report)
}

pub fn hello(store: &Store, environment: &Environment<'_>, homes: Vec<HomeName>) -> Result<Hello> {
    Ok(Hello {
        protocol: PROTOCOL,
        archive: to_hex(&identity(store)?),
        machine: environment.machine.clone(),
        homes,
        pulls: false,
    })
}

/// What is known of the hub, once the user agreed to its policy.
fn agreed(
    state: Option<HubState>,
    answer: &HelloAnswer,
    archive: &[u8],
    options: &mut PushOptions<'_>,
    environment: &Environment<'_>,
) -> Result<HubState> {
    if !["exact", "masked"].contains(&answer.policy.as_str()) {
        return Err(
            Error::new(format!("the hub asks for the policy {:?}", answer.policy)).hint("update annals")
        );
    }
    let was_chosen =
        |state: &HubState| state.pushed_at.is_none() || state.choice == options.choice.fingerprint();
    if options.unattended && !state.as_ref().is_none_or(was_chosen) {
        return Err(Error::new("the settings choose something else than the last push did")
            .hint("set push.exclude_projects and the like, or run `annals push` once with the settings"));
    }
    let url = options.address.url.clone();
    let mut state = state.unwrap_or_else(|| HubState {
        archive: archive.to_vec(),
        url: url.clone(),
        policy: answer.policy.clone(),
        confirmed_at: None,
        pushed_at: None,
        pushed_commit: 0,
        choice: String::new(),
        pulled_commit: 0,
    });
    if !options.dry_run && (state.confirmed_at.is_none() || state.policy != answer.policy) {
        let first = FirstPush { url: &url, member: answer.member.as_deref(), policy: &answer.policy };
        if !(options.confirm)(&first)? {
            return Err(Error::new("nothing was sent"));
        }
        state.confirmed_at = Some((environment.now)());
    }
    (state.url, state.policy) = (url, answer.policy.clone());
    Ok(state)
}

/// Where the files of a home go, and in what form.
struct Destination<'d> {
    archive: &'d [u8],
    /// The home there; none in a dry run.
    number: Option<i64>,
    masker: Option<&'d Masker>,
}

fn sent_name(masker: Option<&Masker>, home: &OfferedHome) -> HomeName {
    masker.map_or_else(|| home.name.clone(), |masker| masker.home(&home.name))
}

fn push_home(
    store: &mut Store,
    hub: &mut Hub,
    to: &Destination<'_>,
    home: &OfferedHome,
    options: &PushOptions<'_>,
    report: &mut PushReport,
    progress: &mut dyn Progress,
) -> Result<PushedHome> {
    let mut sent = PushedHome { name: home.name.clone(), files: 0, bytes: 0, left_out: 0 };
    let stamps = store.pushed_stamps(to.archive, home.instance)?;
    let chosen = options.choice.of_home(store, home.instance)?;
    let mut after = String::new();
    let mut batch = Batch::default();
    loop {
        let page = store.stamped_files(home.instance, &after, FILES_AT_ONCE)?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.path);
        for stamped in page {
            if !chosen.has(stamped.id, &stamped.path) {
                sent.left_out += 1;
                continue;
            }
            if stamps.get(&stamped.id) == Some(&stamped.stamp) {
                continue;
            }
            let Some(file) = store.exchange_file(stamped.id)? else {
                report.left_out.push(stamped.path);
                continue;
            };
            let file = match to.masker.filter(|_| !options.dry_run) {
                Some(masker) => masker.file(store, &home.name.source, &file, &mut batch.masked)?,
                None => Some(file),
            };
            let Some(file) = file else {
                report.unmasked.push(stamped.path);
                continue;
            };
            sent.files += 1;
            sent.bytes += file.versions.iter().map(|version| version.size).sum::<u64>();
            if options.dry_run {
                continue;
            }
            batch.add(file, (stamped.id, stamped.stamp));
            if batch.is_full() {
                send(store, hub, to, &mut batch, report, progress)?;
            }
        }
    }
    send(store, hub, to, &mut batch, report, progress)?;
    Ok(sent)
}

/// Files of one request.
#[derive(Default)]
struct Batch {
    files: Vec<ExchangeFile>,
    stamps: Vec<(FileId, String)>,
    bytes: u64,
    hashes: usize,
    /// What they have instead of their own bytes.
    masked: MaskedBytes,
}

impl Batch {
    fn add(&mut self, file: ExchangeFile, stamp: (FileId, String)) {
        self.bytes += file.versions.iter().map(|version| version.size).sum::<u64>();
        self.hashes += file.hashes().count() + 10;
        self.files.push(file);
        self.stamps.push(stamp);
    }

    fn is_full(&self) -> bool {
        self.files.len() >= FILES_AT_ONCE || self.bytes >= COMMIT_BYTES || self.hashes * 100 >= PART / 2
    }
}

fn send(
    store: &mut Store,
    hub: &mut Hub,
    to: &Destination<'_>,
    batch: &mut Batch,
    report: &mut PushReport,
    progress: &mut dyn Progress,
) -> Result<()> {
    let Some(number) = to.number.filter(|_| !batch.files.is_empty()) else { return Ok(()) };
    let Batch { files, stamps, bytes, mut masked, .. } = std::mem::take(batch);
    let count = files.len() as u64;
    let request = PushedFiles { home: number, files };
    for _ in 0..ROUNDS {
        let answer: PushedAnswer = hub.ask("files", &request)?;
        if answer.missing.is_empty() {
            report.forgotten_files += answer.forgotten_files;
            store.save_pushed(to.archive, &stamps)?;
            progress.advance(count, bytes);
            return Ok(());
        }
        send_blobs(store, hub, &request.files, &answer.missing, to.masker.map(|_| &mut masked))?;
    }
    Err(Error::new("the hub does not keep what it is sent").hint("run `annals doctor` on the hub"))
}

/// Sends blobs as they are stored, in parts. A difference goes with its base if the hub has that, or gets it too.
fn send_blobs(
    store: &Store,
    hub: &mut Hub,
    files: &[ExchangeFile],
    missing: &[ContentHash],
    mut masked: Option<&mut MaskedBytes>,
) -> Result<()> {
    let sent: std::collections::HashSet<ContentHash> = files.iter().flat_map(ExchangeFile::hashes).collect();
    let still_missing: std::collections::HashSet<&ContentHash> = missing.iter().collect();
    let has_base = |base: &ContentHash| sent.contains(base) && !still_missing.contains(base);
    let mut part = Vec::new();
    for hash in missing {
        // With masks, nothing else leaves this machine.
        let blob = match &mut masked {
            Some(masked) => masked.packed(hash)?,
            None => store.packed_blob(hash, &has_base)?,
        };
        let damaged = || Error::new(format!("blob {hash} is damaged here")).hint("annals repair");
        write_frame(&blob.ok_or_else(damaged)?, &mut part);
        if part.len() >= PART {
            hub.send("blobs", &part)?;
            part.clear();
        }
    }
    if !part.is_empty() {
        hub.send("blobs", &part)?;
    }
    Ok(())
}

fn push_arrangements(store: &Store, hub: &mut Hub, commit: i64, masker: Option<&Masker>) -> Result<u64> {
    let (mut after, mut new) = (0, 0);
    loop {
        let rows = store.arrangements_after(Scope::Owner, commit, after, ARRANGEMENTS)?;
        let Some((last, _)) = rows.last() else { return Ok(new) };
        after = *last;
        let masked = |version: &Arrangement| {
            masker.map_or_else(|| version.clone(), |masker| masker.arrangement(version))
        };
        let versions = rows.iter().map(|(_, version)| arrangement_record(&masked(version))).collect();
        let answer: Arrangements =
            hub.ask("arrangements", &Arrangements { versions, ..Arrangements::default() })?;
        new += answer.new;
    }
}
