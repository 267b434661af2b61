//! The manifest of OpenAI API: nothing on this machine is read for it.

use crate::model::{Footprint, Manifest};

pub static MANIFEST: Manifest = Manifest {
    source: "openai_api",
    label: "OpenAI API",
    route: "openai-api",
    reader_version: 1,
    summary: "calls of the OpenAI API in trace files of your own; this version reads none of them",
    setup_hint: "keep trace files of your own calls; the API itself has no history to ask for, and this version of annals can not read traces yet",
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
