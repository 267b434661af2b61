//! The graph of a secret: how it entered, the sessions that saw it, and where it went from there.

use std::fmt::Write as _;

use super::html::{Html, escaped, in_address};
use crate::view::SecretTrace;

const COLUMN: usize = 250;
const ROW: usize = 34;
const BOX: (usize, usize) = (190, 24);
/// More sessions and files make the graph unreadable; the table has them all.
const MOST: usize = 12;
const LETTERS: usize = 26;

/// A box of the graph: its text, and the page that it leads to.
struct Node {
    text: String,
    address: Option<String>,
}

/// Three columns from left to right; every box is a line of text, so that it is readable without colour.
pub(super) fn trace_graph(trace: &SecretTrace) -> Html {
    let entry = trace.entered.as_ref().map_or("unknown".to_owned(), |entered| match &entered.tool {
        Some(tool) => format!("{} of {tool}", entered.place),
        None => entered.place.clone(),
    });
    let left = vec![Node { text: entry, address: None }];
    let sessions = trace.sessions.iter().take(MOST).map(|session| {
        let kind = session.parent_kind.as_ref().map(|kind| format!("({}) ", kind.replace('_', "-")));
        let title = session.title.as_ref().map_or(session.session_id.as_str(), |title| title.as_str());
        Node {
            text: format!("{}{title}", kind.unwrap_or_default()),
            address: Some(format!("/sessions?include_subagents=true&q={}", in_address(&session.session_id))),
        }
    });
    let middle: Vec<Node> = sessions.collect();
    let providers = trace.providers.iter().map(|provider| format!("sent to {}", provider.provider_label));
    let machines = trace.machines.iter().map(|machine| format!("on {machine}"));
    let files = trace.written_files.iter().map(|file| format!("written to {file}"));
    let commands = trace.in_commands.then(|| "in a command line".to_owned());
    let right: Vec<Node> = providers
        .chain(machines)
        .chain(commands)
        .chain(files)
        .take(MOST)
        .map(|text| Node { text, address: None })
        .collect();
    let columns = [left, middle, right];
    let rows = columns.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let (width, height) = (2 * COLUMN + BOX.0 + 2, rows * ROW + 4);
    let mut svg = format!(
        "<svg class=\"trace\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"group\" \
         aria-label=\"Where {} went\">",
        escaped(&trace.mark)
    );
    let middle_of = |column: &[Node], at: usize| (rows - column.len()) * ROW / 2 + at * ROW + 2 + BOX.1 / 2;
    for (number, pair) in columns.windows(2).enumerate() {
        for from in 0..pair[0].len() {
            for to in 0..pair[1].len() {
                let (x, end) = (number * COLUMN + BOX.0, (number + 1) * COLUMN);
                let (start_y, end_y) = (middle_of(&pair[0], from), middle_of(&pair[1], to));
                // Writing to a string cannot fail.
                let _ = write!(
                    svg,
                    "<line x1=\"{x}\" y1=\"{start_y}\" x2=\"{end}\" y2=\"{end_y}\" stroke=\"var(--line)\"/>"
                );
            }
        }
    }
    for (number, column) in columns.iter().enumerate() {
        for (at, node) in column.iter().enumerate() {
            svg.push_str(&drawn(node, number * COLUMN + 1, middle_of(column, at)));
        }
    }
    svg.push_str("</svg>");
    Html(svg)
}

fn drawn(node: &Node, x: usize, middle: usize) -> String {
    let mut text: String = node.text.chars().take(LETTERS).collect();
    if node.text.chars().count() > LETTERS {
        text.push('…');
    }
    let drawn = format!(
        "<g><title>{}</title><rect x=\"{x}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"none\" \
         stroke=\"var(--soft)\"/><text x=\"{}\" y=\"{}\">{}</text></g>",
        escaped(&node.text),
        middle - BOX.1 / 2,
        BOX.0,
        BOX.1,
        x + 8,
        middle + 4,
        escaped(&text)
    );
    match &node.address {
        Some(address) => format!("<a href=\"{}\">{drawn}</a>", escaped(address)),
        None => drawn,
    }
}
