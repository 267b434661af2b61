//! Sessions as JSON, in the shape of the API: one document, or one line per session and message.

use std::io::Write;

use serde::Serialize;

use super::ExportOptions;
use crate::view::context::View;
use crate::view::session::list::SessionView;
use annals_core::{Result, visible_json};

/// The start of each document, by which annals recognises what it wrote.
const EXPORTER: &str = "\"exporter\":\"annals\"";

/// Sessions as one document: `{"session", "messages"}` for one, a list of them for several.
pub struct JsonSessions<'w> {
    out: &'w mut dyn Write,
    several: bool,
    count: usize,
}

impl<'w> JsonSessions<'w> {
    pub fn start(out: &'w mut dyn Write, several: bool) -> Result<JsonSessions<'w>> {
        match several {
            true => write!(out, "{{{EXPORTER},\"sessions\":[")?,
            false => write!(out, "{{{EXPORTER},")?,
        }
        Ok(JsonSessions { out, several, count: 0 })
    }

    /// Messages are written one at a time: a long session is never in memory in full.
    pub fn session(&mut self, view: &View<'_>, session: &SessionView, options: &ExportOptions) -> Result<()> {
        if self.several {
            self.out.write_all(if self.count == 0 { b"\n{" } else { b",\n{" })?;
        }
        self.count += 1;
        self.out.write_all(b"\"session\":")?;
        write_value(self.out, session)?;
        self.out.write_all(b",\"messages\":[")?;
        let mut before: &[u8] = b"\n";
        view.transcript(session, options.transcript(), &mut |entry| {
            self.out.write_all(before)?;
            before = b",\n";
            write_value(self.out, &entry)
        })?;
        self.out.write_all(if self.several { b"\n]}" } else { b"\n]" })?;
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        self.out.write_all(if self.several { b"\n]}\n" } else { b"}\n" })?;
        Ok(())
    }
}

/// A line about the session, then one for each message.
pub fn write_json_lines(
    view: &View<'_>,
    session: &SessionView,
    options: &ExportOptions,
    out: &mut dyn Write,
) -> Result<()> {
    write!(out, "{{{EXPORTER},\"type\":\"session\",\"session\":")?;
    write_value(out, session)?;
    out.write_all(b"}\n")?;
    let names = [&session.source, &session.session_id];
    let [source, id] = names.map(serde_json::to_string);
    let start = format!("{{\"type\":\"message\",\"source\":{},\"session_id\":{},\"message\":", source?, id?);
    view.transcript(session, options.transcript(), &mut |entry| {
        out.write_all(&visible_json(start.clone().into_bytes()))?;
        write_value(out, &entry)?;
        out.write_all(b"}\n")?;
        Ok(())
    })
}

fn write_value(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    out.write_all(&visible_json(serde_json::to_vec(value)?))?;
    Ok(())
}
