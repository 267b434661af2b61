//! Asks an archive questions with weights to try, for `benches/questions`.

use std::path::Path;

use crate::view::{Door, Paging, SearchQuery, View, Weights, content_words};
use annals_core::{Result, Scope, Time};
use annals_store::Store;

pub struct Experiment {
    store: Store,
    door: Door,
    now: Time,
}

impl Experiment {
    /// Opens an archive as if it were this many seconds after 1970.
    pub fn open(archive: &Path, seconds: i64) -> Result<Experiment> {
        let store = Store::open(archive)?;
        let door = Door::masking(&store)?;
        Ok(Experiment { store, door, now: Time::from_seconds(seconds) })
    }

    /// The words of a question that count, in lower case.
    pub fn words_of(question: &str) -> Result<Vec<String>> {
        content_words(question)
    }

    /// The ids of the sessions that are found, best first.
    pub fn ask(&self, question: &str, weights: &Weights, limit: i64) -> Result<Vec<String>> {
        let view = View::new(self.store.scoped(Scope::Owner), &self.door, self.now);
        let query = SearchQuery {
            query: question.to_owned(),
            page: Paging { limit, cursor: None },
            weights: Some(weights.clone()),
            ..SearchQuery::default()
        };
        let answer = view.at_once(|| view.search(&query))?;
        Ok(answer.results.into_iter().filter_map(|result| result.session_id).collect())
    }
}
