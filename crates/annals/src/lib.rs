//! annals keeps a person's whole history with AI assistants and lets them search it.

mod cli;
mod collect;
mod config;
mod serve;
mod view;

#[cfg(feature = "test-clock")]
pub use cli::Experiment;
pub use cli::run;
#[cfg(feature = "fuzzing")]
pub use collect::{fuzz_containers, fuzz_elements, fuzz_wire};
#[cfg(feature = "test-clock")]
pub use view::Weights;
#[cfg(feature = "fuzzing")]
pub use view::{fuzz_query, fuzz_record};

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;

    use crate::collect::{Environment, Nobody, SyncOptions, sync};
    use crate::view::{Branch, Door, Paging, SessionQuery, TranscriptQuery, View};
    use annals_core::{Scope, Time};
    use annals_sources::registry;
    use annals_store::{SessionFilter, Store};
    use annals_testkit::sources::Untouched;

    fn now() -> Time {
        Time::from_millis(1_794_744_000_000)
    }

    fn archive(home: &Path) -> Store {
        annals_testkit::corpora::write_long_sessions(&home.join("user")).unwrap();
        archive_of_user(home)
    }

    /// Archives what the folder `user` has.
    fn archive_of_user(home: &Path) -> Store {
        let settings = Untouched(home.join("user"));
        let environment = Environment {
            data_dir: &home.join("archive"),
            machine: "here".into(),
            settings: &settings,
            threads: 1,
            now,
        };
        let options = SyncOptions { sources: registry().to_vec(), ..SyncOptions::default() };
        sync(&options, &environment, &mut Nobody).unwrap();
        Store::open(&home.join("archive")).unwrap()
    }

    /// The statements of a page: its steps, what belongs to them, the lines that name their parents, their bytes. Each of
    /// these is one statement, however many steps there are.
    const MOST_STATEMENTS: u64 = 17;

    #[test]
    fn a_page_needs_a_handful_of_statements_however_long_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = archive(folder.path());
        let statements = store.count_statements().unwrap();
        let door = Door::masking(&store).unwrap();
        let view = View::new(store.scoped(Scope::Owner), &door, now());
        let query = SessionQuery {
            filter: SessionFilter { with_agents: true, ..SessionFilter::default() },
            page: Paging { limit: 100, cursor: None },
            brief: true,
        };
        let (mut pages, mut blocks) = (0, 0);
        for session in view.sessions(&query).unwrap().sessions {
            if view.count_steps(&session, &Branch::Current).unwrap() < 80 {
                continue;
            }
            for limit in [1, 40, 80] {
                let query = TranscriptQuery { changes: true, ..TranscriptQuery::default() };
                let before = statements.load(Ordering::Relaxed);
                let page = view.transcript_page(&session, query, &Paging { limit, cursor: None }).unwrap();
                let used = statements.load(Ordering::Relaxed) - before;
                assert_eq!(page.messages.len() as i64, limit);
                assert!(used <= MOST_STATEMENTS, "{used} statements for {limit} steps of {}", session.source);
                blocks += page.messages.iter().map(|entry| entry.blocks.len()).sum::<usize>();
                pages += 1;
            }
        }
        assert!(pages >= 6 && blocks >= 500, "{pages} pages with {blocks} blocks");
    }

    /// A parent that is farther away than a page may search, or exists nowhere, costs a part of the file and is not named.
    /// Tests search a megabyte.
    #[test]
    fn parents_are_searched_for_in_a_part_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let count = annals_testkit::corpora::write_far_parents(&folder.path().join("user")).unwrap();
        let store = archive_of_user(folder.path());
        let door = Door::masking(&store).unwrap();
        let view = View::new(store.scoped(Scope::Owner), &door, now());
        let query = SessionQuery {
            filter: SessionFilter::default(),
            page: Paging { limit: 10, cursor: None },
            brief: true,
        };
        let session = view.sessions(&query).unwrap().sessions.remove(0);
        assert_eq!(view.count_steps(&session, &Branch::Current).unwrap(), count as i64);
        let (mut parents, mut cursor) = (Vec::new(), None);
        loop {
            let page = Paging { limit: 100, cursor };
            let page = view.transcript_page(&session, TranscriptQuery::default(), &page).unwrap();
            parents.extend(page.messages.iter().map(|entry| entry.parent_id.is_some()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        let without: Vec<usize> = (0..count).filter(|number| !parents[*number]).collect();
        // The first has none, one names a line that is nowhere, and the last one names the first.
        assert_eq!(without, [0, count / 2, count - 1]);
    }
}
