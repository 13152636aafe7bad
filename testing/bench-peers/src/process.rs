//! What processes have used, as the system counts it.

use std::{fs, io, time::Duration};

use crate::error::BenchError;

/// CPU time a server has used: its first process, its children, and those that have ended.
pub(crate) fn family_cpu(pid: u32) -> Result<Duration, BenchError> {
    let fail = BenchError::system("reading what a process has used");
    let first = Stat::read(&pid.to_string()).map_err(&fail)?;
    let mut used = first.used + first.used_by_ended_children;
    for entry in fs::read_dir("/proc").map_err(&fail)? {
        let name = entry.map_err(&fail)?.file_name();
        let Some(name) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else { continue };
        // A process may end while we look.
        if let Ok(stat) = Stat::read(name)
            && stat.parent == pid
        {
            used += stat.used;
        }
    }
    Ok(ticks(used))
}

/// Fields of `/proc/PID/stat`, times in clock ticks.
struct Stat {
    parent: u32,
    used: u64,
    used_by_ended_children: u64,
}

impl Stat {
    fn read(pid: &str) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name in parentheses may hold anything, so fields are counted after it.
        let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<u64> =
            rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or(0);
        Ok(Self {
            parent: u32::try_from(field(1)).unwrap_or(0),
            used: field(11) + field(12),
            used_by_ended_children: field(13) + field(14),
        })
    }
}

fn ticks(ticks: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / per_second))
}
