//! Filters by title, directory and branch match only what is shown of them: otherwise a masked word could be guessed
//! letter by letter.

use std::borrow::Cow;

use crate::view::context::View;
use crate::view::search::query::check_words;
use annals_core::{Raw, Result, SessionId};
use annals_store::{SessionFilter, SessionTexts};

impl View<'_> {
    /// The filter with names replaced by what they mean, without the sessions that match only within a secret.
    pub(in crate::view) fn without_guesses<'f>(
        &self,
        filter: &'f SessionFilter,
    ) -> Result<Cow<'f, SessionFilter>> {
        if let Some(words) = &filter.words {
            check_words(words)?;
        }
        let filter = self.named_sessions(filter)?;
        let compares = filter.words.is_some()
            || filter.branch.is_some()
            || filter.project.is_some()
            || filter.project_part.is_some();
        if !compares || self.door.reveals() {
            return Ok(filter);
        }
        let rows = self.archive.session_texts(&filter)?;
        let hidden: Vec<SessionId> =
            rows.iter().filter(|texts| !self.matches_shown(&filter, texts)).map(|texts| texts.row).collect();
        match hidden.is_empty() {
            true => Ok(filter),
            false => Ok(Cow::Owned(SessionFilter { without: hidden, ..filter.into_owned() })),
        }
    }

    fn matches_shown(&self, filter: &SessionFilter, texts: &SessionTexts) -> bool {
        let mut masked = false;
        let mut shown = |text: &Option<Raw>| {
            let Some(text) = text else { return String::new() };
            let shown = self.door.raw(text).to_string();
            masked |= shown.as_bytes() != text.expose();
            shown.to_lowercase()
        };
        let [title, cwd, branch, name] =
            [&texts.title, &texts.cwd, &texts.git_branch, &texts.name].map(&mut shown);
        // SQL has compared the rest.
        if !masked {
            return true;
        }
        let key = texts.key.to_lowercase();
        let contains = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|part| text.contains(&part.to_lowercase()))
        };
        let has_word = |word: &str| {
            let word = word.to_lowercase();
            [&title, &cwd, &branch, &name, &key].iter().any(|text| text.contains(&word))
        };
        contains(&branch, &filter.branch)
            && contains(&cwd, &filter.project_part)
            && contains(&cwd, &filter.project)
            && filter.words.as_ref().is_none_or(|words| words.split_whitespace().all(has_word))
    }
}
