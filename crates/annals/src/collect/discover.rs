//! Finds assistants on this machine that no source reads: by the names of their folders, without opening a file.

use std::path::{Path, PathBuf};

use annals_sources::{Settings, registry};

/// Folders below the user's home, by assistant. Those of registered sources are left out.
const ASSISTANTS: &[(&str, &[&str])] = &[
    ("Amp", &[".local/share/amp"]),
    ("Augment", &[".augment"]),
    ("Continue", &[".continue"]),
    ("Crush", &[".local/share/crush"]),
    ("Cursor", &[".cursor", ".config/Cursor", "Library/Application Support/Cursor"]),
    ("Droid", &[".factory"]),
    ("Goose", &[".local/share/goose", ".config/goose"]),
    ("Junie", &[".junie"]),
    ("Kilo Code", &["{vscode}/globalStorage/kilocode.kilo-code"]),
    ("Kimi CLI", &[".kimi"]),
    ("Kiro", &[".kiro"]),
    ("OpenHands", &[".openhands"]),
    ("Roo Code", &["{vscode}/globalStorage/rooveterinaryinc.roo-cline"]),
    ("Trae", &[".trae"]),
    ("VS Code Copilot Chat", &["{vscode}/globalStorage/github.copilot-chat", "{vscode}/workspaceStorage"]),
    ("Warp", &[".warp", ".local/state/warp-terminal"]),
    ("Windsurf", &[".codeium/windsurf", ".config/Windsurf", "Library/Application Support/Windsurf"]),
    ("Zed", &[".local/share/zed/threads", "Library/Application Support/Zed/threads"]),
];

/// Where VS Code keeps what extensions write.
const VSCODE: &[&str] = &[".config/Code/User", "Library/Application Support/Code/User"];

/// Names that are looked at in one folder; beyond this, sizes are too low.
const MOST_NAMES: u64 = 500_000;

/// A folder of an assistant, with its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadAssistant {
    pub label: &'static str,
    pub path: PathBuf,
    pub files: u64,
    pub bytes: u64,
}

/// Assistants with files on this machine that no source reads, in the order of their names.
pub fn unread_assistants(settings: &dyn Settings) -> Vec<UnreadAssistant> {
    let Some(user) = settings.user_home() else { return Vec::new() };
    let read: Vec<PathBuf> =
        registry().iter().flat_map(|source| source.homes(settings)).map(|home| home.root).collect();
    let is_read = |path: &Path| read.iter().any(|root| path.starts_with(root));
    let mut found = Vec::new();
    for (label, folders) in ASSISTANTS {
        for path in folders.iter().flat_map(|folder| places(folder)).map(|place| user.join(place)) {
            if is_read(&path) {
                continue;
            }
            let (files, bytes) = weigh(&path);
            if files > 0 {
                found.push(UnreadAssistant { label, path, files, bytes });
            }
        }
    }
    found
}

fn places(folder: &str) -> Vec<String> {
    match folder.strip_prefix("{vscode}") {
        Some(rest) => VSCODE.iter().map(|base| format!("{base}{rest}")).collect(),
        None => vec![folder.to_owned()],
    }
}

/// Files and bytes below a folder. Links are not followed.
fn weigh(folder: &Path) -> (u64, u64) {
    let (mut files, mut bytes, mut names) = (0, 0, 0);
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let mut open: Vec<PathBuf> =
        Some(folder.to_owned()).filter(|folder| is_folder(folder)).into_iter().collect();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            names += 1;
            if names > MOST_NAMES {
                return (files, bytes);
            }
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                open.push(entry.path());
            } else if metadata.is_file() {
                files += 1;
                bytes += metadata.len();
            }
        }
    }
    (files, bytes)
}
