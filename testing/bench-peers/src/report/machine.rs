//! What the figures were measured on.

use std::{fs, thread};

/// What is known about this machine, and how busy others keep it.
pub(super) fn facts() -> Vec<(&'static str, String)> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let processor = after_colon("/proc/cpuinfo", "model name");
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown").to_owned();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        ("processor", format!("{cores} cores, {processor}")),
        ("kernel", kernel.trim().to_owned()),
        ("load before the run", load),
    ]
}

fn after_colon(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}
