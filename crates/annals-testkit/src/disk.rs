//! Disks that cannot be written, whether the tests run as root or as a user who cannot mount anything.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const MOUNTED: &str = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" && exec \"$@\"";

/// The command where `archive` cannot be written: on a read-only file system if mounts are allowed here, else by
/// permissions, which root obeys only without its capabilities. `writable` undoes the latter.
pub fn read_only(archive: &Path, inner: &Command) -> Command {
    let mut command = match can_mount() {
        true => {
            let mut command = Command::new("unshare");
            command.args(["-rm", "sh", "-c", MOUNTED]).arg(archive);
            command
        }
        false => {
            for file in crate::files::files_below(archive) {
                std::fs::set_permissions(file, Permissions::from_mode(0o400)).unwrap();
            }
            std::fs::set_permissions(archive, Permissions::from_mode(0o500)).unwrap();
            let mut command = Command::new(if is_root() { "setpriv" } else { "env" });
            command.args(is_root().then_some("--bounding-set=-all"));
            command
        }
    };
    command.arg(inner.get_program()).args(inner.get_args());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    copy_environment(inner, &mut command);
    command
}

/// Makes an archive writable again.
pub fn writable(archive: &Path) {
    std::fs::set_permissions(archive, Permissions::from_mode(0o700)).unwrap();
    for file in crate::files::files_below(archive) {
        std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }
}

/// The command with a limit on the size of the files that it writes, as a full disk has it for archives that have
/// reached it: root is not exempt, and nothing has to be mounted. `prlimit` can lift it.
pub fn with_file_limit(kibibytes: u64, inner: &Command) -> Command {
    let mut command = Command::new("sh");
    // Without the trap, the signal would end the program.
    let script = format!("trap '' XFSZ; ulimit -S -f {}; exec \"$0\" \"$@\"", kibibytes * 2);
    command.args(["-c", &script]).arg(inner.get_program()).args(inner.get_args()).env_clear();
    copy_environment(inner, &mut command);
    command
}

fn copy_environment(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        to.env(name, value.unwrap_or_default());
    }
}

fn can_mount() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let tried =
        Command::new("unshare").args(["-rm", "sh", "-c", MOUNTED]).arg(folder.path()).arg("true").output();
    tried.is_ok_and(|output| output.status.success())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}
