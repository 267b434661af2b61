//! What the caller arranged, as shown, and changes to it as versions to store.

pub(super) mod records;

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::context::View;
use super::session::list::SessionView;
use annals_core::{
    Arranged, ArrangedField, ArrangedKind, Arrangement, Error, Raw, Result, Shown, Time, arrangement,
};
use annals_store::ArrangementRow;

/// What the caller said about a session, a message or a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ArrangementView {
    pub starred: bool,
    /// Shown instead of the title.
    pub name: Option<Shown>,
    pub tags: Vec<Shown>,
    /// Markdown.
    pub note: Option<Shown>,
    /// Left out of lists and searches; messages cannot be hidden.
    pub hidden: bool,
}

/// Changes; what is absent stays as it is.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArrangementPatch {
    pub starred: Option<bool>,
    /// null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub name: Option<Option<String>>,
    /// Replaces all tags.
    pub tags: Option<Vec<String>>,
    pub add_tags: Option<Vec<String>>,
    pub remove_tags: Option<Vec<String>>,
    /// Markdown, at most 1 MB; null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub note: Option<Option<String>>,
    pub hidden: Option<bool>,
}

/// Distinguishes null from an absent field.
fn present<'d, D: Deserializer<'d>>(input: D) -> std::result::Result<Option<Option<String>>, D::Error> {
    Deserialize::deserialize(input).map(Some)
}

impl ArrangementPatch {
    /// Removes everything.
    pub fn clearing() -> ArrangementPatch {
        ArrangementPatch {
            starred: Some(false),
            name: Some(None),
            tags: Some(Vec::new()),
            note: Some(None),
            hidden: Some(false),
            ..ArrangementPatch::default()
        }
    }
}

/// A saved search.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SavedSearch {
    pub name: Shown,
    pub query: Shown,
    pub saved_at: String,
}

impl View<'_> {
    /// What the caller said about a session, a message or a project.
    pub fn arrangement(&self, of: &Arranged) -> Result<ArrangementView> {
        Ok(self.shown_arrangement(&self.archive.arrangement_of(of)?))
    }

    /// What the caller said about messages of a session, by their ids.
    pub(super) fn message_arrangements(
        &self,
        source: &str,
        session: &str,
    ) -> Result<HashMap<String, ArrangementView>> {
        let rows = self.archive.arranged_messages(source, session)?;
        let of_messages = rows.chunk_by(|one, other| one.of.message == other.of.message);
        Ok(of_messages.map(|rows| (rows[0].of.message.clone(), self.shown_arrangement(rows))).collect())
    }

    fn shown_arrangement(&self, rows: &[ArrangementRow]) -> ArrangementView {
        let mut view = ArrangementView::default();
        for row in rows {
            let Some(value) = &row.value else { continue };
            match row.field {
                ArrangedField::Star => view.starred = true,
                ArrangedField::Tag => view.tags.push(self.door.text(&row.item)),
                ArrangedField::Name => view.name = Some(self.door.raw(value)),
                ArrangedField::Note => view.note = Some(self.door.raw(value)),
                ArrangedField::Hidden => view.hidden = true,
                ArrangedField::Query => {}
            }
        }
        view
    }

    /// The session, or one of its messages, as something to arrange; none if the session has no such message.
    pub fn arranged_part(&self, session: &SessionView, message: Option<&str>) -> Result<Option<Arranged>> {
        let (source, id) = (&session.source, &session.session_id);
        match message {
            None => Ok(Some(Arranged::session(source, id))),
            Some(message) => {
                let is_there = self.lines(session, message)?.is_some();
                Ok(is_there.then(|| Arranged::message(source, id, message)))
            }
        }
    }

    /// The directory that a name or a path means, as something to arrange. A session must have run there.
    pub fn arranged_project(&self, project: &str) -> Result<Option<Arranged>> {
        let of = Arranged::project(&self.project_named(project)?);
        let known = self.archive.has_project(&of.target)?;
        // One that was arranged stays, wherever its sessions went.
        let is_there = known || !self.archive.arrangement_of(&of)?.is_empty();
        Ok(is_there.then_some(of))
    }

    /// The versions that make these changes; none if everything is so already.
    pub fn arranging(&self, of: &Arranged, patch: &ArrangementPatch) -> Result<Vec<Arrangement>> {
        if of.kind == ArrangedKind::Message && patch.hidden == Some(true) {
            return Err(Error::bad_request("a message cannot be hidden")
                .hint("hide its session, or write a note on the message"));
        }
        let rows = self.archive.arrangement_of(of)?;
        let mut versions = Changes { of, rows: &rows, now: self.now, versions: Vec::new() };
        let mark = |set: bool| set.then(String::new);
        if let Some(starred) = patch.starred {
            versions.set(ArrangedField::Star, "", mark(starred));
        }
        if let Some(name) = &patch.name {
            let name = name.as_deref().map(arrangement::name).transpose()?.flatten();
            versions.set(ArrangedField::Name, "", name);
        }
        if let Some(note) = &patch.note {
            let note = note.as_deref().map(arrangement::note).transpose()?.flatten();
            versions.set(ArrangedField::Note, "", note);
        }
        let tags = |tags: &Option<Vec<String>>| -> Result<BTreeSet<String>> {
            tags.iter().flatten().map(|tag| self.tag(tag)).collect()
        };
        let (mut added, mut removed) = (tags(&patch.add_tags)?, tags(&patch.remove_tags)?);
        if patch.tags.is_some() {
            let wanted = tags(&patch.tags)?;
            let known = rows.iter().filter(|row| row.field == ArrangedField::Tag).map(|row| row.item.clone());
            removed.extend(known.filter(|tag| !wanted.contains(tag)));
            added.extend(wanted);
        }
        for tag in &added {
            versions.set(ArrangedField::Tag, tag, mark(true));
        }
        for tag in removed.difference(&added) {
            versions.set(ArrangedField::Tag, tag, None);
        }
        if let Some(hidden) = patch.hidden
            && of.kind != ArrangedKind::Message
        {
            versions.set(ArrangedField::Hidden, "", mark(hidden));
        }
        Ok(versions.versions)
    }

    /// In lower case, a secret would not be recognised as one.
    fn tag(&self, text: &str) -> Result<String> {
        if self.door.text(text).as_str() != text {
            return Err(Error::bad_request("a tag cannot be a secret")
                .hint("write it into a note, where it is masked"));
        }
        arrangement::tag(text)
    }

    /// Saved searches, by name.
    pub fn saved_searches(&self) -> Result<Vec<SavedSearch>> {
        let rows = self.archive.arranged(ArrangedKind::Search)?.into_iter();
        let query = rows.filter(|row| row.field == ArrangedField::Query);
        Ok(query
            .map(|row| SavedSearch {
                name: self.door.text(&row.of.target),
                query: row.value.as_ref().map(|query| self.door.raw(query)).unwrap_or_default(),
                saved_at: row.at.rfc3339(),
            })
            .collect())
    }

    /// The query of a saved search, as it was typed: it is run, not shown.
    pub fn query_of_saved(&self, name: &str) -> Result<Option<String>> {
        let rows = self.archive.arrangement_of(&search_named(name)?)?;
        let query = rows.iter().find(|row| row.field == ArrangedField::Query);
        Ok(query.and_then(|row| row.value.as_ref()).map(text_of))
    }

    /// Saves a search under a name, or removes it.
    pub fn saving(&self, name: &str, query: Option<&str>) -> Result<Vec<Arrangement>> {
        let of = search_named(name)?;
        let query = query.map(arrangement::query).transpose()?;
        let rows = self.archive.arrangement_of(&of)?;
        let mut versions = Changes { of: &of, rows: &rows, now: self.now, versions: Vec::new() };
        versions.set(ArrangedField::Query, "", query);
        Ok(versions.versions)
    }
}

fn search_named(name: &str) -> Result<Arranged> {
    let name = arrangement::name(name)?;
    name.map(|name| Arranged::search(&name)).ok_or_else(|| Error::bad_request("a saved search needs a name"))
}

fn text_of(raw: &Raw) -> String {
    String::from_utf8_lossy(raw.expose()).into_owned()
}

/// Versions of values of one thing.
struct Changes<'c> {
    of: &'c Arranged,
    rows: &'c [ArrangementRow],
    now: Time,
    versions: Vec<Arrangement>,
}

impl Changes<'_> {
    /// A change counts, whatever the clock says: it is later than what it changes.
    fn set(&mut self, field: ArrangedField, item: &str, value: Option<String>) {
        let known = self.rows.iter().find(|row| row.field == field && row.item == item);
        let before = known.and_then(|row| row.value.as_ref()).map(text_of);
        if before == value {
            return;
        }
        let after = known.map_or(i64::MIN, |row| row.at.micros().saturating_add(1));
        self.versions.push(Arrangement {
            of: self.of.clone(),
            field,
            item: item.to_owned(),
            value,
            at: Time::from_micros(self.now.micros().max(after)),
        });
    }
}
