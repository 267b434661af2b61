//! The side that is asked: answers the steps of the protocol for one caller, who reaches only homes of their own.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::import::{FILES_AT_ONCE, identity};
use super::receive::Receiver;
use super::wire::{
    Arrangements, ArrangementsAfter, Hello, HelloAnswer, LONGEST_BODY, NumberedHome, PART, PROTOCOL,
    PulledAnswer, PulledBlobs, PulledFiles, PushedAnswer, PushedFiles, arrangement_record, read_frame,
    write_frame,
};
use crate::collect::lock::Lock;
use crate::collect::options::Environment;
use crate::collect::run;
use annals_core::{Arrangement, Error, InstanceId, MemberId, Result, Scope, Time, to_hex};
use annals_sources::{by_name, registry};
use annals_store::{ReceivedHome, Store};

/// Bytes that a member may have sent without a file that refers to them.
const MOST_STAGED: u64 = 16 << 30;
/// How long they wait.
const STAGED_FOR: i64 = 7 * 86_400 * 1_000_000;
const MOST_HOMES: usize = 1_000;
/// How long a request waits for another process that writes.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub struct Exchanger {
    pub member: Option<MemberId>,
    pub scope: Scope,
    /// What the hub wants to be sent.
    pub policy: HubPolicy,
}

/// What a hub keeps of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubPolicy {
    /// Their bytes.
    Exact,
    /// Copies without secrets.
    Masked,
}

impl HubPolicy {
    pub fn name(self) -> &'static str {
        match self {
            HubPolicy::Exact => "exact",
            HubPolicy::Masked => "masked",
        }
    }

    pub fn from_name(name: &str) -> Option<HubPolicy> {
        [HubPolicy::Exact, HubPolicy::Masked].into_iter().find(|policy| policy.name() == name)
    }
}

/// Why a step was refused.
#[derive(Debug)]
pub enum Refused {
    Because(Error),
    /// There is no such step.
    Unknown,
    /// The home is not the caller's.
    Foreign,
    /// Something else writes to the archive.
    Busy,
    TooMuch(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Because(error)
    }
}

impl From<annals_store::StoreError> for Refused {
    fn from(error: annals_store::StoreError) -> Refused {
        Refused::Because(error.into())
    }
}

impl Refused {
    /// The status of HTTP, and what to say.
    pub fn into_status(self) -> (u16, Error) {
        match self {
            Refused::Because(error) if error.is_bad_request() => (400, error),
            Refused::Because(error) if error.what.contains("no space left") => {
                (507, Error::new("the disk of the hub is full").hint("free up space there, and push again"))
            }
            Refused::Because(error) if error.what.contains("cannot be written") => {
                let refused = Error::new("the archive of the hub cannot be written: its disk may be full");
                (507, refused.hint("free up space there, and push again"))
            }
            Refused::Because(error) => (500, error),
            Refused::Unknown => (404, Error::bad_request("no such step of the protocol")),
            Refused::Foreign => (403, Error::bad_request("this home is not yours")),
            Refused::Busy => {
                (503, Error::new("something else writes to the archive of the hub").hint("try again later"))
            }
            Refused::TooMuch(error) => (413, error),
        }
    }
}

type Answer = std::result::Result<Vec<u8>, Refused>;

/// Answers one step.
pub fn answer_step(step: &str, caller: Exchanger, body: &[u8], environment: &Environment<'_>) -> Answer {
    if body.len() > LONGEST_BODY {
        return Err(Refused::TooMuch(Error::bad_request("the request is too long")));
    }
    match step {
        "hello" => hello(caller, body, environment),
        "files" => files(caller, body, environment),
        "blobs" => blobs(caller, body, environment),
        "arrangements" => arrangements(caller, body, environment),
        "offers" => offers(caller, body, environment.data_dir),
        "content" => content(caller, body, environment.data_dir),
        "arranged" => arranged(caller, body, environment.data_dir),
        _ => Err(Refused::Unknown),
    }
}

fn hello(caller: Exchanger, body: &[u8], environment: &Environment<'_>) -> Answer {
    let hello: Hello = read(body)?;
    if hello.protocol != PROTOCOL {
        let what = format!("protocol {} is not spoken here, only {PROTOCOL}", hello.protocol);
        let hint = if hello.protocol < PROTOCOL { "update annals on this machine" } else { "update the hub" };
        return Err(Error::bad_request(what).hint(hint).into());
    }
    if hello.homes.len() > MOST_HOMES {
        return Err(Error::bad_request(format!("more than {MOST_HOMES} homes")).into());
    }
    let archive = annals_core::from_hex(&hello.archive).filter(|archive| archive.len() == 16);
    let archive = archive.ok_or_else(|| Error::bad_request("the archive has no name"))?;
    let mut store = Store::open(environment.data_dir)?;
    let now = (environment.now)();
    let mut homes = Vec::new();
    if !hello.homes.is_empty() {
        let _lock = patient_lock(environment)?;
        let stale = Time::from_micros(now.micros() - STAGED_FOR);
        if store.has_staged(stale)? {
            store.drop_staged(stale)?;
        }
        for name in hello.homes {
            check_home(&name)?;
            let policy = caller.policy.name();
            let received = ReceivedHome { member: caller.member, name: &name, archive: &archive, policy };
            let id = store.received_home(&received, now)?.0;
            homes.push(NumberedHome { id, name });
        }
    }
    if hello.pulls {
        let offered = store.offered_homes(caller.member)?;
        homes.extend(offered.into_iter().map(|home| NumberedHome { id: home.instance.0, name: home.name }));
    }
    write(&HelloAnswer {
        protocol: PROTOCOL,
        archive: to_hex(&identity(&store)?),
        member: match caller.member {
            Some(member) => store.member_name(member)?,
            None => None,
        },
        policy: caller.policy.name().to_owned(),
        commit: store.last_commit()?,
        homes,
    })
}

/// Names become rows of lists: they are short, and sources have plain names.
fn check_home(name: &annals_store::HomeName) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_named = |text: &str| !text.is_empty() && text.len() <= 4_096 && !text.contains('\0');
    if name.source.chars().all(plain)
        && [&name.source, &name.machine, &name.root].into_iter().all(|text| is_named(text))
    {
        return Ok(());
    }
    Err(Error::bad_request("a home has an impossible name"))
}

fn files(caller: Exchanger, body: &[u8], environment: &Environment<'_>) -> Answer {
    let pushed: PushedFiles = read(body)?;
    let instance = InstanceId(pushed.home);
    let store = Store::open_reader(environment.data_dir)?;
    let source = source_of(&store, caller, instance)?;
    drop(store);
    let _lock = patient_lock(environment)?;
    let known = by_name(&source);
    let store = run::open(
        environment,
        registry()
            .iter()
            .copied()
            .filter(|source| known.is_some_and(|known| known.manifest().source == source.manifest().source)),
    )?;
    let committed = Store::open(environment.data_dir)?;
    let mut receiver = Receiver::new(store, committed, caller.member, (environment.now)())?;
    let missing = receiver.missing(instance, &source, &pushed.files)?;
    if !missing.is_empty() {
        return write(&PushedAnswer { missing, ..PushedAnswer::default() });
    }
    write(&PushedAnswer::of(&receiver.take(instance, &source, &pushed.files)?))
}

fn blobs(caller: Exchanger, mut body: &[u8], environment: &Environment<'_>) -> Answer {
    let mut packed = Vec::new();
    while let Some(blob) = read_frame(&mut body)? {
        packed.push(blob);
    }
    let _lock = patient_lock(environment)?;
    let mut store = Store::open(environment.data_dir)?;
    if store.staged_bytes(caller.member)? > MOST_STAGED {
        let error = Error::bad_request("too much was sent without a file that refers to it");
        return Err(Refused::TooMuch(error.hint("it is dropped after a week, or when the files are sent")));
    }
    let stored = store.stage_blobs(caller.member, &packed, (environment.now)())?;
    write(&serde_json::json!({"stored": stored}))
}

fn arrangements(caller: Exchanger, body: &[u8], environment: &Environment<'_>) -> Answer {
    let sent: Arrangements = read(body)?;
    let mut versions = Vec::new();
    for version in &sent.versions {
        let version = Arrangement::of_record(version);
        versions.push(version.ok_or_else(|| Error::bad_request("a version is no arrangement"))?);
    }
    let _lock = patient_lock(environment)?;
    let new = Store::open(environment.data_dir)?.arrange(caller.scope, &versions)? as u64;
    write(&Arrangements { new, ..Arrangements::default() })
}

fn offers(caller: Exchanger, body: &[u8], home: &Path) -> Answer {
    let wanted: PulledFiles = read(body)?;
    let store = Store::open_reader(home)?;
    let instance = InstanceId(wanted.home);
    source_of(&store, caller, instance)?;
    let stamped = store.stamped_files(instance, &wanted.after, FILES_AT_ONCE)?;
    let mut answer = PulledAnswer { files: Vec::new(), after: None };
    let mut size = 0;
    for stamped in stamped {
        answer.after = Some(stamped.path);
        let Some(file) = store.exchange_file(stamped.id)? else { continue };
        size += file.hashes().count() * 70 + 1_000;
        answer.files.push(file);
        if size > PART / 2 {
            break;
        }
    }
    write(&answer)
}

fn content(caller: Exchanger, body: &[u8], home: &Path) -> Answer {
    let wanted: PulledBlobs = read(body)?;
    let store = Store::open_reader(home)?;
    let held = store.held_blobs(caller.member, &wanted.hashes)?;
    let mut out = Vec::new();
    for hash in &wanted.hashes {
        if !held.contains(hash) {
            return Err(Error::bad_request(format!("blob {hash}: missing")).into());
        }
        let blob = store.packed_blob(hash, &|_| false)?;
        let damaged = || Error::new(format!("blob {hash}: damaged")).hint("run `annals repair` on the hub");
        write_frame(&blob.ok_or_else(damaged)?, &mut out);
        if out.len() >= PART {
            break;
        }
    }
    Ok(out)
}

fn arranged(caller: Exchanger, body: &[u8], home: &Path) -> Answer {
    let wanted: ArrangementsAfter = read(body)?;
    let store = Store::open_reader(home)?;
    let rows = store.arrangements_after(caller.scope, wanted.commit, wanted.after, ARRANGEMENTS)?;
    let after = rows.last().map(|(id, _)| *id);
    let versions = rows.iter().map(|(_, version)| arrangement_record(version)).collect();
    write(&Arrangements { versions, after, new: 0 })
}

/// Arrangements of an answer; a note has up to a megabyte.
pub const ARRANGEMENTS: usize = 8;

/// The source of a home, if it is the caller's.
fn source_of(store: &Store, caller: Exchanger, instance: InstanceId) -> std::result::Result<String, Refused> {
    store.home_source(instance, caller.member)?.ok_or(Refused::Foreign)
}

fn patient_lock(environment: &Environment<'_>) -> std::result::Result<Lock, Refused> {
    let start = Instant::now();
    loop {
        match Lock::take(environment.data_dir, "serve") {
            Ok(lock) => return Ok(lock),
            Err(_) if start.elapsed() > PATIENCE => return Err(Refused::Busy),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::bad_request(format!("not a request: {error}")))
}

fn write(answer: &impl Serialize) -> Answer {
    Ok(serde_json::to_vec(answer).map_err(Error::from)?)
}
