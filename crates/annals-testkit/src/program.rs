//! The path of the program that tests and benches run.

use std::path::PathBuf;

/// The `annals` that cargo built for this test binary or bench. Cargo names it in the environment; a test binary
/// started by hand finds it in its parent directory, where every build puts it.
pub fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("CARGO_BIN_EXE_annals") {
        return program.into();
    }
    let this = std::env::current_exe().expect("the path of this test binary");
    let profile = this.ancestors().nth(2).expect("a test binary is in target/PROFILE/deps");
    let program = profile.join(format!("annals{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{} is missing: run the tests with cargo", program.display());
    program
}
