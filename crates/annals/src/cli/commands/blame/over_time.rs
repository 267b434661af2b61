//! `annals blame --stat DIR --over-time`: shares of lines by month, and how long lines of sessions survive.

use std::path::Path;

use serde::Serialize;

use super::{AT_ONCE, Place, trace};
use crate::cli::git;
use crate::cli::ui::table::Column;
use crate::cli::{Context, Outcome, now};
use crate::view::format::{counted, percent};
use crate::view::{
    CodeFile, CommittedLine, FileState, MonthShares, MonthSums, SURVIVAL_DAYS, Share, Survival, View, follow,
};
use annals_core::{Error, Result};

/// Files whose history is read, and commits of each.
const MOST_FILES: usize = 300;
const MOST_COMMITS: usize = 200;
/// Shares of one month that the table shows.
const SHOWN_SHARES: usize = 3;

#[derive(Serialize)]
struct OverTime {
    files: usize,
    lines: usize,
    months: Vec<MonthShares>,
    survival: Vec<Survival>,
    /// Files whose lines were followed, and those that were left out because there are too many.
    followed_files: usize,
    left_out_files: usize,
    /// Files with more commits than are read: their history starts late.
    shortened_files: usize,
}

pub fn run(context: &mut Context, view: &View<'_>, place: &Place) -> Result<Outcome> {
    let Some(commit) = place.commit.clone() else {
        return Err(Error::bad_request("not in a git repository with commits")
            .hint("--over-time needs git and the history of the directory"));
    };
    let (mut files, mut lines, mut at_once) = (Vec::new(), 0, 0);
    let mut months = MonthSums::default();
    let mut written: Vec<CodeFile> = Vec::new();
    let mut count = 0;
    for path in place.files()? {
        let Ok(file) = place.read(&path) else { continue };
        count += 1;
        at_once += file.text.lines().count();
        lines += file.text.lines().count();
        files.push(file);
        if at_once >= AT_ONCE {
            sum_months(view, place, std::mem::take(&mut files), &mut months, &mut written)?;
            at_once = 0;
        }
    }
    sum_months(view, place, files, &mut months, &mut written)?;
    let left_out_files = written.len().saturating_sub(MOST_FILES);
    written.truncate(MOST_FILES);
    let mut survival = SURVIVAL_DAYS.map(|days| Survival { days, ..Survival::default() });
    let (mut followed_files, mut shortened_files) = (0, 0);
    for file in &written {
        let edits = view.at_once(|| view.edits_of(file))?;
        if edits.is_empty() {
            continue;
        }
        let path = Path::new(&file.path);
        let history = git::history_of(path, &commit, MOST_COMMITS);
        followed_files += 1;
        shortened_files += usize::from(history.len() == MOST_COMMITS);
        let states = history.iter().filter_map(|(hash, at)| {
            let text = git::committed_text(path, hash)?;
            Some(FileState::new(*at, &String::from_utf8_lossy(&text)))
        });
        follow(&edits, &states.collect::<Vec<_>>(), now(), &mut survival);
    }
    let answer = OverTime {
        files: count,
        lines,
        months: months.finish(),
        survival: survival.to_vec(),
        followed_files,
        left_out_files,
        shortened_files,
    };
    if context.json {
        context.output.json(&answer)?;
    } else {
        print(context, &answer)?;
    }
    let found = answer.months.iter().any(|month| month.written_by_sessions > 0);
    Ok(if found { Outcome::Done } else { Outcome::Nothing })
}

/// Dates every line, traces it, and adds it to its month. Files that sessions wrote are kept, without their lines.
fn sum_months(
    view: &View<'_>,
    place: &Place,
    mut files: Vec<CodeFile>,
    months: &mut MonthSums,
    written: &mut Vec<CodeFile>,
) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = files.len().div_ceil(threads).max(1);
    let mut dated: Vec<Vec<Option<CommittedLine>>> = vec![Vec::new(); files.len()];
    std::thread::scope(|scope| {
        for (files, dated) in files.chunks_mut(share).zip(dated.chunks_mut(share)) {
            scope.spawn(move || {
                for (file, dated) in files.iter_mut().zip(dated) {
                    let commits = place.date(file).unwrap_or_default();
                    let line = |commit: git::LineCommit| {
                        Some(CommittedLine { at: commit.at?, author: commit.author })
                    };
                    *dated = commits.into_iter().map(|commit| commit.and_then(line)).collect();
                }
            });
        }
    });
    for ((blame, commits), file) in trace(view, &files)?.iter().zip(&dated).zip(files) {
        months.add(view, blame, commits);
        if !blame.origins.is_empty() {
            written.push(CodeFile { text: String::new(), deadlines: Vec::new(), ..file });
        }
    }
    Ok(())
}

fn print(context: &mut Context, answer: &OverTime) -> Result<()> {
    let names = |shares: &[Share]| {
        let shown = shares.iter().take(SHOWN_SHARES);
        let name = |share: &Share| format!("{} {}", share.name, percent(share.share));
        shown.map(name).collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<Vec<String>> = answer
        .months
        .iter()
        .map(|month| {
            let share = month.written_by_sessions as f64 / month.lines.max(1) as f64;
            vec![
                month.month.clone(),
                month.lines.to_string(),
                percent(share),
                names(&month.models),
                names(&month.sessions),
                names(&month.people),
            ]
        })
        .collect();
    let columns = [
        Column::text("month"),
        Column::number("lines"),
        Column::number("by sessions"),
        Column::text("models").cut_end(16),
        Column::text("sessions").cut_end(16).leave_out(1),
        Column::text("people").cut_end(12).leave_out(2),
    ];
    context.output.table("", &columns, &rows)?;
    context.output.line("")?;
    let rows: Vec<Vec<String>> = answer
        .survival
        .iter()
        .map(|sum| {
            let share = if sum.committed == 0 { "-".to_owned() } else { percent(sum.share) };
            vec![sum.days.to_string(), sum.committed.to_string(), sum.standing.to_string(), share]
        })
        .collect();
    let columns = ["days", "committed", "standing", "share"].map(Column::number);
    context.output.table("", &columns, &rows)?;
    let files = counted(answer.files, "file");
    context.output.line("")?;
    context.output.line(format!(
        "{} in {files} that stand today, by the month of their commit",
        counted(answer.lines, "line")
    ))?;
    if answer.left_out_files > 0 {
        let left_out = counted(answer.left_out_files, "file");
        context.output.note(format!("note: survival is that of {MOST_FILES} files; {left_out} left out"));
    }
    if answer.shortened_files > 0 {
        let files = counted(answer.shortened_files, "file");
        context.output.note(format!("note: only the last {MOST_COMMITS} commits of {files} are considered"));
    }
    Ok(())
}
