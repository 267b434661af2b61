//! annals keeps a person's whole history with AI assistants and lets them search it.

mod cli;
mod collect;
mod config;
mod serve;
mod view;

pub use cli::run;
#[cfg(feature = "fuzzing")]
pub use collect::{fuzz_containers, fuzz_elements, fuzz_wire};
#[cfg(feature = "fuzzing")]
pub use view::{fuzz_query, fuzz_record};

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering;

    use crate::collect::{Environment, Progress, SyncOptions, sync};
    use crate::view::{Branch, Door, Paging, SessionQuery, TranscriptQuery, View};
    use annals_core::{Scope, Time};
    use annals_sources::registry;
    use annals_store::{SessionFilter, Store};
    use annals_testkit::sources::Untouched;

    struct Unwatched;

    impl Progress for Unwatched {
        fn begin(&mut self, _files: u64, _bytes: u64) {}
        fn advance(&mut self, _files: u64, _bytes: u64) {}
        fn end(&mut self) {}
    }

    pub fn now() -> Time {
        Time::from_millis(1_794_744_000_000)
    }

    fn archive(home: &Path) -> Store {
        annals_testkit::corpora::write_long_sessions(&home.join("user")).unwrap();
        archive_of_user(home)
    }

    /// Archives what the folder `user` has.
    pub fn archive_of_user(home: &Path) -> Store {
        let settings = Untouched(home.join("user"));
        let environment = Environment {
            home: &home.join("archive"),
            machine: "here".into(),
            settings: &settings,
            threads: 1,
            now,
        };
        let options = SyncOptions {
            sources: registry().to_vec(),
            since: None,
            verify: false,
            repositories: false,
            gaps_only: false,
            opportunistic: false,
            damaged: None,
            member: None,
        };
        sync(&options, &environment, &mut Unwatched).unwrap();
        Store::open(&home.join("archive")).unwrap()
    }

    /// The statements of a page: its steps, what belongs to them, the lines that name their parents, their bytes. Each of
    /// these is one statement, however many steps there are.
    const MOST_STATEMENTS: u64 = 16;

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
}
