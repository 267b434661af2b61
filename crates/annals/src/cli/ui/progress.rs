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

/// Progress of one long task in steps; nothing is shown unless it takes several.
pub struct StepBar {
    bar: Option<ProgressBar>,
    shown: bool,
    what: &'static str,
}

impl StepBar {
    pub fn new(quiet: bool, what: &'static str) -> StepBar {
        StepBar { bar: None, shown: !quiet && std::io::stderr().is_terminal(), what }
    }

    pub fn set(&mut self, done: u64, all: u64) {
        if !self.shown {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr_with_hz(10));
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {percent} % · {eta} left") {
                bar.set_style(style);
            }
            bar.set_message(self.what);
            bar
        });
        bar.set_position(done);
        if done >= all {
            bar.finish_and_clear();
        }
    }
}
