//! Imports the transcripts that another program keeps in a git repository. Each session is one file of the archive, read
//! like the client's own file, so that its rows count once beside it.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Read};
use std::path::Path;

use super::Importer;
use super::report::{ContainerReport, MemberReport};
use crate::collect::ingest::append::{AppendKind, Appender};
use crate::collect::ingest::target::Target;
use crate::collect::options::{Environment, Progress};
use crate::collect::run::{self, Run};
use annals_core::{Result, Scope};
use annals_sources::git::StoredTranscript;
use annals_sources::{Source, path_part, recognise_transcript, registry};
use annals_store::Store;

/// How much of a transcript is read to recognise it.
const HEAD: u64 = 1 << 20;
const CHUNK: usize = 64 << 10;
const STORE: &str = "transcripts in git repositories";
/// Of equal rows, the one whose path comes first is the original: the client's own directories come before this one,
/// so that what another program masked in its copy is shown from the client's file.
const FOLDER: &str = "transcripts";

/// Opens what a repository keeps.
pub trait GitBlobs {
    fn open(&self, blob: &str) -> io::Result<Box<dyn Read>>;
}

/// The transcripts to import.
pub struct RepositoryImport<'i> {
    pub path: &'i Path,
    /// What the refs with the transcripts point to, to see later whether there is more.
    pub state: Option<String>,
    pub transcripts: Vec<StoredTranscript>,
    pub blobs: &'i dyn GitBlobs,
    /// The member who owns the data.
    pub member: Option<&'i str>,
}

/// A transcript whose client is known.
struct Recognised<'i> {
    source: &'static dyn Source,
    reader: &'static str,
    /// Its path in the archive.
    path: String,
    stored: &'i StoredTranscript,
}

/// The caller holds the lock.
pub fn import_repository(
    import: &RepositoryImport<'_>,
    environment: &Environment<'_>,
    progress: &mut dyn Progress,
) -> Result<ContainerReport> {
    let sources: Vec<&'static dyn Source> =
        registry().iter().copied().filter(|source| source.recorder().is_some()).collect();
    let mut store = run::open(environment, sources.iter().copied())?;
    let run = Run::start(&store, environment, "import")?;
    let mut report = ContainerReport {
        path: import.path.to_owned(),
        kind: "git repository",
        ..ContainerReport::default()
    };
    let recognised = recognise(import, &mut report);
    let bytes = recognised.iter().map(|transcript| transcript.stored.size).sum();
    progress.begin(recognised.len() as u64, bytes);
    let mut importer = Importer {
        store: &mut store,
        appender: Appender::new(Store::open(environment.data_dir)?)?,
        environment,
        member: import.member,
        sources,
        instances: BTreeMap::new(),
        batches: Vec::new(),
        held: HashSet::new(),
        held_bytes: 0,
        container: serde_json::Map::new(),
        progress,
    };
    let mut seen: HashSet<String> = HashSet::new();
    for transcript in &recognised {
        let (added, captured) = importer.transcript(transcript, import.blobs, &mut report)?;
        let totals = report.totals.entry(transcript.source.manifest().source).or_default();
        totals.captured_bytes += captured;
        // Earlier states of a session that is there already are no sessions of their own.
        if seen.insert(transcript.path.clone()) || added.is_some() {
            totals.count(added);
        }
        importer.progress.advance(1, transcript.stored.size);
    }
    importer.progress.end();
    importer.mark_available((environment.now)())?;
    if let Some(state) = &import.state {
        let mut writer = importer.store.writer((environment.now)())?;
        for instance in importer.instances.values() {
            writer.set_cursor(*instance, &cursor_of(import.path), state)?;
        }
        writer.commit()?;
    }
    let summary = format!("{} of {} recognised", recognised.len(), import.transcripts.len());
    run.finish(&mut store, &summary)?;
    Ok(report)
}

/// Whether the transcripts of a repository in this state were imported.
pub fn is_imported(store: &Store, repository: &Path, state: &str) -> Result<bool> {
    for home in store.scoped(Scope::Owner).instances()? {
        if store.cursor(home.id, &cursor_of(repository))?.as_deref() == Some(state) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn cursor_of(repository: &Path) -> String {
    format!("git {}", repository.to_string_lossy())
}

/// Finds out which client wrote each transcript; the longest of each session comes first, and covers the others.
fn recognise<'i>(import: &'i RepositoryImport<'_>, report: &mut ContainerReport) -> Vec<Recognised<'i>> {
    let mut recognised = Vec::new();
    let mut known: HashSet<&[String]> = HashSet::new();
    for stored in import.transcripts.iter().filter(|stored| known.insert(&stored.blobs)) {
        let mut head = Vec::new();
        let read = open(import.blobs, stored).and_then(|input| input.take(HEAD).read_to_end(&mut head));
        let found = match read {
            Ok(_) => recognise_transcript(&head),
            Err(error) => {
                report.warnings.push(format!("{}: {error}", stored.path));
                None
            }
        };
        let mut member = MemberReport {
            name: stored.path.clone(),
            bytes: stored.size,
            verdict: "unknown",
            source: None,
            what: String::new(),
            elements: 0,
            aside: 0,
        };
        if let Some(found) = found {
            let parts: Vec<String> = found.name.split('/').map(path_part).collect();
            member.verdict = "taken";
            member.source = Some(found.source.manifest().source);
            member.what = format!("{} transcript", found.source.manifest().label);
            let path = format!("{FOLDER}/{}", parts.join("/"));
            recognised.push(Recognised { source: found.source, reader: found.reader, path, stored });
        }
        report.members.push(member);
    }
    recognised.sort_by(|left, right| {
        right.stored.size.cmp(&left.stored.size).then_with(|| left.stored.path.cmp(&right.stored.path))
    });
    recognised
}

/// All parts of a transcript, one after the other.
fn open(blobs: &dyn GitBlobs, stored: &StoredTranscript) -> io::Result<Box<dyn Read>> {
    let mut all: Box<dyn Read> = Box::new(io::empty());
    for blob in &stored.blobs {
        all = Box::new(all.chain(blobs.open(blob)?));
    }
    Ok(all)
}

impl Importer<'_, '_> {
    /// Stores a transcript unless the archive has all of it, and returns the number of new bytes.
    fn transcript(
        &mut self,
        transcript: &Recognised<'_>,
        blobs: &dyn GitBlobs,
        report: &mut ContainerReport,
    ) -> Result<(Option<AppendKind>, u64)> {
        let Recognised { source, reader, path, stored } = transcript;
        let instance = self.instance(*source)?;
        let id = blake3::hash(stored.blobs.join(" ").as_bytes());
        let mut hash = [0; 16];
        hash.copy_from_slice(&id.as_bytes()[..16]);
        // A transcript that is no continuation of the known one is kept beside it.
        let stem = path.strip_suffix(".jsonl").unwrap_or(path);
        let beside = format!("{stem}.{}.jsonl", &id.to_hex()[..8]);
        for path in [path, &beside] {
            let target = Target::archived(instance, *source, path, STORE, reader);
            let archive = self.appender.store();
            let known = archive.captured_file(instance, path)?;
            if let Some(known) = &known {
                if archive.has_capture(known.id, &hash)? {
                    return Ok((None, 0));
                }
                let stored = &mut archive.bytes(known.id, known.version);
                match open(blobs, transcript.stored).and_then(|mut input| compare(stored, &mut input)) {
                    Ok(Compared::Continues) => {}
                    Ok(Compared::Covered) => return Ok((None, 0)),
                    Ok(Compared::Differs) => continue,
                    Err(error) => {
                        report.warnings.push(format!("{}: {error}", transcript.stored.path));
                        return Ok((None, 0));
                    }
                }
            }
            let mut input = open(blobs, transcript.stored)?;
            let mut captured = 0;
            let mut writer = self.store.writer((self.environment.now)())?;
            let added = self.appender.write_lines(&target, &hash, &mut input, &mut |batch| {
                captured += batch.new_bytes;
                Ok(writer.apply(batch).map(|_| ())?)
            })?;
            writer.commit()?;
            return Ok((added, captured));
        }
        Ok((None, 0))
    }
}

/// What a transcript adds to what the archive has.
enum Compared {
    Covered,
    Continues,
    Differs,
}

fn compare(stored: &mut dyn Read, input: &mut dyn Read) -> io::Result<Compared> {
    let (mut ours, mut theirs) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
    loop {
        ours.clear();
        theirs.clear();
        stored.take(CHUNK as u64).read_to_end(&mut ours)?;
        input.take(CHUNK as u64).read_to_end(&mut theirs)?;
        let equal = ours.len().min(theirs.len());
        if ours[..equal] != theirs[..equal] {
            return Ok(Compared::Differs);
        }
        if theirs.len() > ours.len() {
            return Ok(Compared::Continues);
        }
        if theirs.len() < CHUNK {
            return Ok(Compared::Covered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Compared, compare};

    #[test]
    fn transcripts_are_compared_to_their_end() {
        let long = vec![b'a'; 2 * CHUNK];
        let compared = |stored: &[u8], input: &[u8]| match compare(&mut &*stored, &mut &*input).unwrap() {
            Compared::Covered => "covered",
            Compared::Continues => "continues",
            Compared::Differs => "differs",
        };
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1] {
            assert_eq!(compared(&long[..size], &long[..size]), "covered", "{size}");
            assert_eq!(compared(&long[..size], &long[..size + 1]), "continues", "{size}");
            assert_eq!(compared(&long[..size + 1], &long[..size]), "covered", "{size}");
            assert_eq!(compared(&[&long[..size], b"b"].concat(), &long[..size + 1]), "differs", "{size}");
        }
    }
}
