//! Queries the index for the calls that wrote or read lines of code, many lines at once.

use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{OptionalExtension, params};

use super::format::{BlockReader, read_docs};
use crate::error::Result;
use crate::read::{MESSAGES, MessageRow, message_row, optional_raw};
use crate::{Archive, Store, sql};
use annals_core::{
    CallKind, FileId, FingerprintTerm, GRAM_MARK, InstanceId, LINE_MARK, MessageKind, PassageKind, Raw,
    SessionId, Time,
};

/// A fingerprint in more passages than this does not show where a line comes from.
pub const MOST_HOLDERS: usize = 256;

/// Sessions of calls by file and place.
pub type PlacedCalls = BTreeMap<(FileId, u64), SessionId>;

/// Fingerprints and the passages that contain them.
#[derive(Debug, Default)]
pub struct FingerprintHits {
    pub places: Vec<FingerprintPlace>,
    /// Indices of `places` by fingerprint; only a count for a fingerprint in too many passages.
    pub holders: HashMap<FingerprintTerm, Holders>,
}

#[derive(Debug, Default, Clone)]
pub struct Holders {
    pub count: usize,
    pub places: Vec<u32>,
}

/// A copy of a file, kept by a client.
#[derive(Debug, Clone)]
pub struct KeptCopy {
    pub source: String,
    pub instance: InstanceId,
    pub path: String,
    pub size: u64,
    pub at: Option<Time>,
}

/// What a passage belongs to: a call by its place in a file, or a whole file if there is no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FingerprintPlace {
    pub session: SessionId,
    pub file: FileId,
    pub offset: u64,
    /// Lines that were read, not written, unless the client's record of an edit says otherwise.
    pub result: bool,
    pub minutes: i64,
}

/// A file that calls read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    pub path: String,
    /// The directory of a session that contains it.
    pub folder: String,
    /// When it was last touched; 0 if no call has a time.
    pub at: i64,
    pub edits: i64,
    pub calls: i64,
    pub sessions: i64,
}

/// What calls of one assistant did in a folder or a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceWork {
    /// The next part of the path; the whole path of the directory of a session if no folder was given.
    pub name: String,
    pub is_file: bool,
    pub source: String,
    /// When it was last touched; 0 if no call has a time.
    pub at: i64,
    pub edits: i64,
    pub calls: i64,
    pub sessions: i64,
    /// Lines that edits wrote, and those that they replaced, as far as their numbers are known.
    pub written: i64,
    pub replaced: i64,
}

/// Which work on files counts.
#[derive(Debug, Clone, Default)]
pub struct WorkFilter {
    pub source: Option<String>,
    pub since: Option<Time>,
    pub until: Option<Time>,
}

impl Archive<'_> {
    /// Finds the passages that contain these fingerprints, which must be sorted and distinct.
    pub fn fingerprint_hits(&self, sorted: &[FingerprintTerm]) -> Result<FingerprintHits> {
        let (index, visible) = (self.store(), self.visible_files()?);
        let epochs = index.search_epochs()?;
        let mut hits = FingerprintHits::default();
        let mut known: HashMap<FingerprintPlace, u32> = HashMap::new();
        for (segment, _) in index.segments()? {
            let found = index.fingerprints_in(segment, sorted)?;
            let mut passages: Vec<u32> = found.iter().flat_map(|(_, list)| list.iter().copied()).collect();
            passages.sort_unstable();
            passages.dedup();
            if passages.is_empty() {
                continue;
            }
            let mut numbers: HashMap<u32, u32> = HashMap::with_capacity(passages.len());
            let mut statement = index
                .connection
                .prepare_cached(sql!("select table_data from search_segment where id = $1"))?;
            statement.query_row(params![segment], |row| {
                let table = row.get_ref(0)?.as_blob().unwrap_or_default();
                let mut remaining = passages.iter().peekable();
                for (number, doc) in read_docs(table).enumerate() {
                    match remaining.peek() {
                        Some(next) if **next as usize == number => remaining.next(),
                        Some(_) => continue,
                        None => break,
                    };
                    let kind = PassageKind::from_stored(doc.kind);
                    let alive = epochs.get(&doc.file).copied().unwrap_or(0) == doc.epoch;
                    let result = match kind {
                        Some(PassageKind::Call) => false,
                        Some(PassageKind::Result | PassageKind::Output) => true,
                        _ => continue,
                    };
                    let is_visible = visible.as_ref().is_none_or(|files| files.contains(&doc.file));
                    if !alive || !is_visible {
                        continue;
                    }
                    let place = FingerprintPlace {
                        session: doc.session,
                        file: doc.file,
                        offset: doc.offset as u64,
                        result,
                        minutes: doc.minutes,
                    };
                    let next = hits.places.len() as u32;
                    let at = *known.entry(place).or_insert(next);
                    if at == next {
                        hits.places.push(place);
                    }
                    numbers.insert(number as u32, at);
                }
                Ok(())
            })?;
            for (at, list) in found {
                let holders = hits.holders.entry(sorted[at]).or_default();
                for passage in list {
                    let Some(place) = numbers.get(&passage) else { continue };
                    holders.count += 1;
                    if holders.places.len() < MOST_HOLDERS {
                        holders.places.push(*place);
                    }
                }
            }
        }
        for holders in hits.holders.values_mut().filter(|holders| holders.count > MOST_HOLDERS) {
            holders.places.clear();
        }
        Ok(hits)
    }

    /// Calls that touched a file, by its full path, ordered by time: session, file and place.
    pub fn calls_on_file(&self, path: &str, most: i64) -> Result<Vec<(SessionId, FileId, u64)>> {
        let mut statement = self.prepare(sql!(
            "select touch.session, touch.file, touch.byte_offset, max(tool_call.at) as at
                 from file_touch touch join name on name.id = touch.path
                 join tool_call on tool_call.session = touch.session and tool_call.file = touch.file
                      and tool_call.byte_offset = touch.byte_offset
                 join session on session.id = touch.session join instance on instance.id = session.instance
                 where name.text = $1 and {visible}
                 group by touch.session, touch.file, touch.byte_offset
                 order by at desc, touch.file desc, touch.byte_offset desc limit $2"
        ))?;
        let rows = statement.query_map(params![path, most], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u64))
        })?;
        let mut calls: Vec<(SessionId, FileId, u64)> = rows.collect::<rusqlite::Result<_>>()?;
        calls.reverse();
        Ok(calls)
    }

    /// Lines that edits wrote, as far as their numbers are known: by day and model.
    pub fn lines_written(&self) -> Result<Vec<(i64, Option<String>, i64)>> {
        let mut statement = self.prepare(sql!(
            "select tool_call.at / 86400000000 as day, model.text,
                    sum(touch.after_end - touch.after_start + 1)
                 from file_touch touch
                 join tool_call on tool_call.session = touch.session and tool_call.file = touch.file
                      and tool_call.byte_offset = touch.byte_offset
                 join session on session.id = touch.session join instance on instance.id = session.instance
                 left join name model on model.id = tool_call.model
                 where touch.operation <> $1 and touch.after_end >= touch.after_start and tool_call.at is not null
                   and tool_call.copied = 0 and coalesce(tool_call.ok, 1) = 1 and {visible}
                 group by tool_call.at / 86400000000, model.text order by day, model.text"
        ))?;
        let read = annals_core::Operation::Read.stored();
        let rows = statement.query_map([read], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// A session and its sub-agents, by the session's id, and whether each touched a file with this end of a path.
    pub fn sessions_on_file(&self, session: &str, path_end: &str) -> Result<Vec<(String, bool)>> {
        let mut statement = self.prepare(sql!(
            "select session.key,
                    exists (select 1 from file_touch touch join name on name.id = touch.path
                            where touch.session = session.id
                              and (name.text = $2
                                   or substr(name.text, length(name.text) - length($2)) = '/' || $2))
                 from session join instance on instance.id = session.instance
                 where (session.key = $1 or session.parent = $1) and {visible}"
        ))?;
        let rows = statement.query_map(params![session, path_end], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Files below the directory of their session that calls touched, the latest first. Only those after a time and a
    /// path, and with paths that end like this.
    pub fn touched_files(
        &self,
        path_end: &str,
        after: Option<(i64, &str)>,
        most: i64,
    ) -> Result<Vec<TouchedFile>> {
        let mut statement = self.prepare(sql!(
            "select touched.path, touched.folder, touched.at, touched.edits, touched.calls, touched.sessions
                 from (select name.text as path, min(session.cwd) as folder, coalesce(max(tool_call.at), 0) as at,
                              sum(case when touch.operation <> $5 then 1 else 0 end) as edits,
                              count(*) as calls, count(distinct session.id) as sessions
                       from file_touch touch join name on name.id = touch.path
                       join tool_call on tool_call.session = touch.session and tool_call.file = touch.file
                            and tool_call.byte_offset = touch.byte_offset
                       join session on session.id = touch.session
                       join instance on instance.id = session.instance
                       where tool_call.copied = 0 and coalesce(tool_call.ok, 1) = 1 and rtrim(session.cwd, '/') <> ''
                         and substr(name.text, 1, length(rtrim(session.cwd, '/')) + 1) = rtrim(session.cwd, '/') || '/'
                         and substr(name.text, length(name.text) - length($1) + 1) = $1 and {visible}
                       group by name.text) touched
                 where $3 is null or touched.at < $2 or touched.at = $2 and touched.path > $3
                 order by touched.at desc, touched.path limit $4"
        ))?;
        let (at, path) = after.map_or((0, None), |(at, path)| (at, Some(path)));
        let read = annals_core::Operation::Read.stored();
        let rows = statement.query_map(params![path_end, at, path, most, read], |row| {
            Ok(TouchedFile {
                path: row.get(0)?,
                folder: row.get(1)?,
                at: row.get(2)?,
                edits: row.get(3)?,
                calls: row.get(4)?,
                sessions: row.get(5)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// What calls did below a folder, by the next part of the path and by assistant; the directories of sessions if no
    /// folder is given. Like `touched_files`, only files below the directory of their session.
    pub fn work_below(&self, folder: Option<&str>, filter: &WorkFilter) -> Result<Vec<PlaceWork>> {
        let prefix = folder.map(|folder| format!("{}/", folder.trim_end_matches('/')));
        // The slash is followed by the zero.
        let end = prefix.as_deref().map(|prefix| format!("{}0", prefix.trim_end_matches('/')));
        let mut statement = self.prepare(sql!(
            "select work.place, work.is_file, work.source, coalesce(max(work.at), 0), sum(work.edit), count(*),
                    count(distinct work.session), cast(sum(work.written) as bigint),
                    cast(sum(work.replaced) as bigint)
                 from (select case when $1 is null then rtrim(session.cwd, '/')
                                   when instr(substr(name.text, length($1) + 1), '/') = 0
                                   then substr(name.text, length($1) + 1)
                                   else substr(name.text, length($1) + 1,
                                               instr(substr(name.text, length($1) + 1), '/') - 1) end as place,
                              case when $1 is not null and instr(substr(name.text, length($1) + 1), '/') = 0
                                   then 1 else 0 end as is_file,
                              instance.source as source, tool_call.at as at, session.id as session,
                              case when touch.operation <> $3 then 1 else 0 end as edit,
                              case when touch.operation <> $3 and touch.after_end >= touch.after_start
                                   then touch.after_end - touch.after_start + 1 else 0 end as written,
                              case when touch.operation <> $3 and touch.before_end >= touch.before_start
                                   then touch.before_end - touch.before_start + 1 else 0 end as replaced
                       from name join file_touch touch on touch.path = name.id
                       join tool_call on tool_call.session = touch.session and tool_call.file = touch.file
                            and tool_call.byte_offset = touch.byte_offset
                       join session on session.id = touch.session
                       join instance on instance.id = session.instance
                       where ($1 is null or name.text >= $1 and name.text < $2)
                         and ($4 is null or instance.source = $4) and ($5 is null or tool_call.at >= $5)
                         and ($6 is null or tool_call.at < $6)
                         and tool_call.copied = 0 and coalesce(tool_call.ok, 1) = 1 and rtrim(session.cwd, '/') <> ''
                         and substr(name.text, 1, length(rtrim(session.cwd, '/')) + 1) = rtrim(session.cwd, '/') || '/'
                         and {visible}) work
                 group by work.place, work.is_file, work.source order by work.place, work.source"
        ))?;
        let read = annals_core::Operation::Read.stored();
        let (since, until) = (filter.since.map(Time::micros), filter.until.map(Time::micros));
        let rows = statement.query_map(params![prefix, end, read, filter.source, since, until], |row| {
            Ok(PlaceWork {
                name: row.get(0)?,
                is_file: row.get(1)?,
                source: row.get(2)?,
                at: row.get(3)?,
                edits: row.get(4)?,
                calls: row.get(5)?,
                sessions: row.get(6)?,
                written: row.get(7)?,
                replaced: row.get(8)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls that touched files with these names, in any directory: file and place, with the session.
    pub fn calls_by_file_name(&self, names: &HashSet<String>) -> Result<HashMap<String, PlacedCalls>> {
        let mut calls: HashMap<String, PlacedCalls> = HashMap::new();
        let mut of_path: HashMap<i64, &String> = HashMap::new();
        let (archive, visible) = (self.store(), self.visible_files()?);
        let mut statement = archive.connection.prepare_cached(sql!("select id, text from name"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let last = row.get_ref(1)?.as_str().unwrap_or_default().rsplit(['/', '\\']).next();
            if let Some(name) = last.and_then(|last| names.get(last)) {
                of_path.insert(row.get(0)?, name);
            }
        }
        if of_path.is_empty() {
            return Ok(calls);
        }
        let mut statement = archive
            .connection
            .prepare_cached(sql!("select path, file, byte_offset, session from file_touch"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let file: FileId = row.get(1)?;
            let is_visible = visible.as_ref().is_none_or(|files| files.contains(&file));
            if let Some(name) = of_path.get(&row.get(0)?).filter(|_| is_visible) {
                let call = (file, row.get::<_, i64>(2)? as u64);
                calls.entry((*name).clone()).or_default().insert(call, row.get(3)?);
            }
        }
        Ok(calls)
    }

    /// Calls of one kind in a session, in order: file and place.
    pub fn calls_of_kind(&self, session: SessionId, kind: CallKind) -> Result<Vec<(FileId, u64)>> {
        let mut statement = self.prepare(sql!(
            "select file, byte_offset from tool_call where session = $1 and kind = $2 and {visible_session} order by file, byte_offset"
        ))?;
        let rows = statement.query_map(params![session, kind.stored()], |row| {
            Ok((row.get(0)?, row.get::<_, i64>(1)? as u64))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Describes a file of the archive that is a copy kept by a client.
    pub fn kept_copy(&self, file: FileId) -> Result<Option<KeptCopy>> {
        let mut statement = self.prepare(sql!(
            "select instance.source, instance.id, file.path, file.content_size, file.modified
                 from file join instance on instance.id = file.instance where file.id = $1 and {visible}"
        ))?;
        let found = statement.query_row(params![file], |row| {
            Ok(KeptCopy {
                source: row.get(0)?,
                instance: row.get(1)?,
                path: row.get(2)?,
                size: row.get::<_, i64>(3)? as u64,
                at: crate::read::time(row, 4)?,
            })
        });
        Ok(found.optional()?)
    }

    /// Finds the row of a session by its id in a home.
    pub fn session_in(&self, instance: InstanceId, key: &str) -> Result<Option<SessionId>> {
        let mut statement = self.prepare(sql!(
            "select id from session where instance = $1 and key = $2 and {visible_instance}"
        ))?;
        Ok(statement.query_row(params![instance, key], |row| row.get(0)).optional()?)
    }

    /// The source of a session and its working directory.
    pub fn session_home(&self, session: SessionId) -> Result<Option<(String, Option<String>)>> {
        let mut statement = self.prepare(sql!(
            "select instance.source, session.cwd from session join instance on instance.id = session.instance
                 where session.id = $1 and {visible}"
        ))?;
        Ok(statement.query_row(params![session], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    pub fn session_title(&self, session: SessionId) -> Result<Option<Raw>> {
        let mut statement = self.prepare(sql!(
            "select session.title from session join instance on instance.id = session.instance
                 where session.id = $1 and {visible}"
        ))?;
        Ok(statement.query_row(params![session], |row| optional_raw(row, 0)).optional()?.flatten())
    }

    /// The last prompt before a place, written by the user or by whoever started a sub-agent.
    pub fn prompt_before(&self, session: SessionId, file: FileId, offset: u64) -> Result<Option<MessageRow>> {
        let text = format!(
            "{MESSAGES} where message.session = ?1 and message.file = ?2 and message.byte_offset < ?3
             and message.kind in (?4, ?5) and message.role = 0 and {{visible}} order by message.byte_offset desc limit 1"
        );
        let mut statement = self.prepare(&text)?;
        let (prompt, agent) = (MessageKind::Prompt.stored(), MessageKind::Agent.stored());
        let row = statement.query_row(params![session, file, offset as i64, prompt, agent], message_row);
        Ok(row.optional()?)
    }

    /// Bytes of fingerprints in the index, for all homes. A block that also contains words counts by its first term.
    pub fn fingerprint_size(&self) -> Result<i64> {
        let mut statement = self.store().connection.prepare_cached(sql!(
            "select cast(coalesce(sum(length(data)), 0) as bigint) from search_block
             where first_term >= $1 and first_term < $2"
        ))?;
        let (from, until) = ([LINE_MARK], [GRAM_MARK + 1]);
        Ok(statement.query_row(params![&from[..], &until[..]], |row| row.get(0))?)
    }
}

/// The index is shared by all homes.
impl Store {
    /// The fingerprints that a segment contains with their passages, by their index in `sorted`. Terms of a segment are
    /// sorted as well, so each block is read at most once and blocks between two fingerprints are skipped.
    fn fingerprints_in(&self, segment: i64, sorted: &[FingerprintTerm]) -> Result<Vec<(usize, Vec<u32>)>> {
        let mut found = Vec::new();
        let mut statement = self.connection.prepare_cached(sql!(
            "select id, first_term from search_block where segment = $1 and first_term < $3
             and first_term >= coalesce((select max(first_term) from search_block
                                         where segment = $1 and first_term <= $2), $2)
             order by first_term"
        ))?;
        let (from, until) = ([LINE_MARK], [GRAM_MARK + 1]);
        let rows = statement.query_map(params![segment, &from[..], &until[..]], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?))
        })?;
        let blocks: Vec<(i64, Vec<u8>)> = rows.collect::<rusqlite::Result<_>>()?;
        let mut at = 0;
        for (number, (block, _)) in blocks.iter().enumerate() {
            let next = blocks.get(number + 1).map(|(_, first)| first.as_slice());
            let before_next = |term: &FingerprintTerm| next.is_none_or(|next| &term[..] < next);
            if at >= sorted.len() {
                break;
            }
            if !before_next(&sorted[at]) {
                continue;
            }
            let mut statement =
                self.connection.prepare_cached(sql!("select data from search_block where id = $1"))?;
            statement.query_row(params![block], |row| {
                let mut reader = BlockReader::new(row.get_ref(0)?.as_blob().unwrap_or_default());
                while reader.advance() {
                    while at < sorted.len() && &sorted[at][..] < reader.term() {
                        at += 1;
                    }
                    if at >= sorted.len() {
                        break;
                    }
                    if &sorted[at][..] == reader.term() {
                        let mut passages = Vec::new();
                        reader.passages(&mut passages);
                        found.push((at, passages));
                    }
                }
                Ok(())
            })?;
            while at < sorted.len() && before_next(&sorted[at]) {
                at += 1;
            }
        }
        Ok(found)
    }
}
