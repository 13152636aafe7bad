//! What processes have used, as the system counts it.

use std::{fs, io, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use super::error::BenchError;

/// CPU time this process has used.
pub(super) fn own_cpu() -> Result<Duration, BenchError> {
    let used = clock_gettime(ClockId::ProcessCPUTime).try_into();
    used.map_err(|_| BenchError::Proc(io::ErrorKind::InvalidData.into()))
}

/// CPU time a server has used: its first process, its children, and those that have ended.
pub(super) fn family_cpu(pid: u32) -> Result<Duration, BenchError> {
    let first = ProcessStat::read(&pid.to_string()).map_err(BenchError::Proc)?;
    let mut used = first.used(&pid.to_string()) + ticks(first.used_by_ended_children);
    for entry in fs::read_dir("/proc").map_err(BenchError::Proc)? {
        let name = entry.map_err(BenchError::Proc)?.file_name();
        let Some(name) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else { continue };
        // A process may end while we look.
        if let Ok(stat) = ProcessStat::read(name)
            && stat.parent == pid
        {
            used += stat.used(name);
        }
    }
    Ok(used)
}

/// Memory this process holds that is not a mapped file, in bytes.
pub(super) fn own_memory() -> Result<u64, BenchError> {
    let text = fs::read_to_string("/proc/self/statm").map_err(BenchError::Proc)?;
    let mut pages = text.split_whitespace().map(|field| field.parse::<u64>().unwrap_or(0));
    let (resident, shared) = (pages.nth(1).unwrap_or(0), pages.next().unwrap_or(0));
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    Ok(resident.saturating_sub(shared) * page_bytes)
}

/// Fields of `/proc/PID/stat`, times in clock ticks.
struct ProcessStat {
    parent: u32,
    threads: u64,
    used: u64,
    used_by_ended_children: u64,
}

impl ProcessStat {
    fn read(pid: &str) -> Result<Self, io::Error> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything, so fields are counted after it.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<u64> =
            rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        Ok(Self {
            parent: u32::try_from(field(1)).unwrap_or(0),
            threads: field(17),
            used: field(11) + field(12),
            used_by_ended_children: field(13) + field(14),
        })
    }
}

impl ProcessStat {
    /// The exact time of a process with one thread. Ticks are cut off for each process, and a server
    /// with many short-lived ones would seem to have used nothing.
    fn used(&self, pid: &str) -> Duration {
        let exact = || {
            let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
        };
        let exact = if self.threads == 1 { exact() } else { None };
        exact.unwrap_or_else(|| ticks(self.used))
    }
}

fn ticks(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / per_second))
}
