//! Common file operations of tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};

pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in files_below(from) {
        copy_file(&file, &to.join(file.strip_prefix(from).unwrap()));
    }
}

/// Copies a file with its modification time, which records of complete files use. The copy is writable.
pub fn copy_file(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    let times = std::fs::FileTimes::new().set_modified(from.metadata().unwrap().modified().unwrap());
    std::fs::File::options().write(true).open(to).unwrap().set_times(times).unwrap();
}

pub fn append(path: &Path, text: &str) {
    std::fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}
