//! What people type in filters, for the command line and the HTTP API alike: a source by any of its names, a project by
//! the name of its directory, a model by part of its name, a time in words. What is unclear is an error that names the
//! nearest valid values.

use std::borrow::Cow;

use super::context::View;
use super::format::last_part;
use annals_core::{Error, Raw, Result, Time, nearest_few, parse_moment};
use annals_sources::{Source, by_common_name, registry};
use annals_store::{ResponseFilter, SessionFilter};

/// Directories that a name is compared with; more are not looked at.
const MOST_PROJECTS: i64 = 20_000;
/// Directories or models that one name may mean.
const MOST_MEANT: usize = 500;

/// A source by any name that people use for it.
pub fn source_named(name: &str) -> Result<&'static dyn Source> {
    by_common_name(name).ok_or_else(|| {
        let known: Vec<&str> = registry().iter().map(|source| source.manifest().source).collect();
        let near = nearest_few(name, &known);
        let meant =
            if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(", ")) };
        Error::bad_request(format!("unknown source {name:?}"))
            .hint(format!("{meant}known sources: {}", known.join(", ")))
    })
}

/// A point in time: RFC 3339, a date, or words such as `monday`.
pub fn time_named(text: &str, now: Time) -> Result<Time> {
    parse_moment(text, now).map_err(Error::into_bad_request)
}

/// A name of a directory is not a path to it.
fn is_name(project: &str) -> bool {
    !project.is_empty() && !project.contains(['/', '\\']) && !matches!(project, "." | "..")
}

impl View<'_> {
    /// The filter with directories and models in place of names for them.
    pub(in crate::view) fn named_sessions<'f>(
        &self,
        filter: &'f SessionFilter,
    ) -> Result<Cow<'f, SessionFilter>> {
        let mut filter = Cow::Borrowed(filter);
        if let Some(project) = filter.project.clone().filter(|project| is_name(project)) {
            let projects = self.projects_named(&project)?;
            filter = Cow::Owned(SessionFilter { project: None, projects, ..filter.into_owned() });
        }
        if let Some(model) = filter.model.clone() {
            let models = self.models_named(&model)?;
            filter = Cow::Owned(SessionFilter { model: None, models, ..filter.into_owned() });
        }
        Ok(filter)
    }

    /// The same for responses.
    pub(in crate::view) fn named_responses(&self, filter: &ResponseFilter) -> Result<ResponseFilter> {
        let mut filter = filter.clone();
        if let Some(project) = filter.project.take_if(|project| is_name(project)) {
            filter.projects = self.projects_named(&project)?;
        }
        if let Some(model) = filter.model.take() {
            filter.models = self.models_named(&model)?;
        }
        Ok(filter)
    }

    /// The one directory that a name means; paths stay as they are.
    pub(in crate::view) fn project_named(&self, project: &str) -> Result<String> {
        if !is_name(project) {
            return Ok(project.to_owned());
        }
        let mut meant = self.projects_named(project)?;
        match meant.len() {
            0 | 1 => Ok(meant.pop().unwrap_or_default()),
            several => Err(Error::bad_request(format!("{several} projects are named {project:?}"))
                .hint(format!("use the path of one: {}", meant[..several.min(3)].join(", ")))),
        }
    }

    /// The directories of sessions whose last part is this name, or whose path has a part of this name, or whose last
    /// part contains it. Only what is shown is compared, so that nothing masked can be guessed.
    fn projects_named(&self, name: &str) -> Result<Vec<String>> {
        let known = self.unmasked(self.archive.projects(MOST_PROJECTS)?);
        let wanted = name.to_lowercase();
        let is_called = |part: &str| part.to_lowercase() == wanted;
        let ways: [&dyn Fn(&str) -> bool; 3] =
            [&|path| is_called(last_part(path)), &|path| path.split(['/', '\\']).any(is_called), &|path| {
                last_part(path).to_lowercase().contains(&wanted)
            }];
        for is_meant in ways {
            let meant: Vec<String> = known.iter().filter(|path| is_meant(path)).cloned().collect();
            if !meant.is_empty() {
                return Ok(meant.into_iter().take(MOST_MEANT).collect());
            }
        }
        let mut names: Vec<&str> = known.iter().map(|path| last_part(path)).collect();
        names.sort_unstable();
        names.dedup();
        self.unknown("project", name, &names, "`annals usage --days all --by project` lists all projects")
    }

    /// The models that a name means: one of this name, or all that contain it.
    fn models_named(&self, name: &str) -> Result<Vec<String>> {
        let known = self.unmasked(self.archive.models()?);
        let wanted = name.to_lowercase();
        if let Some(exact) = known.iter().find(|model| model.to_lowercase() == wanted) {
            return Ok(vec![exact.clone()]);
        }
        let part: Vec<String> = known
            .iter()
            .filter(|model| model.to_lowercase().contains(&wanted))
            .take(MOST_MEANT)
            .cloned()
            .collect();
        if !part.is_empty() && !wanted.is_empty() {
            return Ok(part);
        }
        // A model that answered nothing has no tokens, but sessions.
        let exact =
            SessionFilter { models: vec![name.to_owned()], with_agents: true, ..SessionFilter::default() };
        if self.archive.count_sessions(&exact)? > 0 {
            return Ok(exact.models);
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        self.unknown("model", name, &names, "`annals usage --days all --by model` lists all models")
    }

    /// Without sessions there is nothing to confuse a name with, and nothing matches.
    fn unknown(&self, what: &str, name: &str, known: &[&str], hint: &str) -> Result<Vec<String>> {
        if known.is_empty() {
            return Ok(vec![name.to_owned()]);
        }
        let near = nearest_few(name, known);
        let hint = match near.is_empty() {
            true => hint.to_owned(),
            false => format!("did you mean {}? {hint}", near.join(", ")),
        };
        Err(Error::bad_request(format!("no {what} is named {name:?}")).hint(hint))
    }

    /// Texts that are shown as they are.
    fn unmasked(&self, texts: Vec<Raw>) -> Vec<String> {
        let shown = texts.iter().map(|text| (self.door.raw(text), text));
        shown
            .filter(|(shown, text)| shown.as_str().as_bytes() == text.expose())
            .map(|(shown, _)| shown.to_string())
            .collect()
    }
}
