//! What is forgotten with a choice of sessions or texts: every file, line and place where the same content is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::account::{Account, StoreAccount};
use super::encodings::{SHORTEST, forms_of};
use super::{ArchivedFile, archived_files, shape_of};
use crate::collect::home::file_groups::GROUPS;
use crate::collect::ingest::content::decoder;
use crate::collect::ingest::forgotten::{Replacement, each_unit, entries_of, forgotten_parts, id_of};
use annals_core::{
    Error, FileId, Forgotten, ForgottenHash, ForgottenText, Framing, InstanceId, LineKind, Result, Scope,
    SessionId, Time,
};
use annals_sources::by_name;
use annals_sources::json::Json;
use annals_store::{RelatedLine, Store};

/// Bytes of a sample that is looked for in the raw file, samples of a line, and of all lines.
const SAMPLE: usize = 24;
const SAMPLES_OF_LINE: usize = 4;
const MOST_SAMPLES: usize = 200_000;
/// Shorter ids of sessions may be part of other names.
const SHORTEST_ID: usize = 12;

/// What to forget.
#[derive(Debug, Clone)]
pub enum Selection {
    Sessions(BTreeSet<SessionId>),
    Texts(Vec<String>),
}

/// What a forgetting will do.
pub struct ForgetPlan {
    pub reason: String,
    pub key: [u8; 32],
    pub lines: Vec<(u64, ForgottenHash)>,
    pub texts: Vec<ForgottenText>,
    pub whole: BTreeSet<FileId>,
    pub affected: BTreeSet<FileId>,
    /// All sessions that go, with those they started.
    pub sessions: BTreeSet<SessionId>,
    pub account: Account,
    pub titles: Vec<String>,
    /// Lines that stay because they are inside of another conversation's document.
    pub kept_copies: u64,
    /// Parts of what is forgotten, to look for afterwards.
    pub samples: Forgotten,
}

impl ForgetPlan {
    pub fn is_empty(&self) -> bool {
        self.affected.is_empty() && self.whole.is_empty()
    }

    /// The account that is stored: titles only for the trash.
    pub fn account_for(&self, expires_at: Option<Time>) -> Account {
        let titles = if expires_at.is_some() { self.titles.clone() } else { Vec::new() };
        Account { titles, ..self.account.clone() }
    }
}

/// Finds everything that goes with the selection, without changing anything. `random` becomes the key of the hashes if
/// the archive has none.
pub fn plan(store: &Store, selection: &Selection, reason: &str, random: [u8; 32]) -> Result<ForgetPlan> {
    let key = store.forget_key()?.unwrap_or(random);
    let mut planner = Planner {
        store,
        files: archived_files(store)?.into_iter().map(|file| (file.file.id, file)).collect(),
        forgotten: Forgotten::new(key),
        plan: ForgetPlan {
            reason: reason.to_owned(),
            key,
            lines: Vec::new(),
            texts: Vec::new(),
            whole: BTreeSet::new(),
            affected: BTreeSet::new(),
            sessions: BTreeSet::new(),
            account: Account::default(),
            titles: Vec::new(),
            kept_copies: 0,
            samples: Forgotten::new(key),
        },
        sampled: 0,
    };
    match selection {
        Selection::Sessions(sessions) => planner.sessions(sessions)?,
        Selection::Texts(texts) => planner.texts(texts)?,
    }
    planner.measure()?;
    Ok(planner.plan)
}

/// The places in a file that belong to what is forgotten.
#[derive(Default)]
struct Places {
    whole: bool,
    offsets: BTreeMap<u64, LineKind>,
}

struct Planner<'s> {
    store: &'s Store,
    files: BTreeMap<FileId, ArchivedFile>,
    forgotten: Forgotten,
    plan: ForgetPlan,
    sampled: usize,
}

impl Planner<'_> {
    fn texts(&mut self, texts: &[String]) -> Result<()> {
        for text in texts {
            if text.trim().len() < SHORTEST {
                return Err(Error::bad_request(format!(
                    "text is too short to forget: it needs at least {SHORTEST} bytes"
                ))
                .hint("forget sessions by their ids, or give more of the text"));
            }
            for form in forms_of(text) {
                let text = self.forgotten.text(&form);
                self.plan.texts.push(text);
                self.forgotten.add_text(text);
                self.plan.samples.add_text(text);
            }
        }
        Ok(())
    }

    fn sessions(&mut self, chosen: &BTreeSet<SessionId>) -> Result<()> {
        let sessions = self.store.with_related_sessions(chosen)?;
        let names = self.store.session_names(&sessions)?;
        let keys: HashSet<(String, String)> = names
            .into_iter()
            .map(|(source, key, _)| (source, key))
            .filter(|(_, key)| key.len() >= SHORTEST_ID)
            .collect();
        let counts = self.store.session_counts(&sessions)?;
        let number = |count: i64| u64::try_from(count).unwrap_or(0);
        self.plan.account = Account {
            sessions: sessions.len() as u64,
            started_sessions: (sessions.len() - chosen.len()) as u64,
            messages: number(counts.messages),
            tool_calls: number(counts.calls),
            full_outputs: number(counts.full_outputs),
            records: number(counts.records),
            ..Account::default()
        };
        let mut places = self.places(&sessions, &keys)?;
        self.add_mentions(&mut places, &keys)?;
        for (file, places) in &places {
            self.remember(*file, places, &keys)?;
        }
        self.plan.sessions = sessions;
        Ok(())
    }

    fn places(
        &mut self,
        sessions: &BTreeSet<SessionId>,
        keys: &HashSet<(String, String)>,
    ) -> Result<BTreeMap<FileId, Places>> {
        let mut places: BTreeMap<FileId, Places> = BTreeMap::new();
        for (file, is_only) in self.store.files_of_sessions(sessions)? {
            places.entry(file).or_default().whole |= is_only;
        }
        self.add_grouped(&mut places);
        // The client names files after the session that they belong to.
        let mut named = HashSet::new();
        for (id, file) in &self.files {
            let is_named =
                ids_in(&file.file.path).any(|id| keys.contains(&(file.source.clone(), id.to_owned())));
            let is_shared = places.get(id).is_some_and(|places| !places.whole);
            if is_named && !is_shared {
                places.entry(*id).or_default().whole = true;
                named.insert(*id);
            }
        }
        for line in self.store.records_of_sessions(sessions)? {
            let framing = self.files.get(&line.file).map(|file| file.file.framing);
            let places = places.entry(line.file).or_default();
            places.whole |= framing == Some(Framing::Whole);
            places.offsets.insert(line.offset, LineKind::Content);
        }
        for (id, places) in &mut places {
            places.whole = places.whole && (named.contains(id) || !self.is_list(*id, keys)?);
        }
        for session in sessions {
            for line in self.store.lines_of_session(*session)? {
                add_line(places.entry(line.file).or_default(), line);
            }
        }
        let mut copies = BTreeSet::new();
        for session in sessions {
            for line in self.store.copies_of_session(*session)? {
                let known = places.entry(line.file).or_default();
                if !known.whole && !known.offsets.contains_key(&line.offset) {
                    copies.insert((line.file, line.offset));
                }
                add_line(known, line);
            }
        }
        self.plan.account.copied_lines = copies.len() as u64;
        Ok(places)
    }

    /// Whether a file is a list with an entry for each session or prompt. The client will add those of other sessions to it,
    /// so that it is never forgotten as a whole.
    fn is_list(&self, id: FileId, keys: &HashSet<(String, String)>) -> Result<bool> {
        let Some(ArchivedFile { source, file, .. }) = self.files.get(&id) else { return Ok(false) };
        if file.framing != Framing::Whole {
            return Ok(false);
        }
        let mut is_list = false;
        let Ok(content) = decoder(self.store.bytes(id, file.version), file.encoding) else {
            return Ok(false);
        };
        each_unit(content, file.framing, &mut |_, unit| {
            let is_array = Json::parse(unit).is_some_and(|document| document.is_array());
            is_list = is_array && entries_of(unit).iter().any(|entry| names_one(entry, source, keys));
        })?;
        Ok(is_list)
    }

    /// The files that a conversation of many files was put together from.
    fn add_grouped(&self, places: &mut BTreeMap<FileId, Places>) {
        let mut homes: BTreeMap<InstanceId, Vec<&ArchivedFile>> = BTreeMap::new();
        for file in self.files.values() {
            homes.entry(file.instance).or_default().push(file);
        }
        for files in homes.values() {
            let source = files.first().and_then(|file| by_name(&file.source));
            let Some(grouping) = source.and_then(|source| source.grouping()) else { continue };
            let known: BTreeMap<&str, FileId> =
                files.iter().map(|file| (file.file.path.as_str(), file.file.id)).collect();
            let paths: Vec<&str> = known.keys().copied().collect();
            for group in grouping.groups(&paths) {
                let document = known.get(format!("{GROUPS}/{}", group.name).as_str());
                let is_whole = document.and_then(|id| places.get(id)).is_some_and(|places| places.whole);
                let members = group.files.iter().filter(|_| is_whole);
                for id in members.filter_map(|path| known.get(path.as_str())) {
                    places.entry(*id).or_default().whole = true;
                }
            }
        }
    }

    /// Lists that name these sessions: lines of which no row is made.
    fn add_mentions(
        &self,
        places: &mut BTreeMap<FileId, Places>,
        keys: &HashSet<(String, String)>,
    ) -> Result<()> {
        let transcripts: HashSet<FileId> = self
            .store
            .scoped(Scope::Owner)
            .files(None)?
            .into_iter()
            .filter(|file| file.store == "transcripts")
            .map(|file| file.id)
            .collect();
        for (id, places) in
            places.iter_mut().filter(|(id, places)| !places.whole && !transcripts.contains(*id))
        {
            let Some(file) = self.files.get(id).filter(|file| file.file.framing == Framing::Lines) else {
                continue;
            };
            let bytes = self.store.bytes(*id, file.file.rows_version);
            each_unit(decoder(bytes, file.file.encoding)?, Framing::Lines, &mut |start, unit| {
                let text = String::from_utf8_lossy(unit);
                if ids_in(&text).any(|id| keys.contains(&(file.source.clone(), id.to_owned()))) {
                    places.offsets.entry(start).or_insert(LineKind::Content);
                }
            })?;
        }
        Ok(())
    }

    /// Makes the hashes by which the lines of a file are recognised, here and wherever they come from again.
    fn remember(&mut self, id: FileId, places: &Places, keys: &HashSet<(String, String)>) -> Result<()> {
        let Some(archived) = self.files.get(&id) else { return Ok(()) };
        let file = &archived.file;
        if places.whole {
            self.plan.whole.insert(id);
        } else if file.framing == Framing::Whole {
            return self.remember_entries(id, places, keys);
        } else if file.framing == Framing::Sequence {
            self.plan.kept_copies += places.offsets.len() as u64;
            return Ok(());
        }
        let (forgotten, samples) = (&mut self.forgotten, &mut self.plan.samples);
        let (lines, sampled) = (&mut self.plan.lines, &mut self.sampled);
        for version in self.store.versions(id)? {
            let is_of_rows = version.version == file.rows_version;
            let bytes = self.store.bytes(id, version.version);
            let Ok(content) = decoder(bytes, file.encoding) else { continue };
            each_unit(content, file.framing, &mut |start, unit| {
                let within = start..=start + unit.len() as u64;
                let row = places.offsets.range(within).next().filter(|_| is_of_rows);
                if unit.is_empty() || (!places.whole && row.is_none()) {
                    return;
                }
                sample(samples, sampled, unit);
                if file.framing == Framing::Sequence {
                    return;
                }
                let kind = match row {
                    Some((_, kind)) => *kind,
                    None if file.framing == Framing::Whole => LineKind::Content,
                    None => LineKind::Other,
                };
                let hash = forgotten.hash_of_line(&file.logical_path, unit, kind);
                lines.push((unit.len() as u64, hash));
                forgotten.add_line(unit.len() as u64, hash);
            })?;
        }
        Ok(())
    }

    /// The same for the entries about these sessions in a list that has others too. One that is about a session as a whole
    /// is also recognised by its id, because clients rewrite it.
    fn remember_entries(
        &mut self,
        id: FileId,
        places: &Places,
        keys: &HashSet<(String, String)>,
    ) -> Result<()> {
        let Some(ArchivedFile { source, file, .. }) = self.files.get(&id) else { return Ok(()) };
        let (forgotten, samples) = (&mut self.forgotten, &mut self.plan.samples);
        let (lines, sampled) = (&mut self.plan.lines, &mut self.sampled);
        let mut left = places.offsets.clone();
        for version in self.store.versions(id)? {
            let is_of_rows = version.version == file.rows_version;
            let bytes = self.store.bytes(id, version.version);
            let Ok(content) = decoder(bytes, file.encoding) else { continue };
            each_unit(content, file.framing, &mut |start, unit| {
                for entry in entries_of(unit) {
                    let from = start + (entry.bytes().as_ptr() as usize - unit.as_ptr() as usize) as u64;
                    let within = from..from + entry.bytes().len() as u64;
                    let has_row = is_of_rows && places.offsets.range(within.clone()).next().is_some();
                    if !has_row && !names_one(&entry, source, keys) {
                        continue;
                    }
                    left.retain(|offset, _| !within.contains(offset));
                    sample(samples, sampled, entry.bytes());
                    let mut remember = |bytes: &[u8], kind: LineKind| {
                        let hash = forgotten.hash_of_line(&file.logical_path, bytes, kind);
                        lines.push((bytes.len() as u64, hash));
                        forgotten.add_line(bytes.len() as u64, hash);
                    };
                    remember(entry.bytes(), LineKind::Content);
                    if let Some(id) = id_of(&entry).filter(|id| is_key(id, source, keys)) {
                        remember(id.bytes(), LineKind::Other);
                    }
                }
            })?;
        }
        self.plan.kept_copies += left.len() as u64;
        Ok(())
    }

    /// Finds every file with this content, and adds up.
    fn measure(&mut self) -> Result<()> {
        let stores: HashMap<FileId, String> = self
            .store
            .scoped(Scope::Owner)
            .files(None)?
            .into_iter()
            .map(|file| (file.id, file.store))
            .collect();
        let mut by_store: BTreeMap<(String, String), StoreAccount> = BTreeMap::new();
        for (id, archived) in &self.files {
            let is_whole = self.plan.whole.contains(id);
            let (mut bytes, mut lines, mut places) = (0, 0, 0);
            for version in self.store.versions(*id)? {
                if is_whole {
                    bytes += version.size;
                    self.plan.account.versions += 1;
                    continue;
                }
                let stored = self.store.bytes(*id, version.version);
                match forgotten_parts(stored, &self.forgotten, shape_of(&archived.file))? {
                    Replacement::Blanks(blanks) if blanks.is_empty() => continue,
                    Replacement::Blanks(blanks) => {
                        bytes += blanks.iter().map(|blank| blank.range.end - blank.range.start).sum::<u64>();
                        let is_line = |fill: u8| fill == annals_core::BLANK;
                        lines += blanks.iter().filter(|blank| is_line(blank.fill)).count() as u64;
                        places += blanks.iter().filter(|blank| !is_line(blank.fill)).count() as u64;
                    }
                    Replacement::Whole(_) => places += 1,
                }
                self.plan.account.versions += 1;
                self.plan.affected.insert(*id);
            }
            let is_changed = self.plan.affected.contains(id);
            if !is_whole && !is_changed {
                continue;
            }
            let account = &mut self.plan.account;
            account.whole_files += u64::from(is_whole);
            account.changed_files += u64::from(!is_whole);
            account.bytes += bytes;
            account.lines += lines;
            account.places += places;
            let store = stores.get(id).cloned().unwrap_or_default();
            if store.contains("history") && !is_whole {
                account.history_lines += lines;
            }
            let sum = by_store.entry((archived.source.clone(), store.clone())).or_insert_with(|| {
                StoreAccount { store, source: archived.source.clone(), ..StoreAccount::default() }
            });
            sum.whole_files += u64::from(is_whole);
            sum.changed_files += u64::from(!is_whole);
            sum.bytes += bytes;
        }
        self.plan.account.stores = by_store.into_values().collect();
        self.plan.account.lines += self.plan.lines.len() as u64;
        Ok(())
    }
}

fn is_key(json: &Json<'_>, source: &str, keys: &HashSet<(String, String)>) -> bool {
    json.text().is_some_and(|text| keys.contains(&(source.to_owned(), text.into_owned())))
}

/// Whether an entry of a list says which of these sessions it is about.
fn names_one(entry: &Json<'_>, source: &str, keys: &HashSet<(String, String)>) -> bool {
    entry.object().fields().iter().any(|(_, value)| is_key(value, source, keys))
}

fn add_line(places: &mut Places, line: RelatedLine) {
    let kind = match line {
        RelatedLine { is_copy: true, .. } => LineKind::Other,
        RelatedLine { is_timed: true, .. } => LineKind::Timed,
        RelatedLine { .. } => LineKind::Content,
    };
    // A line with several rows is recognised as far as any of them.
    let known = places.offsets.entry(line.offset).or_insert(kind);
    if *known == LineKind::Content && kind == LineKind::Timed {
        *known = kind;
    }
}

/// Remembers some parts of a line, spread over it.
fn sample(samples: &mut Forgotten, sampled: &mut usize, unit: &[u8]) {
    let Some(room) = unit.len().checked_sub(SAMPLE) else { return };
    for number in 0..SAMPLES_OF_LINE.min(room + 1) {
        if *sampled == MOST_SAMPLES {
            return;
        }
        let start = room * (2 * number + 1) / (2 * SAMPLES_OF_LINE);
        let part = &unit[start..start + SAMPLE];
        // Ids of sessions stay in the list of removed rows, and any byte may follow them there.
        if part.iter().all(|byte| byte.is_ascii_hexdigit() || b"-\"',:{}[] ".contains(byte)) {
            continue;
        }
        samples.add_text(samples.text(part));
        *sampled += 1;
    }
}

/// Everything in a text that may be the id of a session: its words, and what looks like a UUID in them.
fn ids_in(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    text.split(move |letter| !is_part(letter)).filter(|word| word.len() >= SHORTEST_ID).flat_map(|word| {
        let ids = (0..word.len().saturating_sub(35)).filter_map(move |at| word.get(at..at + 36));
        std::iter::once(word).chain(ids.filter(|id| is_uuid(id)))
    })
}

fn is_uuid(text: &str) -> bool {
    text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}
