//! Which source takes which member of a container, by its first bytes.

use std::io;

use super::containers::{Container, Kind};
use super::elements::{Piece, split};
use super::report::{ContainerReport, MemberReport};
use annals_sources::{Intake, Judgement, Member, Source, Taking};

/// A source at work on one container.
pub struct SourceIntake {
    pub source: &'static dyn Source,
    pub intake: Box<dyn Intake>,
}

/// A member that a source takes.
pub struct MemberPlan {
    pub at: usize,
    pub intake: usize,
    pub taking: Taking,
}

/// Asks the sources about every member, and opens the zips that they want opened.
pub fn judge(
    container: &mut Container,
    desks: &mut [SourceIntake],
    report: &mut ContainerReport,
) -> Vec<MemberPlan> {
    let names: Vec<&str> = container.members.iter().map(|member| member.name.as_str()).collect();
    for intake in desks.iter_mut() {
        intake.intake.names(&names);
    }
    let mut plans = Vec::new();
    let mut at = 0;
    while at < container.members.len() {
        let entry = &container.members[at];
        let (name, size, modified, refused) = (entry.name.clone(), entry.size, entry.modified, entry.refused);
        let mut told = MemberReport {
            name: name.clone(),
            bytes: size,
            verdict: "unknown",
            source: None,
            what: String::new(),
            elements: 0,
            aside: 0,
        };
        if let Some(why) = refused {
            (told.verdict, told.what) = ("refused", why.to_owned());
            if why != "operating system file" {
                report.problems.push(format!("{name}: {why}"));
            }
            report.members.push(told);
            at += 1;
            continue;
        }
        let closed = desks.iter().find_map(|intake| Some((intake, intake.intake.leaves_closed(&name)?)));
        if let Some((intake, why)) = closed {
            (told.verdict, told.what) = ("left_out", why.to_owned());
            told.source = Some(intake.source.manifest().source);
            report.members.push(told);
            at += 1;
            continue;
        }
        let head = container.head(at);
        if let Err(error) = &head {
            report.problems.push(format!("{name}: {error}"));
        }
        let member = Member { name: &name, size, modified, head: head.as_deref().unwrap_or_default() };
        let judged = desks.iter_mut().enumerate().find_map(|(number, intake)| {
            let judgement = intake.intake.judge(&member);
            (judgement != Judgement::Unknown).then_some((number, judgement))
        });
        let opens = match judged {
            Some((number, Judgement::Take(taking))) => {
                (told.verdict, told.what) = ("taken", taking.what.to_owned());
                told.source = Some(desks[number].source.manifest().source);
                plans.push(MemberPlan { at, intake: number, taking });
                false
            }
            Some((number, Judgement::LeaveOut(why))) => {
                (told.verdict, told.what) = ("left_out", why.to_owned());
                told.source = Some(desks[number].source.manifest().source);
                false
            }
            Some((number, Judgement::Open)) => {
                told.source = Some(desks[number].source.manifest().source);
                true
            }
            // A folder of downloads.
            Some((_, Judgement::Unknown)) | None => container.kind == Kind::Folder && container.is_zip(at),
        };
        if opens {
            match container.look_into(at) {
                Ok(()) => (told.verdict, told.what) = ("opened", "a zip".to_owned()),
                Err(why) => {
                    report.problems.push(format!("{name}: {why}"));
                    (told.verdict, told.what) = ("refused", why);
                }
            }
        }
        report.members.push(told);
        at += 1;
    }
    plans
}

/// The first look at all elements of a member.
pub fn look(
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
                intake.intake.look(&member, element);
            }
            Ok(())
        })
    });
    // The second reading tells the same again, and more.
    if let Err(error) = read.and_then(|read| read) {
        report.problems.push(format!("{name}: {error}"));
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
