//! How long a sync takes, which is all that can be told from outside about whether it syncs.

use std::{fs::File, io::Write, path::Path, time::Duration};

use tokio::time::Instant;

use super::{Diagnosis, directory};
use crate::{doctor::diagnosis::unseen, units::span};

/// How many are made, and how long that may take in all.
const SYNCS: usize = 64;
const MEASURED_FOR: Duration = Duration::from_secs(2);
/// What is written before each, in bytes: the smallest that a disk writes.
const BYTES: usize = 512;

/// No device answers faster: a write over PCIe and its interrupt take about as long.
const IMPOSSIBLE: Duration = Duration::from_micros(10);
/// Flash takes about as long to be programmed: whoever answers faster has memory of its own in between.
const BUFFERED: Duration = Duration::from_micros(200);
/// A request waits for two of these.
const SLOW: Duration = Duration::from_millis(20);

pub(super) fn examine(path: &Path) -> Diagnosis {
    match measure(directory(path)) {
        Ok(took) => judge(&took),
        Err(error) => unseen("sync", &error.to_string()),
    }
}

/// Each sync of a small write into a file of our own beside the other, which is removed.
fn measure(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file: File = tempfile::tempfile_in(directory)?;
    let (began, mut took) = (Instant::now(), Vec::with_capacity(SYNCS));
    while took.len() < SYNCS && began.elapsed() < MEASURED_FOR {
        file.write_all(&[0x5a; BYTES])?;
        let before = Instant::now();
        file.sync_data()?;
        took.push(before.elapsed());
    }
    took.sort();
    Ok(took)
}

fn judge(sorted: &[Duration]) -> Diagnosis {
    const NAME: &str = "sync";
    let Some(median) = sorted.get(sorted.len() / 2).copied() else {
        return Diagnosis::new(NAME, "not measured");
    };
    let slowest = sorted.last().copied().unwrap_or(median);
    let words = format!(
        "{} in the middle of {}, {} at most, each of {BYTES} bytes into a file of our own",
        span(median),
        sorted.len(),
        span(slowest)
    );
    let found = Diagnosis::new(NAME, words);
    let advice = "ask who runs the disk: hdparm -W /dev/… shows a drive's cache, a virtual machine's host has its own";
    match median {
        median if median < IMPOSSIBLE => found.warning(
            "this is faster than devices answer: probably a sync that does not sync, so that the loss of power loses acknowledged keys",
            advice,
        ),
        median if median < BUFFERED => found.note(
            "either very fast storage with its own power, or a sync that does not sync: it cannot be told from here",
            advice,
        ),
        median if median > SLOW => found.note(
            "a new request waits for two syncs, and those that come together share them",
            "use a faster disk, or one with a cache that has its own power",
        ),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    #[test]
    fn the_time_of_a_sync_is_told_and_never_taken_for_proof() {
        for (micros, severity, words) in [
            (2, Some(Severity::Warning), "probably"),
            (90, Some(Severity::Note), "cannot be told from here"),
            (1500, None, ""),
            (40_000, Some(Severity::Note), "waits for two"),
        ] {
            let told = judge(&[Duration::from_micros(micros); 3]);
            assert_eq!(told.severity(), severity, "{}", told.found);
            let risk = told.concern.map(|concern| concern.risk).unwrap_or_default();
            assert!(risk.contains(words), "{risk}");
        }
    }

    #[test]
    fn measuring_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let took = measure(directory.path()).unwrap();
        assert!(!took.is_empty() && took.is_sorted());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
