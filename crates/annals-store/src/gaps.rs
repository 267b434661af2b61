//! Gaps: what could not be fetched, when it is retried, by which run, and the cursor that moves past it.

use rusqlite::{OptionalExtension, Row, params};

use crate::error::Result;
use crate::read::{raw, time};
use crate::write::Writer;
use crate::{Archive, Store, sql};
use annals_core::{Attempts, FailureKind, GapStream, InstanceId, Raw, RetryStep, Time, next_step, urgency};

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'f> {
    pub instance: InstanceId,
    pub stream: GapStream<'f>,
    pub key: &'f str,
    /// How to request it directly, in a form that its connector understands. Never a secret.
    pub locator: &'f str,
    pub why: FailureKind,
    /// What happened, as text.
    pub reason: &'f str,
    /// The version of the connector or reader that failed.
    pub version: &'f str,
}

/// A gap that is due for a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueGap {
    pub id: i64,
    pub stream: String,
    pub key: String,
    pub locator: String,
    pub why: FailureKind,
    pub attempts: u32,
}

/// Who claims gaps, and until when. The claims of a dead holder end then, or when the next run of the instance
/// starts.
#[derive(Debug, Clone, Copy)]
pub struct Lease<'l> {
    pub holder: &'l str,
    pub until: Time,
}

/// A gap in a list.
#[derive(Debug, Clone)]
pub struct GapRow {
    pub id: i64,
    pub source: String,
    pub stream: String,
    pub key: Raw,
    pub why: String,
    pub reason: Raw,
    pub status: String,
    pub ended: Option<String>,
    pub attempts: i64,
    pub first_seen: Time,
    pub last_tried: Time,
    pub next_try: Option<Time>,
    pub leased_until: Option<Time>,
}

/// Which gaps to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct GapFilter<'f> {
    pub source: Option<&'f str>,
    /// Any of these; all if empty.
    pub statuses: &'f [&'f str],
}

impl Archive<'_> {
    /// Lists gaps after an id, in the order in which they were opened.
    pub fn gaps(&self, filter: &GapFilter<'_>, after: i64, limit: i64, now: Time) -> Result<Vec<GapRow>> {
        let mut statement = self.prepare(sql!(
            "select gap.id, instance.source, stream, gap.key, gap.why, gap.reason,
                    case when gap.status = 'in_progress' and leased_until <= $5 then 'pending' else gap.status end,
                    ended, attempts, gap.first_seen, last_tried, next_try, leased_until
             from gap join instance on instance.id = gap.instance
             where ($1 is null or instance.source = $1)
             and ($2 = '' or $2 like '% ' || case when gap.status = 'in_progress' and leased_until <= $5
                                             then 'pending' else gap.status end || ' %')
             and gap.id > $3 and {visible} order by gap.id limit $4"
        ))?;
        let statuses: String = filter.statuses.iter().map(|status| format!(" {status} ")).collect();
        let rows =
            statement.query_map(params![filter.source, statuses, after, limit, now.micros()], |row| {
                Ok(GapRow {
                    id: row.get(0)?,
                    source: row.get(1)?,
                    stream: row.get(2)?,
                    key: raw(row, 3)?,
                    why: row.get(4)?,
                    reason: raw(row, 5)?,
                    status: row.get(6)?,
                    ended: row.get(7)?,
                    attempts: row.get(8)?,
                    first_seen: Time::from_micros(row.get(9)?),
                    last_tried: Time::from_micros(row.get(10)?),
                    next_try: time(row, 11)?,
                    leased_until: time(row, 12)?,
                })
            })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

impl Store {
    /// Keys of open gaps of a stream, for the collector of a home.
    pub fn open_gaps(&self, instance: InstanceId, stream: GapStream<'_>) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached(sql!(
            "select key from gap where instance = $1 and stream = $2 and status in ('pending', 'in_progress')
             order by key"
        ))?;
        let keys = statement.query_map(params![instance, stream.name()], |row| row.get(0))?;
        Ok(keys.collect::<rusqlite::Result<_>>()?)
    }
}

impl Writer<'_> {
    /// Records a failed attempt: opens a gap or counts the attempt, and returns what happens next.
    pub fn fail(&mut self, failure: &Failure<'_>, now: Time) -> Result<RetryStep> {
        self.open_or_count(failure, 1, now)
    }

    /// Something is known to be missing and was not tried yet: opens a gap without tries.
    pub fn postpone(&mut self, failure: &Failure<'_>, now: Time) -> Result<RetryStep> {
        self.open_or_count(failure, 0, now)
    }

    fn open_or_count(&mut self, failure: &Failure<'_>, tries: u32, now: Time) -> Result<RetryStep> {
        let Failure { instance, stream, key, locator, why, reason, version } = *failure;
        let mut statement = self.transaction.prepare_cached(sql!(
            "select attempts, refusals from gap
             where instance = $1 and stream = $2 and key = $3 and status <> 'recovered'"
        ))?;
        let before: Option<(u32, u32)> = statement
            .query_row(params![instance, stream.name(), key], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        drop(statement);
        let (attempts, refusals) = before.unwrap_or_default();
        let attempts = attempts.saturating_add(tries);
        let refusals = refusals.saturating_add(if why.is_transient() { 0 } else { tries });
        let history = Attempts { why, attempts, refusals, failed_with: version, running: version };
        let step = next_step(history, now);
        let (status, next_try, ended) = match step {
            RetryStep::EachRun => ("pending", None, None),
            RetryStep::NotBefore(time) => ("pending", Some(time.micros()), None),
            RetryStep::GivenUp(end) => ("terminal", None, Some(end.name())),
        };
        // It was recovered and fails again: age and attempts start over.
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into gap (instance, stream, key, locator, why, reason, attempts, refusals, version, status,
                              next_try, ended, first_seen, last_tried)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)
             on conflict (instance, stream, key) do update
             set locator = excluded.locator, why = excluded.why, reason = excluded.reason,
                 attempts = excluded.attempts, refusals = excluded.refusals, version = excluded.version,
                 first_seen = case when gap.status = 'recovered' then excluded.first_seen else gap.first_seen end,
                 status = excluded.status, next_try = excluded.next_try, ended = excluded.ended,
                 last_tried = excluded.last_tried, leased_to = null, leased_until = null"
        ))?;
        statement.execute(params![
            instance,
            stream.name(),
            key,
            locator,
            why.name(),
            reason,
            attempts,
            refusals,
            version,
            status,
            next_try,
            ended,
            now.micros()
        ])?;
        Ok(step)
    }

    /// Opens a gap for an unreadable file, folder or database. The next run retries it, whatever its version.
    pub fn open_gap(
        &mut self,
        instance: InstanceId,
        stream: GapStream<'_>,
        path: &str,
        (why, reason): (FailureKind, &str),
        now: Time,
    ) -> Result<()> {
        let failure = Failure { instance, stream, key: path, locator: path, why, reason, version: "" };
        self.fail(&failure, now).map(|_| ())
    }

    /// Closes a gap, whoever recovered it. Returns whether there was one.
    pub fn close_gap(
        &mut self,
        instance: InstanceId,
        stream: GapStream<'_>,
        key: &str,
        now: Time,
    ) -> Result<bool> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update gap set status = 'recovered', last_tried = $4, next_try = null, ended = null, leased_to = null,
                            leased_until = null
             where instance = $1 and stream = $2 and key = $3 and status <> 'recovered'"
        ))?;
        Ok(statement.execute(params![instance, stream.name(), key, now.micros()])? > 0)
    }

    /// Moves a cursor past a failure and records its gap: both or neither. There is no other way for a cursor to pass
    /// something that was not fetched.
    pub fn pass(
        &mut self,
        instance: InstanceId,
        cursor: (&str, &str),
        failures: &[Failure<'_>],
        now: Time,
    ) -> Result<()> {
        for failure in failures {
            self.fail(failure, now)?;
        }
        self.set_cursor(instance, cursor.0, cursor.1)
    }

    /// Claims due gaps, the most urgent first, until the lease ends.
    pub fn claim_gaps(
        &mut self,
        instance: InstanceId,
        lease: Lease<'_>,
        limit: usize,
        now: Time,
    ) -> Result<Vec<DueGap>> {
        let mut statement = self.transaction.prepare_cached(DUE)?;
        let mut gaps = due_gaps(&mut statement, instance, now)?;
        drop(statement);
        gaps.truncate(limit);
        for gap in &gaps {
            let mut statement = self.transaction.prepare_cached(sql!(
                "update gap set status = 'in_progress', leased_to = $2, leased_until = $3 where id = $1"
            ))?;
            statement.execute(params![gap.id, lease.holder, lease.until.micros()])?;
        }
        Ok(gaps)
    }

    /// Releases gaps that were claimed but not attempted. Without a holder, releases those of all holders: the caller
    /// has the collector lock, so every other holder is dead.
    pub fn release_gaps(&mut self, instance: InstanceId, holder: Option<&str>) -> Result<usize> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update gap set status = 'pending', leased_to = null, leased_until = null
             where instance = $1 and status = 'in_progress' and ($2 is null or leased_to = $2)"
        ))?;
        Ok(statement.execute(params![instance, holder])?)
    }

    /// Reopens what an older connector or reader gave up, for a newer one. Returns the number of gaps.
    pub fn reopen_gaps(&mut self, instance: InstanceId, running: &str, now: Time) -> Result<usize> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select id, why, attempts, refusals, version from gap where instance = $1 and status = 'terminal'"
        ))?;
        let rows = statement.query_map(params![instance], |row| {
            let version: String = row.get(4)?;
            let (why, attempts, refusals) = (why(row, 1)?, row.get(2)?, row.get(3)?);
            let history = Attempts { why, attempts, refusals, failed_with: &version, running };
            Ok((row.get(0)?, next_step(history, now)))
        })?;
        let gaps: Vec<(i64, RetryStep)> = rows.collect::<rusqlite::Result<_>>()?;
        drop(statement);
        let mut reopened = 0;
        for (id, step) in gaps {
            if matches!(step, RetryStep::GivenUp(_)) {
                continue;
            }
            let mut statement = self.transaction.prepare_cached(sql!(
                "update gap set status = 'pending', ended = null, next_try = null where id = $1"
            ))?;
            reopened += statement.execute(params![id])?;
        }
        Ok(reopened)
    }

    /// Makes the next run retry a gap, at the owner's request. Attempts start over if it was given up.
    pub fn retry_gap(&mut self, id: i64) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "update gap set next_try = null, refusals = case when status = 'terminal' then 0 else refusals end,
                            status = 'pending', ended = null, leased_to = null, leased_until = null
             where id = $1 and status <> 'recovered'"
        ))?;
        statement.execute(params![id])?;
        Ok(())
    }
}

/// An attempt in the future was recorded by a wrong clock.
const DUE: &str = sql!(
    "select id, stream, key, locator, why, attempts, first_seen, last_tried from gap
     where instance = $1 and (next_try is null or next_try <= $2 or last_tried > $2)
     and (status = 'pending' or status = 'in_progress' and leased_until <= $2)"
);

fn due_gaps(
    statement: &mut rusqlite::CachedStatement<'_>,
    instance: InstanceId,
    now: Time,
) -> Result<Vec<DueGap>> {
    let rows = statement.query_map(params![instance, now.micros()], |row| {
        let gap = DueGap {
            id: row.get(0)?,
            stream: row.get(1)?,
            key: row.get(2)?,
            locator: row.get(3)?,
            why: why(row, 4)?,
            attempts: row.get(5)?,
        };
        let score = urgency(gap.attempts, Time::from_micros(row.get(6)?), now);
        Ok(((score, row.get::<_, i64>(7)?, gap.id), gap))
    })?;
    let mut gaps: Vec<((i64, i64, i64), DueGap)> = rows.collect::<rusqlite::Result<_>>()?;
    gaps.sort_by_key(|(order, _)| *order);
    Ok(gaps.into_iter().map(|(_, gap)| gap).collect())
}

/// An archive of a newer annals may contain other reasons.
fn why(row: &Row<'_>, column: usize) -> rusqlite::Result<FailureKind> {
    Ok(FailureKind::from_name(&row.get::<_, String>(column)?).unwrap_or(FailureKind::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use annals_core::Scope;

    const MINUTE: i64 = 60_000_000;
    const THINGS: GapStream<'static> = GapStream::Connector("things");

    struct Bench {
        _folder: tempfile::TempDir,
        store: Store,
        instance: InstanceId,
    }

    fn bench() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let instance = store.instance("somewhere", "here", "/", at(0)).unwrap();
        Bench { _folder: folder, store, instance }
    }

    fn at(minutes: i64) -> Time {
        Time::from_micros(1_794_727_723_000_000 + minutes * MINUTE)
    }

    impl Bench {
        fn write<T>(&mut self, work: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> T {
            let mut writer = self.store.writer(at(0)).unwrap();
            let done = work(&mut writer).unwrap();
            writer.commit().unwrap();
            done
        }

        fn fail(&mut self, key: &str, why: FailureKind, minutes: i64) -> RetryStep {
            let failure = failure(self.instance, key, why);
            self.write(|writer| writer.fail(&failure, at(minutes)))
        }

        fn claim(&mut self, holder: &str, limit: usize, minutes: i64) -> Vec<String> {
            let (instance, lease) = (self.instance, Lease { holder, until: at(minutes + 10) });
            let gaps = self.write(|writer| writer.claim_gaps(instance, lease, limit, at(minutes)));
            gaps.into_iter().map(|gap| gap.key).collect()
        }

        fn status(&self, key: &str, minutes: i64) -> String {
            let rows =
                self.store.scoped(Scope::Owner).gaps(&GapFilter::default(), 0, 1_000, at(minutes)).unwrap();
            let keys = self.store.open_gaps(self.instance, THINGS).unwrap();
            let found = rows.into_iter().zip(self.keys()).find(|(_, known)| known == key);
            let status = found.map_or("none".into(), |(row, _)| row.status);
            assert_eq!(keys.contains(&key.to_owned()), ["pending", "in_progress"].contains(&status.as_str()));
            status
        }

        fn keys(&self) -> Vec<String> {
            let mut statement = self.store.connection.prepare("select key from gap order by id").unwrap();
            let keys = statement.query_map([], |row| row.get(0)).unwrap();
            keys.collect::<rusqlite::Result<_>>().unwrap()
        }
    }

    fn failure(instance: InstanceId, key: &str, why: FailureKind) -> Failure<'_> {
        Failure { instance, stream: THINGS, key, locator: "{}", why, reason: "so it was", version: "1" }
    }

    #[test]
    fn due_gaps_with_few_attempts_come_first_then_the_oldest() {
        let mut bench = bench();
        bench.fail("often", FailureKind::SignIn, 0);
        for minutes in 0..6 {
            bench.fail("often", FailureKind::SignIn, minutes);
        }
        bench.fail("young", FailureKind::SignIn, 60);
        bench.fail("old", FailureKind::SignIn, 1);
        bench.fail("later", FailureKind::NotFound, 60);
        assert_eq!(bench.claim("a", 9, 61), ["old", "young", "often"]);
        assert_eq!(bench.claim("b", 9, 62), [""; 0], "all are taken");
        assert_eq!(bench.claim("b", 1, 121), ["old"], "a lease ends by itself");
        assert_eq!(bench.claim("c", 9, 122), ["young", "later", "often"]);
    }

    #[test]
    fn a_clock_that_was_ahead_puts_nothing_off() {
        let mut bench = bench();
        bench.fail("one", FailureKind::RateLimited, 525_600);
        assert_eq!(bench.claim("a", 9, 1), ["one"]);
        bench.fail("one", FailureKind::RateLimited, 2);
        assert_eq!(bench.claim("a", 9, 2), [""; 0]);
    }

    #[test]
    fn leases_end_with_their_holder() {
        let mut bench = bench();
        bench.fail("one", FailureKind::SignIn, 0);
        bench.fail("two", FailureKind::SignIn, 0);
        assert_eq!(bench.claim("a", 1, 1), ["one"]);
        assert_eq!(bench.claim("b", 1, 1), ["two"]);
        assert_eq!(
            (bench.status("one", 1), bench.status("one", 12)),
            ("in_progress".into(), "pending".into())
        );
        let instance = bench.instance;
        assert_eq!(bench.write(|writer| writer.release_gaps(instance, Some("a"))), 1);
        assert_eq!(
            (bench.status("one", 1), bench.status("two", 1)),
            ("pending".into(), "in_progress".into())
        );
        assert_eq!(bench.write(|writer| writer.release_gaps(instance, None)), 1);
        assert_eq!(bench.claim("c", 9, 2), ["one", "two"]);
        // An outcome ends the lease as well.
        bench.fail("one", FailureKind::SignIn, 3);
        assert!(bench.write(|writer| writer.close_gap(instance, THINGS, "two", at(3))));
        assert_eq!((bench.status("one", 3), bench.status("two", 3)), ("pending".into(), "recovered".into()));
        assert!(!bench.write(|writer| writer.close_gap(instance, THINGS, "two", at(4))), "it was closed");
    }

    #[test]
    fn transient_failures_between_refusals_neither_count_nor_reset() {
        let mut bench = bench();
        for why in [
            FailureKind::NotFound,
            FailureKind::RateLimited,
            FailureKind::RateLimited,
            FailureKind::NotFound,
            FailureKind::Pressure,
        ] {
            assert!(!matches!(bench.fail("thing", why, 0), RetryStep::GivenUp(_)), "{why:?}");
        }
        assert!(matches!(bench.fail("thing", FailureKind::NotFound, 0), RetryStep::GivenUp(_)));
        assert_eq!(bench.status("thing", 0), "terminal");
        // A success in between resets attempts.
        let instance = bench.instance;
        bench.write(|writer| writer.close_gap(instance, THINGS, "thing", at(1)));
        assert!(!matches!(bench.fail("thing", FailureKind::NotFound, 2), RetryStep::GivenUp(_)));
        assert_eq!(bench.status("thing", 2), "pending");
    }

    #[test]
    fn a_newer_version_reopens_once_and_the_owner_always() {
        let mut bench = bench();
        for _ in 0..8 {
            bench.fail("odd", FailureKind::Malformed, 0);
            bench.fail("gone", FailureKind::Gone, 0);
        }
        let instance = bench.instance;
        assert_eq!(bench.write(|writer| writer.reopen_gaps(instance, "1", at(1))), 0);
        assert_eq!(bench.write(|writer| writer.reopen_gaps(instance, "2", at(1))), 1);
        assert_eq!(bench.claim("a", 9, 1), ["odd"]);
        let again = Failure { version: "2", ..failure(instance, "odd", FailureKind::Malformed) };
        assert!(matches!(bench.write(|writer| writer.fail(&again, at(2))), RetryStep::GivenUp(_)));
        assert_eq!(bench.write(|writer| writer.reopen_gaps(instance, "2", at(3))), 0);
        let rows = bench.store.scoped(Scope::Owner).gaps(&GapFilter::default(), 0, 9, at(3)).unwrap();
        bench.write(|writer| rows.iter().try_for_each(|row| writer.retry_gap(row.id)));
        assert_eq!(bench.claim("a", 9, 3).len(), 2);
        assert!(!matches!(bench.fail("gone", FailureKind::Gone, 4), RetryStep::GivenUp(_)), "it starts over");
    }

    #[test]
    fn a_cursor_passes_a_failure_with_its_gap_or_not_at_all() {
        let mut bench = bench();
        let instance = bench.instance;
        let cursor = |bench: &Bench| bench.store.cursor(instance, "list").unwrap();
        let failures =
            [failure(instance, "a", FailureKind::RateLimited), failure(instance, "b", FailureKind::Timeout)];
        bench.write(|writer| writer.pass(instance, ("list", "1"), &failures[..1], at(0)));
        assert_eq!((cursor(&bench).as_deref(), bench.keys()), (Some("1"), vec!["a".to_owned()]));
        // Cut off before the commit, as by a kill.
        let mut writer = bench.store.writer(at(1)).unwrap();
        writer.pass(instance, ("list", "2"), &failures, at(1)).unwrap();
        drop(writer);
        assert_eq!((cursor(&bench).as_deref(), bench.keys()), (Some("1"), vec!["a".to_owned()]));
        // A gap that cannot be written keeps the cursor where it is.
        let refuse = "create trigger refuse before insert on gap when new.key = 'b'
                      begin select raise(abort, 'the disk is full'); end";
        bench.store.connection.execute_batch(refuse).unwrap();
        let mut writer = bench.store.writer(at(2)).unwrap();
        assert!(writer.pass(instance, ("list", "2"), &failures, at(2)).is_err());
        writer.commit().unwrap();
        assert_eq!((cursor(&bench).as_deref(), bench.keys()), (Some("1"), vec!["a".to_owned()]));
    }
}
