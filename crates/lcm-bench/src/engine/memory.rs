//! Peak memory of this process.

/// Returns the peak of this process's physical memory in bytes; `None`: the kernel does not report
/// the peak.
pub(super) fn process_bytes_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}
