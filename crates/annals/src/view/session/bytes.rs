//! One step of a session in its original form: its lines, complete output and images.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::entry_builder::EntryBuilder;
use super::list::SessionView;
use crate::view::context::View;
use annals_core::{AccessKind, ContentKey, FileId, Result, Shown, Span, from_base64};
use annals_sources::by_name;
use annals_store::{Archive, CallRow, Contents, StepParts, StepRow};

/// A line of a captured file.
#[derive(Debug, Serialize, ToSchema)]
pub struct LineView {
    /// Part of the step: message, call, output or detail.
    pub part: &'static str,
    pub offset: u64,
    pub length: u64,
    /// As the client wrote it, with secrets masked.
    pub text: Shown,
}

impl View<'_> {
    /// The lines of a message or call, by its id.
    pub fn lines(&self, session: &SessionView, id: &str) -> Result<Option<Vec<LineView>>> {
        self.note_access(session.row, AccessKind::Conversation);
        let Some(step) = Step::find(self.archive, session, id)? else { return Ok(None) };
        let mut contents = self.archive.contents();
        let mut lines = Vec::new();
        let mut emitted = Vec::new();
        for (part, file, span) in step.spans() {
            // Several calls may share a line, and a call may share the line of its message.
            if emitted.contains(&(file, span.offset)) {
                continue;
            }
            emitted.push((file, span.offset));
            let raw = contents.span(file, span)?;
            lines.push(LineView {
                part,
                offset: span.offset,
                length: span.length,
                text: self.door.raw(&raw),
            });
        }
        Ok(Some(lines))
    }

    /// The complete output of one of a step's calls, by its number within the step.
    pub fn whole_output(&self, session: &SessionView, id: &str, number: usize) -> Result<Option<Shown>> {
        self.note_access(session.row, AccessKind::Conversation);
        let Some(step) = Step::find(self.archive, session, id)? else { return Ok(None) };
        let (Some(call), Some(source)) = (step.calls().get(number), by_name(&session.source)) else {
            return Ok(None);
        };
        let builder = EntryBuilder { view: self, source, full: true, changes: false };
        let output = builder.output_from(&mut self.archive.contents(), call, step.parts.output(call))?;
        Ok(output.map(|output| self.door.text(&output)))
    }
}

/// An image of a step: its media type and bytes.
#[derive(Debug)]
pub struct Picture {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

/// Types that browsers show without executing anything in them.
const SHOWN_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

impl View<'_> {
    /// The image with this number in a message.
    pub fn picture(&self, session: &SessionView, id: &str, number: usize) -> Result<Option<Picture>> {
        self.note_access(session.row, AccessKind::Conversation);
        let Some(step) = Step::find(self.archive, session, id)? else { return Ok(None) };
        let mut contents = self.archive.contents();
        let mut pictures = Vec::new();
        for (part, file, span) in step.spans() {
            if part == "message" || part == "output" {
                gather_pictures(&mut contents, file, span, &mut pictures)?;
            }
        }
        Ok(pictures.into_iter().nth(number).flatten())
    }
}

fn gather_pictures(
    contents: &mut Contents<'_>,
    file: FileId,
    span: Span,
    pictures: &mut Vec<Option<Picture>>,
) -> Result<()> {
    let raw = contents.span(file, span)?;
    if let Ok(value) = serde_json::from_slice::<Value>(raw.expose()) {
        each_picture(&value, &mut |media_type, data| pictures.push(decoded(media_type, data)));
    }
    Ok(())
}

/// Transcripts contain images as data URLs, or as a media type next to Base64 data.
fn each_picture(value: &Value, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => {
            let data = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            if let Some((media_type, data)) = data.filter(|(media_type, _)| media_type.starts_with("image/"))
            {
                visit(media_type, data);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_picture(item, visit)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            match (text("media_type").or_else(|| text("mimeType")), text("data")) {
                (Some(media_type), Some(data)) if media_type.starts_with("image/") => visit(media_type, data),
                _ => fields.values().for_each(|field| each_picture(field, visit)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn decoded(media_type: &str, data: &str) -> Option<Picture> {
    let media_type = SHOWN_TYPES.into_iter().find(|known| *known == media_type)?;
    Some(Picture { media_type, bytes: from_base64(data.as_bytes())? })
}

/// The rows of one step.
struct Step {
    row: StepRow,
    parts: StepParts,
}

impl Step {
    fn find(archive: Archive<'_>, session: &SessionView, id: &str) -> Result<Option<Step>> {
        let Some(key) = ContentKey::from_hex(id) else { return Ok(None) };
        let row = match archive.message_by_key(session.row, key)? {
            Some(message) => Some(StepRow::Message(message)),
            None => archive.call_by_key(session.row, key)?.map(StepRow::Call),
        };
        let Some(row) = row else { return Ok(None) };
        let parts = archive.step_parts(&session.source, std::slice::from_ref(&row))?;
        Ok(Some(Step { row, parts }))
    }

    fn calls(&self) -> &[CallRow] {
        match &self.row {
            StepRow::Message(message) => self.parts.calls(message),
            StepRow::Call(call) => std::slice::from_ref(call),
        }
    }

    fn spans(&self) -> Vec<(&'static str, FileId, Span)> {
        let mut spans = Vec::new();
        if let StepRow::Message(message) = &self.row {
            let lines = [message.span].into_iter().chain(self.parts.lines(message).iter().copied());
            spans.extend(lines.map(|span| ("message", message.file, span)));
        }
        for call in self.calls() {
            let parts = [("call", Some(call.span)), ("output", call.output), ("detail", call.detail)];
            spans.extend(parts.into_iter().filter_map(|(part, span)| Some((part, call.file, span?))));
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::each_picture;

    #[test]
    fn pictures_are_found_in_both_forms_and_in_order() {
        let value = json!({"content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
            {"type": "input_image", "image_url": "data:image/jpeg;base64,Qg=="},
            {"text": "data:text/html;base64,Qw=="},
        ]});
        let mut seen = Vec::new();
        each_picture(&value, &mut |media_type, data| seen.push((media_type.to_owned(), data.to_owned())));
        let expected = [("image/png", "QQ=="), ("image/jpeg", "Qg==")];
        assert_eq!(seen, expected.map(|(media_type, data)| (media_type.to_owned(), data.to_owned())));
    }
}
