//! The manifest of ChatGPT: nothing on this machine is read for it.

use crate::model::{Footprint, Manifest};

pub static MANIFEST: Manifest = Manifest {
    source: "chatgpt",
    label: "ChatGPT",
    route: "chatgpt",
    reader_version: 1,
    summary: "conversations with ChatGPT; this version reads none of them",
    setup_hint: "keep your data export (ChatGPT: Settings, Data controls, Export data); this version of annals can not read it yet",
    default_homes: &[],
    variables: &[],
    streams: &[],
    searched: &[],
    footprint: Footprint { rules: &[], repository_rules: &[], otherwise: "nothing is read" },
    databases: &[],
    surface: &[],
    bindings: &[],
    retention: None,
    resume_command: "",
};
