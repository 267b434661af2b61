//! Which source takes which member of a container, by its first bytes.

use std::io;

use super::containers::{Container, Kind};
use super::elements::{Piece, split};
use super::report::{ContainerReport, MemberReport};
use annals_sources::{Intake, Judgement, Member, Source, Taking};

/// A source processing one container.
pub struct SourceIntake {
    pub source: &'static dyn Source,
    pub intake: Box<dyn Intake>,
}

/// A member that a source accepts.
pub struct MemberPlan {
    pub at: usize,
    pub intake: usize,
    pub taking: Taking,
}

/// Asks the sources about every member, and opens nested zips that they accept.
pub fn judge(
    container: &mut Container,
    intakes: &mut [SourceIntake],
    report: &mut ContainerReport,
) -> Vec<MemberPlan> {
    let names: Vec<&str> = container.members.iter().map(|member| member.name.as_str()).collect();
    for intake in intakes.iter_mut() {
        intake.intake.names(&names);
    }
    let mut plans = Vec::new();
    let mut at = 0;
    while at < container.members.len() {
        let entry = &container.members[at];
        let (name, size, modified, refused) = (entry.name.clone(), entry.size, entry.modified, entry.refused);
        let mut entry = MemberReport {
            name: name.clone(),
            bytes: size,
            verdict: "unknown",
            source: None,
            what: String::new(),
            elements: 0,
            aside: 0,
        };
        if let Some(why) = refused {
            (entry.verdict, entry.what) = ("refused", why.to_owned());
            if why != "operating system file" {
                report.warnings.push(format!("{name}: {why}"));
            }
            report.members.push(entry);
            at += 1;
            continue;
        }
        let closed = intakes.iter().find_map(|intake| Some((intake, intake.intake.leaves_closed(&name)?)));
        if let Some((intake, why)) = closed {
            (entry.verdict, entry.what) = ("left_out", why.to_owned());
            entry.source = Some(intake.source.manifest().source);
            report.members.push(entry);
            at += 1;
            continue;
        }
        let head = container.head(at);
        if let Err(error) = &head {
            report.warnings.push(format!("{name}: {error}"));
        }
        let member = Member { name: &name, size, modified, head: head.as_deref().unwrap_or_default() };
        let judged = intakes.iter_mut().enumerate().find_map(|(number, intake)| {
            let judgement = intake.intake.judge(&member);
            (judgement != Judgement::Unknown).then_some((number, judgement))
        });
        let opens = match judged {
            Some((number, Judgement::Take(taking))) => {
                (entry.verdict, entry.what) = ("taken", taking.what.to_owned());
                entry.source = Some(intakes[number].source.manifest().source);
                plans.push(MemberPlan { at, intake: number, taking });
                false
            }
            Some((number, Judgement::LeaveOut(why))) => {
                (entry.verdict, entry.what) = ("left_out", why.to_owned());
                entry.source = Some(intakes[number].source.manifest().source);
                false
            }
            Some((number, Judgement::Open)) => {
                entry.source = Some(intakes[number].source.manifest().source);
                true
            }
            // A directory of downloads.
            Some((_, Judgement::Unknown)) | None => container.kind == Kind::Folder && container.is_zip(at),
        };
        if opens {
            match container.open_nested(at) {
                Ok(()) => (entry.verdict, entry.what) = ("opened", "a zip".to_owned()),
                Err(why) => {
                    report.warnings.push(format!("{name}: {why}"));
                    (entry.verdict, entry.what) = ("refused", why);
                }
            }
        }
        report.members.push(entry);
        at += 1;
    }
    plans
}

/// Lets a source look at all elements of a member first.
pub fn preview(
    container: &mut Container,
    plan: &MemberPlan,
    intake: &mut SourceIntake,
    report: &mut ContainerReport,
) {
    let entry = &container.members[plan.at];
    let (name, size, modified) = (entry.name.clone(), entry.size, entry.modified);
    let member = Member { name: &name, size, modified, head: &[] };
    let read = container.read(plan.at, |input| {
        split(input, &plan.taking.shape, &mut |piece| -> io::Result<()> {
            if let Piece::Element(element) = piece {
                intake.intake.survey(&member, element);
            }
            Ok(())
        })
    });
    // The second pass reports the same errors, and more.
    if let Err(error) = read.and_then(|read| read) {
        report.warnings.push(format!("{name}: {error}"));
    }
}

/// `part-2` comes before `part-10`.
pub fn by_number(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let letters = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, behind) = rest.split_at(letters);
        let digits = behind.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(behind.len());
        let (number, behind) = behind.split_at(digits);
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::by_number;

    #[test]
    fn numbers_in_names_are_numbers() {
        let mut names = ["c-10.json", "c-2.json", "c.json", "b-3.json"];
        names.sort_by_cached_key(|name| by_number(name));
        assert_eq!(names, ["b-3.json", "c-2.json", "c-10.json", "c.json"]);
    }
}
