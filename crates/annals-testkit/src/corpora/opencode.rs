//! Generates OpenCode databases from a seed, with conversations of the sizes of real ones, for benches.

use std::io;
use std::path::Path;

use rusqlite::{Connection, Transaction, params};
use serde_json::{Value, json};

use super::generator::{DAY, DAYS, FIRST_DAY, PROJECTS, PROSE, Plan, Project, Random, Written, sizes};

const TABLES: &str = "
    create table project (id text primary key, worktree text not null, vcs text, name text, time_created integer not null,
        time_updated integer not null, time_initialized integer, sandboxes text not null, commands text);
    create table session (id text primary key, project_id text not null, parent_id text, slug text not null,
        directory text not null, path text, title text not null, version text not null, cost real default 0 not null,
        time_created integer not null, time_updated integer not null);
    create table message (id text primary key, session_id text not null, time_created integer not null,
        time_updated integer not null, data text not null);
    create index message_session on message (session_id, time_created, id);
    create table part (id text primary key, message_id text not null, session_id text not null,
        time_created integer not null, time_updated integer not null, data text not null);
    create index part_message on part (message_id, id);
    create index part_session on part (session_id);";

/// A conversation that is being written.
struct Conversation<'a> {
    rows: &'a Transaction<'a>,
    project: &'a Project,
    random: Random,
    session: String,
    now: u64,
    /// Rows so far, in all conversations: ids rise with it.
    rows_written: u64,
    bytes: u64,
}

/// Writes a database below `home` with one conversation for each file of the plan.
pub fn write_opencode_home(home: &Path, plan: &Plan) -> io::Result<Written> {
    let folder = home.join("opencode");
    std::fs::create_dir_all(&folder)?;
    let mut database = open(&folder.join("opencode.db"))?;
    database.execute_batch(TABLES).map_err(io::Error::other)?;
    let mut random = Random(plan.seed ^ 0x0bec);
    let projects: Vec<Project> =
        PROJECTS.iter().map(|name| Project::new(random.next(), &format!("/home/pat/code/{name}"))).collect();
    let mut written = Written { files: plan.files, bytes: 0, lines: 0 };
    for (number, project) in projects.iter().enumerate() {
        let sql = "insert into project values (?1, ?2, 'git', null, ?3, ?3, null, '[]', null)";
        let values = params![format!("project{number}"), project.cwd, FIRST_DAY as i64];
        database.execute(sql, values).map_err(io::Error::other)?;
    }
    for (index, target) in sizes(plan).into_iter().enumerate() {
        let now = FIRST_DAY + DAYS * DAY * index as u64 / plan.files as u64 + random.below(DAY);
        let place = random.below(projects.len() as u64) as usize;
        let rows = database.transaction().map_err(io::Error::other)?;
        let session = format!("ses_{index:012x}");
        let sql = "insert into session values (?1, ?2, null, ?1, ?3, '', ?4, '1.18.33', 0, ?5, ?5)";
        let title = format!("Job {index}");
        let values = params![session, format!("project{place}"), projects[place].cwd, title, now as i64];
        rows.execute(sql, values).map_err(io::Error::other)?;
        let mut conversation = Conversation {
            rows: &rows,
            project: &projects[place],
            random: Random(random.next()),
            session,
            now,
            rows_written: written.lines,
            bytes: 0,
        };
        conversation.turns(target)?;
        (written.lines, written.bytes) = (conversation.rows_written, written.bytes + conversation.bytes);
        rows.commit().map_err(io::Error::other)?;
    }
    Ok(written)
}

/// Adds about `bytes` of turns to the last conversation of a database, and returns how many bytes they are.
pub fn append_conversation(file: &Path, seed: u64, bytes: u64) -> io::Result<u64> {
    let mut database = open(file)?;
    let rows = database.transaction().map_err(io::Error::other)?;
    let last = "select session.id, directory, (select count(*) from message) + (select count(*) from part)
                from session order by id desc limit 1";
    let (session, cwd, count): (String, String, i64) = rows
        .query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .map_err(io::Error::other)?;
    let project = Project::new(seed, &cwd);
    let now = FIRST_DAY + (DAYS + 2) * DAY + (seed % 1_000) * 60_000;
    let rows_written = count as u64;
    let mut conversation = Conversation {
        rows: &rows,
        project: &project,
        random: Random(seed),
        session,
        now,
        rows_written,
        bytes: 0,
    };
    conversation.turns(bytes)?;
    let added = conversation.bytes;
    rows.commit().map_err(io::Error::other)?;
    Ok(added)
}

/// With a log, as the client has it; closing it moves the log into the file.
fn open(path: &Path) -> io::Result<Connection> {
    let database = Connection::open(path).map_err(io::Error::other)?;
    database.pragma_update(None, "journal_mode", "wal").map_err(io::Error::other)?;
    database.pragma_update(None, "synchronous", "off").map_err(io::Error::other)?;
    Ok(database)
}

impl Conversation<'_> {
    /// Prompts, each with a few answers that run a command, until `target` bytes are there.
    fn turns(&mut self, target: u64) -> io::Result<()> {
        while self.bytes < target {
            let prompt = self.message(&json!({"role": "user", "agent": "build",
                "model": {"providerID": "acme", "modelID": "acme-large"}}))?;
            let text = self.text(200, 3);
            self.part(&prompt, &json!({"type": "text", "text": text}))?;
            for step in 0..=self.random.below(6) {
                self.answer(&prompt, step)?;
            }
        }
        Ok(())
    }

    fn answer(&mut self, prompt: &str, step: u64) -> io::Result<()> {
        let tokens = json!({"total": 2700, "input": 2574, "output": 62, "reasoning": 64,
            "cache": {"read": 0, "write": 0}});
        let message = self.message(
            &json!({"role": "assistant", "parentID": prompt, "mode": "build", "agent": "build",
            "path": {"cwd": self.project.cwd, "root": self.project.cwd}, "cost": 0.009612, "tokens": tokens,
            "modelID": "acme-large", "providerID": "acme", "finish": "tool-calls"}),
        )?;
        let snapshot = self.random.hash();
        self.part(&message, &json!({"type": "step-start", "snapshot": snapshot}))?;
        let text = self.text(120, 3);
        self.part(&message, &json!({"type": "text", "text": text}))?;
        let length = self.random.sized(600, 5);
        let output = plain(&self.project.output(&mut self.random, length));
        let command = format!("sed -n 1,{}p src/main.rs", length / 40);
        let (start, end) = (self.now, self.now + 400);
        self.part(
            &message,
            &json!({"type": "tool", "callID": format!("call_{}_{step}", self.rows_written), "tool": "bash",
                "state": {"status": "completed", "input": {"command": command, "description": "Look"}, "output": output,
                    "metadata": {"output": output, "exit": 0, "truncated": false}, "title": "Look",
                    "time": {"start": start, "end": end}}}),
        )?;
        self.part(
            &message,
            &json!({"type": "step-finish", "reason": "tool-calls", "cost": 0.009612, "tokens": tokens}),
        )?;
        Ok(())
    }

    fn text(&mut self, low: u64, doublings: u64) -> String {
        let length = self.random.sized(low, doublings);
        plain(&self.project.text(&mut self.random, PROSE, length))
    }

    fn message(&mut self, data: &Value) -> io::Result<String> {
        let mut data = data.clone();
        data["time"] = json!({"created": self.now, "completed": self.now + 900});
        let (id, text) = (format!("msg_{:016x}", self.rows_written), data.to_string());
        let sql = "insert into message values (?1, ?2, ?3, ?3, ?4)";
        self.rows.execute(sql, params![id, self.session, self.now as i64, text]).map_err(io::Error::other)?;
        self.count(text.len());
        Ok(id)
    }

    fn part(&mut self, message: &str, data: &Value) -> io::Result<()> {
        let (id, text) = (format!("prt_{:016x}", self.rows_written), data.to_string());
        let sql = "insert into part values (?1, ?2, ?3, ?4, ?4, ?5)";
        self.rows
            .execute(sql, params![id, message, self.session, self.now as i64, text])
            .map_err(io::Error::other)?;
        self.count(text.len());
        Ok(())
    }

    fn count(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.rows_written += 1;
        self.now += 1 + self.random.below(3_000);
    }
}

/// The generator writes what is between the quotes of JSON.
pub(super) fn plain(escaped: &str) -> String {
    serde_json::from_str(&format!("\"{escaped}\"")).unwrap_or_else(|_| escaped.to_owned())
}
