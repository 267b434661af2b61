//! Reports on containers, their members and elements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::collect::ingest::append::AppendKind;

/// The result of a container.
#[derive(Debug, Default)]
pub struct ContainerReport {
    pub path: PathBuf,
    pub kind: &'static str,
    pub members: Vec<MemberReport>,
    /// By source.
    pub totals: BTreeMap<&'static str, ImportTotals>,
    pub warnings: Vec<String>,
    /// It could not be opened at all.
    pub failed: bool,
    pub hash: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ImportTotals {
    pub new: u64,
    pub changed: u64,
    pub unchanged: u64,
    pub captured_bytes: u64,
    /// Elements that were kept as they are because no source could read them.
    pub aside: u64,
}

#[derive(Debug, Clone)]
pub struct MemberReport {
    pub name: String,
    pub bytes: u64,
    /// `taken`, `opened`, `left_out`, `refused`, `unknown`, or `evidence` of a repository that stays there.
    pub verdict: &'static str,
    pub source: Option<&'static str>,
    /// What it was recognised as, or why it was not imported.
    pub what: String,
    pub elements: u64,
    pub aside: u64,
}

impl ContainerReport {
    pub fn is_recognised(&self) -> bool {
        self.members.iter().any(|member| member.source.is_some() || member.verdict == "evidence")
    }
}

impl ImportTotals {
    pub fn count(&mut self, added: Option<AppendKind>) {
        match added {
            Some(AppendKind::New) => self.new += 1,
            Some(AppendKind::Changed) => self.changed += 1,
            None => self.unchanged += 1,
        }
    }
}
