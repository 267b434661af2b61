//! Files that no rule names: small texts are kept, and files named like secrets are never opened.

use std::io::Read as _;
use std::path::Path;

/// Larger files are data, not notes.
const LARGEST: u64 = 1_000_000;

/// The number of bytes that are checked for text.
const START: usize = 4_096;

/// How a file that no rule names is treated.
#[derive(Debug, PartialEq, Eq)]
pub enum UnknownFile {
    Keep,
    /// Its name suggests credentials or a process environment: never opened.
    Secret,
    /// Large or binary: reported, not kept.
    Leave,
}

/// Decides by name and size, and by the first bytes if the name does not show whether it is text.
pub fn classify(path: &str, disk: &Path, size: u64) -> UnknownFile {
    if sounds_secret(path) {
        return UnknownFile::Secret;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let extension = extension.as_deref().unwrap_or_default();
    if size >= LARGEST || BINARY.contains(&extension) {
        return UnknownFile::Leave;
    }
    match TEXT.contains(&extension) || starts_as_text(disk) {
        true => UnknownFile::Keep,
        false => UnknownFile::Leave,
    }
}

/// True for names of credentials and process environments, and for everything below folders with such names.
pub fn sounds_secret(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    let small = name.to_ascii_lowercase();
    let extension = small.rsplit_once('.').map_or("", |(_, extension)| extension);
    SECRET_EXTENSIONS.contains(&extension)
        || SECRET_PARTS.iter().any(|part| small.contains(part))
        || words(name).any(|word| SECRET_WORDS.contains(&word.as_str()))
        || parts.any(|folder| SECRET_FOLDERS.contains(&folder.to_ascii_lowercase().as_str()))
}

/// `accessToken.json` and `access_token.json` have the words `access`, `token` and `json`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || before.is_lowercase() && letter.is_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.into_iter()
}

fn starts_as_text(disk: &Path) -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open(disk).and_then(|file| file.take(START as u64).read_to_end(&mut start));
    let is_utf8 = match std::str::from_utf8(&start) {
        Ok(_) => true,
        // The last character may be truncated.
        Err(error) => error.error_len().is_none() && start.len() == START,
    };
    read.is_ok() && is_utf8 && !start.contains(&0)
}

const SECRET_PARTS: &[&str] =
    &["credential", "password", "passwd", "passphrase", "secret", "apikey", "api_key", "api-key", "oauth"];

const SECRET_WORDS: &[&str] = &[
    "auth",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "bearer",
    "cert",
    "cookie",
    "cookies",
    "cred",
    "creds",
    "dsa",
    "ecdsa",
    "ed25519",
    "env",
    "environ",
    "environment",
    "envrc",
    "jwt",
    "kerberos",
    "key",
    "keychain",
    "keyring",
    "keys",
    "netrc",
    "npmrc",
    "pgpass",
    "pypirc",
    "rsa",
    "token",
    "tokens",
    "vault",
    "yarnrc",
];

const SECRET_EXTENSIONS: &[&str] = &[
    "age", "asc", "cer", "crt", "der", "env", "gpg", "jks", "kdbx", "key", "keystore", "keytab", "p12", "p8",
    "pem", "pfx", "pgp", "ppk",
];

const SECRET_FOLDERS: &[&str] = &[
    ".aws",
    ".azure",
    ".docker",
    ".gnupg",
    ".kube",
    ".ssh",
    "auth",
    "certs",
    "credentials",
    "keys",
    "private",
    "secrets",
    "tokens",
    "vault",
];

/// Extensions of text files, which need not be opened.
const TEXT: &[&str] = &[
    "cfg", "conf", "cjs", "css", "csv", "fish", "html", "ini", "js", "json", "jsonc", "jsonl", "lua", "md",
    "mdc", "mjs", "org", "pl", "ps1", "py", "rb", "rs", "rst", "sh", "sql", "tmpl", "toml", "ts", "tsv",
    "txt", "xml", "yaml", "yml", "zsh",
];

/// Never text, whatever their current content.
const BINARY: &[&str] = &[
    "7z",
    "a",
    "avi",
    "bin",
    "bmp",
    "bz2",
    "class",
    "db",
    "db-shm",
    "db-wal",
    "dll",
    "dylib",
    "exe",
    "gif",
    "gz",
    "heapsnapshot",
    "ico",
    "jar",
    "jpeg",
    "jpg",
    "lock",
    "mov",
    "mp3",
    "mp4",
    "node",
    "o",
    "ogg",
    "pdf",
    "pid",
    "png",
    "pyc",
    "so",
    "sock",
    "sqlite",
    "sqlite-shm",
    "sqlite-wal",
    "tar",
    "tgz",
    "ttf",
    "wasm",
    "wav",
    "webm",
    "webp",
    "woff",
    "woff2",
    "xz",
    "zip",
    "zst",
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{LARGEST, UnknownFile, classify, sounds_secret};

    #[test]
    fn names_of_credentials_and_environments_are_recognised() {
        for path in [
            "auth.json",
            "my-auth-tokens.txt",
            "accessToken.json",
            "GITHUB_TOKEN",
            "id_rsa",
            "x/id_ed25519.pub",
            ".env",
            ".env.local",
            "prod.env",
            "env.sh",
            "environ",
            "api-key.txt",
            "apikeys.json",
            "client_secret_12.json",
            "Passwords.md",
            "tls/server.pem",
            ".ssh/config",
            "secrets/readme.txt",
            ".netrc",
            "x/.npmrc",
            "cookies.txt",
        ] {
            assert!(sounds_secret(path), "{path}");
        }
        for path in [
            "notes.txt",
            "RTK.md",
            "captured-insights.md",
            "tokenizer.md",
            "keyboard.txt",
            "monkey.json",
            "author.txt",
            "statusline.sh",
            "envelope.md",
            "keybindings-old.json",
        ] {
            assert!(!sounds_secret(path), "{path}");
        }
    }

    #[test]
    fn small_texts_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let judged = |name: &str, bytes: &[u8], size: u64| {
            let disk = folder.path().join(name);
            std::fs::write(&disk, bytes).expect("written");
            classify(name, &disk, size)
        };
        assert_eq!(judged("statusline", b"#!/bin/sh\n", 10), UnknownFile::Keep);
        assert_eq!(judged("notes.txt", b"a", 1), UnknownFile::Keep);
        assert_eq!(judged("notes2.txt", b"a", LARGEST), UnknownFile::Leave);
        assert_eq!(judged("picture", b"\x89PNG\0", 5), UnknownFile::Leave);
        assert_eq!(judged("newthing.db", b"?", 1), UnknownFile::Leave);
        assert_eq!(judged("long", &"é".repeat(4_000).into_bytes()[..8_000], 8_000), UnknownFile::Keep);
        assert_eq!(judged("odd", &[b"a", "é".repeat(3_000).as_bytes()].concat(), 6_001), UnknownFile::Keep);
        assert_eq!(judged("cut", b"caf\xc3", 4), UnknownFile::Leave, "a file that ends within a character");
        assert_eq!(classify("gone", Path::new("/nowhere/gone"), 1), UnknownFile::Leave);
        assert_eq!(judged("token.txt", b"a", 1), UnknownFile::Secret);
    }
}
