//! How much memory a process has allocated.

/// Kilobytes that a process allocated, in memory or swapped out. Its resident size also has pages of files, which come and
/// go with the load of the machine.
pub fn allocated(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let size = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    size("RssAnon:") + size("VmSwap:")
}
