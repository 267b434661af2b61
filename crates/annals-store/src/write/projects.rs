//! Directories of projects: clients that file sessions under a name have the directory in another file.

use rusqlite::{OptionalExtension, params};

use super::Writer;
use crate::error::Result;
use crate::sql;
use annals_core::{FileId, InstanceId, ProjectPath, SessionFacts, SessionId};

impl Writer<'_> {
    pub(crate) fn write_project(
        &mut self,
        instance: InstanceId,
        file: FileId,
        project: &ProjectPath,
    ) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "insert into project (file, name, path, instance) values ($1, $2, $3, $4)
             on conflict (file, name) do update set path = excluded.path"
        ))?;
        statement.execute(params![file, project.name, project.path, instance])?;
        drop(statement);
        self.touch_sessions_of(instance, &project.name)
    }

    /// Removes the directories that a file has.
    pub(crate) fn forget_projects(&mut self, file: FileId) -> Result<()> {
        let mut statement = self
            .transaction
            .prepare_cached(sql!("delete from project where file = $1 returning instance, name"))?;
        let removed: Vec<(InstanceId, String)> = statement
            .query_map(params![file], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        for (instance, name) in removed {
            self.touch_sessions_of(instance, &name)?;
        }
        Ok(())
    }

    /// Fills in the working directory of a session that only has the name of its project.
    pub(crate) fn fill_directory(&self, session: SessionId, facts: &mut SessionFacts) -> Result<()> {
        let Some(name) = facts.project_name.as_ref().filter(|_| facts.cwd.is_none()) else { return Ok(()) };
        let mut statement = self.transaction.prepare_cached(sql!(
            "select project.path from project join session on session.instance = project.instance
             where session.id = $1 and project.name = $2 order by project.path limit 1"
        ))?;
        facts.cwd = statement.query_row(params![session, name], |row| row.get(0)).optional()?;
        Ok(())
    }

    fn touch_sessions_of(&mut self, instance: InstanceId, project: &str) -> Result<()> {
        let mut statement = self.transaction.prepare_cached(sql!(
            "select distinct session.id from session join session_part part on part.session = session.id
             where session.instance = $1 and json_extract(part.facts, '$.project_name') = $2"
        ))?;
        let sessions: Vec<SessionId> = statement
            .query_map(params![instance, project], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        drop(statement);
        self.touched.extend(sessions);
        Ok(())
    }
}
