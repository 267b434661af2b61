//! What a run cost: processor time and peak memory of this process, where the system tells.

use std::time::Instant;

use super::output::Output;

/// Processor time in milliseconds, from the scheduler's own count.
pub fn cpu_ms() -> Option<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let mut nanos = 0u64;
    for task in tasks.flatten() {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        nanos += text.split_ascii_whitespace().next()?.parse::<u64>().ok()?;
    }
    // Threads that ended count in the process's own clock, which is coarser.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((nanos / 1_000_000).max(ticks * 10))
}

/// The most memory this process ever held.
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
        output.note(format!("processor {cpu} ms, peak memory {} MiB", memory >> 20));
    }
}
