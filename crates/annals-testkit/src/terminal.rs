//! A terminal for the program: what it prints to people, and keys that are typed.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long something may take that must happen; machines are slow at times.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a separate terminal.
pub struct Terminal {
    child: Child,
    keys: File,
    screen: Arc<Screen>,
    reader: Option<JoinHandle<()>>,
}

/// Everything that was printed, escape sequences included.
#[derive(Default)]
struct Screen {
    printed: Mutex<Vec<u8>>,
    changed: Condvar,
}

impl Terminal {
    /// Starts the command in a terminal with this many columns.
    pub fn start(mut command: Command, columns: u16) -> Terminal {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let side = || File::from(open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
        let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keys, size).unwrap();
        command.stdin(Stdio::from(side())).stdout(Stdio::from(side())).stderr(Stdio::from(side()));
        let child = command.spawn().unwrap();
        // The terminal is closed when the last of these files is.
        drop(command);
        let keys = File::from(keys);
        let (screen, mut output) = (Arc::<Screen>::default(), keys.try_clone().unwrap());
        let shown = screen.clone();
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                match output.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(count) => {
                        shown.printed.lock().unwrap().extend_from_slice(&bytes[..count]);
                        shown.changed.notify_all();
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // Every program in the terminal has ended.
                    Err(_) => return,
                }
            }
        });
        Terminal { child, keys, screen, reader: Some(reader) }
    }

    /// Waits until this text was printed.
    pub fn wait_for(&self, text: &str) {
        let printed = self.screen.printed.lock().unwrap();
        let lacks = |printed: &mut Vec<u8>| !String::from_utf8_lossy(printed).contains(text);
        let (printed, _) = self.screen.changed.wait_timeout_while(printed, PATIENCE, lacks).unwrap();
        let printed = String::from_utf8_lossy(&printed);
        assert!(printed.contains(text), "{text:?} was never printed, but:\n{printed}");
    }

    pub fn type_keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the program to end; its exit code, and all that it printed.
    pub fn finish(mut self) -> (i32, String) {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        let printed = self.screen.printed.lock().unwrap();
        (code, String::from_utf8_lossy(&printed).replace("\r\n", "\n"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text without the sequences that give it colours.
pub fn without_colour(text: &str) -> String {
    let colour = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    colour.replace_all(text, "").into_owned()
}
