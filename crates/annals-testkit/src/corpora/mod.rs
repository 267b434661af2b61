//! Generated homes of any size, the same bytes for the same plan: for benches, and for tests that need bulk.

pub mod chatgpt;
pub mod claude;
pub mod codex;
pub mod gemini;
pub mod generator;
pub mod opencode;

use std::io;
use std::path::Path;

use generator::Plan;

/// Writes homes below a user's home, with sessions of hundreds of steps with calls, files and outputs.
pub fn write_long_sessions(user: &Path) -> io::Result<()> {
    codex::write_codex_home(&user.join(".codex"), &Plan { seed: 7, bytes: 6 << 20, files: 6 })?;
    claude::write_claude_home(&user.join(".claude"), &Plan { seed: 7, bytes: 6 << 20, files: 6 })?;
    Ok(())
}

/// Writes one long transcript of prompts, each below the one before it, except that the one in the middle names a line that
/// is nowhere, and the last one the first. Returns how many there are.
pub fn write_far_parents(user: &Path) -> io::Result<usize> {
    let (session, count) = ("0c1a0000-0000-4000-8000-00000000000a", 3_000);
    let text = "lamp oil ".repeat(200);
    let mut lines = String::new();
    for number in 0..count {
        let parent = match number {
            0 => None,
            _ if number == count / 2 => Some("nowhere".to_owned()),
            _ if number == count - 1 => Some("line-0".to_owned()),
            _ => Some(format!("line-{}", number - 1)),
        };
        let at = format!("2026-03-01T{:02}:{:02}:{:02}.000Z", number / 3600, number / 60 % 60, number % 60);
        let line = serde_json::json!({
            "type": "user", "uuid": format!("line-{number}"), "parentUuid": parent, "sessionId": session,
            "cwd": "/w", "version": "2.1.44", "timestamp": at, "isSidechain": false, "userType": "external",
            "message": {"role": "user", "content": format!("{number} {text}")},
        });
        lines += &format!("{line}\n");
    }
    let folder = user.join(".claude/projects/-w");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join(format!("{session}.jsonl")), lines)?;
    Ok(count)
}
