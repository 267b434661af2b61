//! Generated homes of any size, the same bytes for the same plan: for benches, and for tests that need bulk.

pub mod chatgpt;
pub mod claude;
pub mod codex;
pub mod generator;

use std::io;
use std::path::Path;

use generator::Plan;

/// Writes homes below a user's home, with sessions of hundreds of steps with calls, files and outputs.
pub fn write_long_sessions(user: &Path) -> io::Result<()> {
    codex::write_codex_home(&user.join(".codex"), &Plan { seed: 7, bytes: 6 << 20, files: 6 })?;
    claude::write_claude_home(&user.join(".claude"), &Plan { seed: 7, bytes: 6 << 20, files: 6 })?;
    Ok(())
}
