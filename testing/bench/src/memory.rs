//! The memory use of processes.

/// Resident memory in KiB, from `/proc/self/status`; `None` where there is no such file.
pub(crate) fn resident_kib() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS")
}

/// The memory use of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    /// Resident now, in KiB.
    pub(crate) now: u64,
    /// The most that was ever resident, in KiB.
    pub(crate) peak: u64,
}

/// The memory use of the process with this id; `None` where it cannot be read.
pub(crate) fn memory_of(process: u32) -> Option<MemoryUse> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(MemoryUse { now: field(&status, "VmRSS")?, peak: field(&status, "VmHWM")? })
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "Name:\tbench\nVmRSSPeak:\t  9 kB\nVmRSS:\t   1234 kB\nThreads:\t3\n";
        let table = [("VmRSS", Some(1234)), ("VmHWM", None), ("Threads", None)];
        for (name, want) in table {
            assert_eq!(field(status, name), want, "{name}");
        }
    }
}
