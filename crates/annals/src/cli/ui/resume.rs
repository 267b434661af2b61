//! The command that continues a session, with the directory that its client has to be started in.

use crate::view::SessionView;

/// A line for a shell.
pub fn resume_line(session: &SessionView) -> String {
    resume_in(session.cwd.as_ref().map(|cwd| cwd.as_str()), &session.resume_command)
}

/// Addresses need no directory.
pub fn resume_in(cwd: Option<&str>, command: &str) -> String {
    match cwd {
        Some(cwd) if !command.contains("://") => format!("cd {} && {command}", shell_word(cwd)),
        _ => command.to_owned(),
    }
}

/// A text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::resume_in;

    #[test]
    fn a_directory_is_one_word() {
        assert_eq!(resume_in(Some("/home/ada/engine"), "go on 1"), "cd /home/ada/engine && go on 1");
        assert_eq!(resume_in(Some("/it's mine"), "c"), r"cd '/it'\''s mine' && c");
        assert_eq!(resume_in(Some("$(x)"), "c"), "cd '$(x)' && c");
        assert_eq!(resume_in(Some("/w"), "https://example.com/c/1"), "https://example.com/c/1");
        assert_eq!(resume_in(None, "c"), "c");
    }
}
