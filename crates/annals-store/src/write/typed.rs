//! Prompts that only a client's history file has: shown in their session, unless a transcript has them.
//!
//! Whether an entry is shown depends on what the archive holds, not on the order in which it arrived: whatever may
//! change the decision clears `checked`, and `resolve_typed` decides again.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};

use super::Writer;
use crate::error::Result;
use crate::sql;
use annals_core::{
    ContentKey, FileId, InstanceId, Message, MessageKind, Role, SessionFacts, SessionId, Span, Tally, Time,
    TypedPrompt,
};

/// The same prompt appears in both files within this time, as some histories have whole seconds. In microseconds.
const CLOSE: i64 = 2_000_000;
/// A session may have been open this long before its first row and after its last. In microseconds.
const AROUND: i64 = 60_000_000;
/// The number of entries per batch.
const CHUNK: i64 = 2_000;
/// Facts from a history file have the lowest rank.
const HISTORY_RANK: i64 = -1;

/// An entry whose session is not decided yet.
struct UndecidedEntry {
    file: FileId,
    instance: InstanceId,
    session: Option<SessionId>,
    prompt: TypedPrompt,
}

/// Sessions of a home with a transcript, by directory: start, end and id.
type ByFolder = HashMap<String, Vec<(i64, i64, Arc<str>)>>;

impl Writer<'_> {
    pub(crate) fn write_typed_prompt(
        &mut self,
        instance: InstanceId,
        file: FileId,
        prompt: &TypedPrompt,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into typed_prompt (file, byte_offset, length, instance, session_key, project, at, kind, words, title,
                                       checked)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0)"
        ))?;
        statement.execute(params![
            file,
            prompt.span.offset as i64,
            prompt.span.length as i64,
            instance,
            prompt.session.as_deref(),
            prompt.project,
            prompt.at.micros(),
            prompt.kind.stored(),
            prompt.words.stored(),
            prompt.title,
        ])?;
        drop(statement);
        match (&prompt.session, prompt.kind) {
            (Some(session), MessageKind::Prompt) => self.recheck_commands(instance, session),
            _ => Ok(()),
        }
    }

    pub(crate) fn write_spoken(
        &mut self,
        instance: InstanceId,
        file: FileId,
        session: &Arc<str>,
        offset: u64,
        words: ContentKey,
    ) -> Result<()> {
        let session = self.session_id(instance, session)?;
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into spoken (session, file, byte_offset, instance, at, words)
             select session, file, byte_offset, $4, coalesce(at, 0), $5 from message
             where session = $1 and file = $2 and byte_offset = $3
             on conflict (session, file, byte_offset) do update set words = excluded.words
             returning at"
        ))?;
        let row = params![session, file, offset as i64, instance, words.stored()];
        let at: Option<i64> = statement.query_row(row, |row| row.get(0)).optional()?;
        drop(statement);
        match at {
            Some(at) => self.recheck(session, instance, at, words.stored()),
            None => Ok(()),
        }
    }

    /// Removes the entries of a file, and what may have hidden entries of others.
    pub(crate) fn forget_typed(&mut self, session: SessionId, file: FileId) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "delete from spoken where session = $1 and file = $2 returning instance, at, words"
        ))?;
        let spoken: Vec<(InstanceId, i64, i64)> = statement
            .query_map(params![session, file], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for (instance, at, words) in spoken {
            self.recheck(session, instance, at, words)?;
        }
        Ok(())
    }

    /// Decides again about every entry that may belong elsewhere now.
    pub(crate) fn resolve_typed(&mut self) -> Result<()> {
        let mut folders: HashMap<InstanceId, ByFolder> = HashMap::new();
        loop {
            let undecided = self.undecided()?;
            if undecided.is_empty() {
                return Ok(());
            }
            // The decision also depends on times and directories of sessions.
            self.update_sessions()?;
            let mut changed = BTreeSet::new();
            for entry in undecided {
                let owner = self.owner(&entry, &mut folders)?;
                let owner = owner.map(|key| self.session_id(entry.instance, &key)).transpose()?;
                if owner != entry.session {
                    changed.extend([entry.session, owner].into_iter().flatten().map(|row| (row, entry.file)));
                    self.move_entry(&entry, owner)?;
                }
                let mut statement = self.transaction.prepare_cached(sql!(
                    "update typed_prompt set session = $3, checked = 1 where file = $1 and byte_offset = $2"
                ))?;
                statement.execute(params![entry.file, entry.prompt.span.offset as i64, owner])?;
            }
            for (session, file) in changed {
                self.describe(session, file)?;
            }
            self.update_sessions()?;
        }
    }

    /// Rechecks entries after a session with a transcript changed: commands that name it, and entries that name none.
    pub(crate) fn recheck_typed(&self, session: SessionId, facts: &SessionFacts) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update typed_prompt set checked = 0
             from session where session.id = $1 and typed_prompt.instance = session.instance
             and session_key = session.key and typed_prompt.kind = $2 and typed_prompt.session is null and checked"
        ))?;
        statement.execute(params![session, MessageKind::Command.stored()])?;
        drop(statement);
        let (Some(folder), Some(start), Some(end)) = (&facts.cwd, facts.started_at, facts.last_at) else {
            return Ok(());
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "update typed_prompt set checked = 0
             where instance = (select instance from session where id = $1)
             and at between $3 and $4 and session_key is null and project = $2 and session is not $1 and checked"
        ))?;
        let (start, end) = (start.micros().saturating_sub(AROUND), end.micros().saturating_add(AROUND));
        statement.execute(params![session, folder, start, end])?;
        Ok(())
    }

    fn recheck(&self, session: SessionId, instance: InstanceId, at: i64, words: i64) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update typed_prompt set checked = 0 where instance = $1 and at between $2 and $3 and checked"
        ))?;
        statement.execute(params![instance, at.saturating_sub(CLOSE), at.saturating_add(CLOSE)])?;
        drop(statement);
        let mut statement = self.transaction.prepare_cached(sql!(
            "update typed_prompt set checked = 0
             where instance = $1 and session_key = (select key from session where id = $2)
             and words = $3 and checked"
        ))?;
        statement.execute(params![instance, session, words])?;
        if at == 0 {
            drop(statement);
            let mut statement = self.transaction.prepare_cached(sql!(
                "update typed_prompt set checked = 0
                 where instance = $1 and session_key is null and words = $2 and checked"
            ))?;
            statement.execute(params![instance, words])?;
        }
        Ok(())
    }

    /// Rechecks commands of a session that is now known.
    pub(crate) fn recheck_commands(&self, instance: InstanceId, session: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update typed_prompt set checked = 0
             where instance = $1 and session_key = $2 and kind = $3 and session is null and checked"
        ))?;
        statement.execute(params![instance, session, MessageKind::Command.stored()])?;
        Ok(())
    }

    fn undecided(&self) -> Result<Vec<UndecidedEntry>> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select file, byte_offset, length, instance, session_key, project, at, kind, words, title, session
             from typed_prompt where checked = 0 order by file, byte_offset limit $1"
        ))?;
        let rows = statement.query_map(params![CHUNK], |row| {
            let length = row.get::<_, i64>(2)? as u64;
            Ok(UndecidedEntry {
                file: row.get(0)?,
                instance: row.get(3)?,
                session: row.get(10)?,
                prompt: TypedPrompt {
                    span: Span { offset: row.get::<_, i64>(1)? as u64, length },
                    session: row.get::<_, Option<String>>(4)?.map(Into::into),
                    project: row.get(5)?,
                    at: Time::from_micros(row.get(6)?),
                    kind: MessageKind::from_stored(row.get(7)?),
                    words: ContentKey::from_stored(row.get(8)?),
                    title: row.get(9)?,
                },
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The id of the session that shows an entry; `None` if a transcript does, or if it is a command without a session.
    fn owner(
        &self,
        entry: &UndecidedEntry,
        folders: &mut HashMap<InstanceId, ByFolder>,
    ) -> Result<Option<Arc<str>>> {
        if self.is_spoken(entry)? {
            return Ok(None);
        }
        let is_prompt = entry.prompt.kind == MessageKind::Prompt;
        if let Some(session) = &entry.prompt.session {
            let shown = is_prompt || self.is_known(entry.instance, session)?;
            return Ok(shown.then(|| Arc::clone(session)));
        }
        let day = entry.prompt.at.date();
        let Some(project) = &entry.prompt.project else {
            return Ok(is_prompt.then(|| format!("history-{day}").into()));
        };
        let folders = match folders.entry(entry.instance) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(self.sessions_by_folder(entry.instance)?),
        };
        let at = entry.prompt.at.micros();
        let within = |(start, end, _): &&(i64, i64, Arc<str>)| {
            (start.saturating_sub(AROUND)..=end.saturating_add(AROUND)).contains(&at)
        };
        if let Some((.., session)) = folders.get(project).into_iter().flatten().filter(within).max() {
            return Ok(Some(Arc::clone(session)));
        }
        let folder = ContentKey::of(&[project.as_bytes()]).hex();
        Ok(is_prompt.then(|| format!("history-{day}-{}", &folder[..8]).into()))
    }

    fn is_spoken(&self, entry: &UndecidedEntry) -> Result<bool> {
        let at = entry.prompt.at.micros();
        let early = at.saturating_sub(CLOSE);
        let mut statement = self.transaction.prepare_cached(sql!(
            "select exists (select 1 from spoken where instance = $1 and at between $2 and $3)"
        ))?;
        let at_once = params![entry.instance, early, at.saturating_add(CLOSE)];
        if statement.query_row(at_once, |row| row.get(0))? {
            return Ok(true);
        }
        drop(statement);
        if entry.prompt.session.is_none() {
            // The first clients wrote no times in transcripts.
            let mut statement = self.transaction.prepare_cached(sql!(
                "select exists (select 1 from spoken where instance = $1 and at = 0 and words = $2)"
            ))?;
            return Ok(statement
                .query_row(params![entry.instance, entry.prompt.words.stored()], |row| row.get(0))?);
        }
        // Prompts typed while the assistant is busy are sent later.
        let mut statement = self.transaction.prepare_cached(sql!(
            "select exists (select 1 from session join spoken on spoken.session = session.id
                            where session.instance = $1 and session.key = $2 and spoken.words = $3
                            and spoken.at >= $4)"
        ))?;
        let later =
            params![entry.instance, entry.prompt.session.as_deref(), entry.prompt.words.stored(), early];
        Ok(statement.query_row(later, |row| row.get(0))?)
    }

    /// Whether a session has a transcript, or a prompt in the history.
    fn is_known(&self, instance: InstanceId, session: &str) -> Result<bool> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select exists (select 1 from session join session_part part on part.session = session.id
                            where session.instance = $1 and session.key = $2 and part.rank >= 0)
                 or exists (select 1 from typed_prompt where instance = $1 and session_key = $2 and kind = $3)"
        ))?;
        let known = params![instance, session, MessageKind::Prompt.stored()];
        Ok(statement.query_row(known, |row| row.get(0))?)
    }

    fn sessions_by_folder(&self, instance: InstanceId) -> Result<ByFolder> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select cwd, started_at, last_at, key from session
             where instance = $1 and cwd is not null and started_at is not null and last_at is not null
             and exists (select 1 from session_part part where part.session = session.id and part.rank = 0)"
        ))?;
        let rows = statement.query_map(params![instance], |row| {
            Ok((row.get::<_, String>(0)?, (row.get(1)?, row.get(2)?, row.get::<_, String>(3)?.into())))
        })?;
        let mut folders = ByFolder::new();
        for row in rows {
            let (folder, session) = row?;
            folders.entry(folder).or_default().push(session);
        }
        Ok(folders)
    }

    fn move_entry(&mut self, entry: &UndecidedEntry, owner: Option<SessionId>) -> Result<()> {
        let prompt = &entry.prompt;
        if let Some(before) = entry.session {
            self.forget_row("message", before, entry.file, prompt.span.offset as i64)?;
        }
        let Some(owner) = owner else { return Ok(()) };
        let of = prompt.session.as_deref().or(prompt.project.as_deref()).unwrap_or_default();
        let (at, words) = (prompt.at.micros().to_le_bytes(), prompt.words.stored().to_le_bytes());
        let message = Message {
            session: of.into(),
            span: prompt.span,
            role: Role::User,
            kind: prompt.kind,
            at: Some(prompt.at),
            key: ContentKey::of(&[b"typed", of.as_bytes(), &at, &words]),
            inherited: true,
            model: None,
            tally: Tally::of(prompt.kind),
        };
        self.write_message_of(owner, entry.file, &message)
    }

    /// Writes the facts that a history file has about a session, from its entries; removes them if it has none.
    fn describe(&mut self, session: SessionId, file: FileId) -> Result<()> {
        self.touched.insert(session);
        let mut statement = self.transaction.prepare_cached(sql!(
            "select min(at), max(at), max(project),
                    (select title from typed_prompt first where first.session = $1 and first.file = $2
                     order by first.kind, first.at, first.byte_offset limit 1)
             from typed_prompt where session = $1 and file = $2 having count(*) > 0"
        ))?;
        let found = statement
            .query_row(params![session, file], |row| {
                let times = [row.get(0)?, row.get(1)?].map(Time::from_micros);
                Ok((times, row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?))
            })
            .optional()?;
        drop(statement);
        let Some(([first, last], cwd, first_prompt)) = found else {
            let mut statement = self
                .transaction
                .prepare_cached(sql!("delete from session_part where session = $1 and file = $2"))?;
            statement.execute(params![session, file])?;
            return Ok(());
        };
        let facts = SessionFacts {
            cwd,
            first_prompt,
            started_at: Some(first),
            first_message_at: Some(first),
            last_at: Some(last),
            ..SessionFacts::default()
        };
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into session_part (session, file, rank, facts) values ($1, $2, $3, $4)
             on conflict (session, file) do update set facts = excluded.facts"
        ))?;
        statement.execute(params![session, file, HISTORY_RANK, serde_json::to_string(&facts)?])?;
        Ok(())
    }
}
