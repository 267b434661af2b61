//! docs/requirements.md names tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_proof_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join("docs/requirements.md")).unwrap();
    let mut proofs = 0;
    for line in text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| requirement")) {
        let proof = line.trim_end_matches([' ', '|']).rsplit('`').nth(1).unwrap_or_default();
        assert!(proof.starts_with("it::") || proof.starts_with("slow::"), "no proof: {line}");
        assert!(exists(&root.join("tests"), proof), "{proof} is gone: {line}");
        proofs += 1;
    }
    assert!(proofs > 40, "only {proofs} requirements are proven");
}

/// Whether the module has a test of this name, as a function or over homes.
fn exists(tests: &Path, proof: &str) -> bool {
    let Some((module, test)) = proof.rsplit_once("::") else { return false };
    let module: PathBuf = tests.join(module.replace("::", "/"));
    let files = [module.with_extension("rs"), module.join("mod.rs"), module.join("main.rs")];
    let has_test = |text: &str| {
        let function = format!("fn {test}(");
        let is_test = |at: usize| text[..at].trim_end().ends_with("#[test]");
        let is_over_homes = text.split("over_homes!").skip(1).any(|rest| {
            let names = rest.trim_start_matches([' ', '{', '\n']).split('}').next().unwrap_or_default();
            names.split(',').any(|name| name.trim() == test)
        });
        text.find(&function).is_some_and(|at| is_test(at) || is_over_homes)
    };
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).any(|text| has_test(&text))
}
