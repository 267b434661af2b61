//! CPU time and peak memory of this process, where the system reports them.

use std::time::Instant;

use super::output::Output;

/// CPU time of all threads, finished ones included.
#[cfg(unix)]
pub fn cpu_ms() -> Option<f64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(spent.tv_sec as f64 * 1e3 + spent.tv_nsec as f64 / 1e6)
}

#[cfg(not(unix))]
pub fn cpu_ms() -> Option<f64> {
    None
}

/// Peak resident memory of this process.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

pub struct Clock(Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(Instant::now())
    }

    pub fn wall_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

pub fn report(output: &mut Output) {
    if let (Some(cpu), Some(memory)) = (cpu_ms(), peak_memory_bytes()) {
        output.note(format!("CPU time {cpu:.1} ms, peak memory {} MiB", memory >> 20));
    }
}
