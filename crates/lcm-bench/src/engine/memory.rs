//! Peak memory of this process.

/// The most bytes of physical memory that this process has had at a time, as the kernel counts
/// them; `None` where the kernel does not say.
pub(super) fn process_bytes_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
