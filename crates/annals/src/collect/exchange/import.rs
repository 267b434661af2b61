//! `annals import OTHER/annals.db`: merges another archive into this one.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::receive::{ReceivedFiles, Receiver};
use crate::collect::options::{Environment, Progress};
use crate::collect::run::{self, Run};
use annals_core::{Arrangement, Error, MemberId, Result, Scope};
use annals_sources::registry;
use annals_store::{ContentHash, ExchangeFile, PackedBlob, ReceivedHome, Store};

/// Files that are taken at once, and the bytes of blobs that are stored at once.
pub const FILES_AT_ONCE: usize = 200;
pub const BLOBS_AT_ONCE: usize = 8 << 20;
/// The setting with the name that an archive has for others.
const IDENTITY: &str = "archive_id";
/// Arrangements that are stored at once.
const ARRANGEMENTS_AT_ONCE: usize = 1_000;

#[derive(Debug, Default)]
pub struct ImportedArchive {
    pub path: PathBuf,
    pub homes: u64,
    pub received: ReceivedFiles,
    pub bytes: u64,
    /// Arrangements, and how many of them were new.
    pub arrangements: (u64, u64),
    /// Files of the other archive that are damaged there, and were left out.
    pub left_out: Vec<String>,
}

/// The folder of the archive that a path names: the file itself, or the folder it is in.
pub fn archive_at(path: &Path) -> Option<PathBuf> {
    let file = if path.is_dir() { path.join("annals.db") } else { path.to_path_buf() };
    let is_named = file.file_name().is_some_and(|name| name == "annals.db");
    let mut start = [0; 16];
    let opened = std::fs::File::open(&file).ok().filter(|_| is_named && file.is_file());
    opened?.read_exact(&mut start).ok()?;
    let is_database = start == *b"SQLite format 3\0";
    file.parent().filter(|_| is_database).map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_path_buf(),
    })
}

/// The name that an archive has for others.
pub fn identity(store: &Store) -> Result<Vec<u8>> {
    let made = store.setting_or_make(IDENTITY, || {
        let mut id = vec![0; 16];
        // Without randomness there is no archive either: keys need it first.
        let _ = getrandom::fill(&mut id);
        id
    })?;
    // One that cannot be written is known by where it is.
    let place = || blake3::hash(store.path().to_string_lossy().as_bytes()).as_bytes()[..16].to_vec();
    Ok(made.unwrap_or_else(place))
}

/// Merges the archive in `folder`: its bytes by content, rows by our own readers. The caller holds the lock.
pub fn import_archive(
    folder: &Path,
    member: Option<&str>,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<ImportedArchive> {
    let store = run::open(environment, registry().iter().copied())?;
    if is_same_file(folder, environment.data_dir) {
        return Err(
            Error::new(format!("{} is this archive", folder.display())).hint("annals import OTHER/annals.db")
        );
    }
    let other = Store::open_to_read(folder)?.ok_or_else(|| {
        Error::new(format!("{} was written by an older annals", folder.join("annals.db").display()))
            .hint(format!("annals --home {} doctor", folder.display()))
    })?;
    let (scope, holder) = owner_of(&store, member)?;
    let run = Run::start(&store, environment, "import")?;
    let archive = identity(&other)?;
    let committed = Store::open(environment.data_dir)?;
    let mut receiver = Receiver::new(store, committed, holder, (environment.now)())?;
    let mut report = ImportedArchive { path: folder.to_path_buf(), ..ImportedArchive::default() };
    for home in other.all_homes()? {
        report.homes += 1;
        let received = ReceivedHome { member: holder, name: &home.name, archive: &archive, policy: "exact" };
        let instance = receiver.store().received_home(&received, (environment.now)())?;
        let mut after = String::new();
        loop {
            let stamped = other.stamped_files(home.instance, &after, FILES_AT_ONCE)?;
            let Some(last) = stamped.last() else { break };
            after.clone_from(&last.path);
            let mut files = Vec::new();
            for stamped in &stamped {
                match other.exchange_file(stamped.id)? {
                    Some(file) => files.push(file),
                    None => report.left_out.push(stamped.path.clone()),
                }
            }
            progress.advance(files.len() as u64, 0);
            let missing = receiver.missing(instance, &home.name.source, &files)?;
            report.bytes += copy_blobs(
                &other,
                &mut receiver,
                holder,
                &missing,
                &mut files,
                &mut report.left_out,
                environment,
            )?;
            report.received.add(receiver.take(instance, &home.name.source, &files)?);
        }
    }
    report.arrangements = import_arrangements(&other, receiver.store(), scope)?;
    let summary = format!("{:?}", report.received);
    run.finish(receiver.store(), &summary)?;
    Ok(report)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    whole(one) == whole(other)
}

/// Whose the data becomes.
pub fn owner_of(store: &Store, member: Option<&str>) -> Result<(Scope, Option<MemberId>)> {
    let Some(name) = member else { return Ok((Scope::Owner, None)) };
    let unknown =
        || Error::new(format!("no member named {name:?}")).hint("`annals members list` lists all members");
    let scope = store.scope_of_name(name)?.ok_or_else(unknown)?;
    let id = store.member_id(name)?.ok_or_else(unknown)?;
    Ok((scope, Some(id)))
}

/// Copies blobs in parts, and returns how many bytes they are. Files with a damaged blob are left out.
fn copy_blobs(
    other: &Store,
    receiver: &mut Receiver,
    holder: Option<MemberId>,
    missing: &[ContentHash],
    files: &mut Vec<ExchangeFile>,
    left_out: &mut Vec<String>,
    environment: &Environment<'_>,
) -> Result<u64> {
    let (mut part, mut size, mut total) = (Vec::<PackedBlob>::new(), 0, 0);
    let mut damaged = std::collections::HashSet::new();
    for hash in missing {
        let Some(blob) = other.packed_blob(hash, &|_| false)? else {
            damaged.insert(*hash);
            continue;
        };
        size += blob.data.len();
        total += blob.data.len() as u64;
        part.push(blob);
        if size >= BLOBS_AT_ONCE {
            stage(receiver, holder, &part, &mut damaged, environment)?;
            part.clear();
            size = 0;
        }
    }
    stage(receiver, holder, &part, &mut damaged, environment)?;
    files.retain(|file| {
        let is_whole = !file.hashes().any(|hash| damaged.contains(&hash));
        if !is_whole {
            left_out.push(file.path.clone());
        }
        is_whole
    });
    Ok(total)
}

fn stage(
    receiver: &mut Receiver,
    holder: Option<MemberId>,
    part: &[PackedBlob],
    damaged: &mut std::collections::HashSet<ContentHash>,
    environment: &Environment<'_>,
) -> Result<()> {
    let now = (environment.now)();
    match receiver.store().stage_blobs(holder, part, now).map_err(Error::from) {
        Ok(_) => Ok(()),
        Err(error) if !error.is_bad_request() => Err(error),
        // One of them is damaged there: the others are stored alone.
        Err(_) => {
            for blob in part {
                match receiver
                    .store()
                    .stage_blobs(holder, std::slice::from_ref(blob), now)
                    .map_err(Error::from)
                {
                    Ok(_) => {}
                    Err(error) if error.is_bad_request() => drop(damaged.insert(blob.hash)),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}

fn import_arrangements(other: &Store, store: &mut Store, scope: Scope) -> Result<(u64, u64)> {
    let (mut after, mut all, mut new) = (0, 0, 0);
    loop {
        let part = other.arrangements_after(Scope::Owner, 0, after, ARRANGEMENTS_AT_ONCE)?;
        let Some((last, _)) = part.last() else { return Ok((all, new)) };
        after = *last;
        let versions: Vec<Arrangement> = part.into_iter().map(|(_, version)| version).collect();
        new += store.arrange(scope, &versions)? as u64;
        all += versions.len() as u64;
    }
}
