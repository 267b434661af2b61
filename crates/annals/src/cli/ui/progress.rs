//! A progress bar on a terminal, silence everywhere else.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::collect::Progress;

pub struct Bar {
    bar: Option<ProgressBar>,
    files: u64,
    all_files: u64,
    shown: bool,
}

impl Bar {
    pub fn new(quiet: bool) -> Bar {
        Bar { bar: None, files: 0, all_files: 0, shown: !quiet && std::io::stderr().is_terminal() }
    }
}

impl Progress for Bar {
    fn begin(&mut self, files: u64, bytes: u64) {
        self.all_files = files;
        if !self.shown || files == 0 {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr_with_hz(10));
        let form = "{wide_bar} {bytes}/{total_bytes} · {msg} files · {bytes_per_sec} · {eta} left";
        if let Ok(style) = ProgressStyle::with_template(form) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        self.bar = Some(bar);
    }

    fn advance(&mut self, files: u64, bytes: u64) {
        self.files += files;
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
            bar.set_message(format!("{}/{}", self.files, self.all_files));
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
