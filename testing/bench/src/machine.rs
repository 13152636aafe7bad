//! What the figures were measured on.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tokio::time::Instant;

use super::error::BenchError;

/// One line of the head: what, and how it is.
pub(super) type Fact = (&'static str, String);

/// What is known about this machine, and how long its disk takes.
pub(super) fn facts(directory: &Path) -> Result<Vec<Fact>, BenchError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut facts = vec![
        ("hapax", version()),
        ("processor", format!("{cores} cores, {}", after_colon("/proc/cpuinfo", "model name"))),
        ("memory", after_colon("/proc/meminfo", "MemTotal")),
        ("kernel", fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()),
        ("directory", format!("{}, on {}", directory.display(), filesystem(directory))),
        ("fdatasync of 8 KiB", disk(directory)?),
    ];
    if is_memory(directory) {
        let warning =
            "the directory is in memory, so nothing here is durable; set TMPDIR to a disk";
        facts.push(("warning", warning.to_owned()));
    }
    for (_, value) in &mut facts {
        value.truncate(value.trim_end().len());
    }
    Ok(facts)
}

/// The version, and what is checked out where this program was built, if that is still there.
fn version() -> String {
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty=, changed"]);
    let said = git.stderr(Stdio::null()).output().ok().filter(|output| output.status.success());
    let commit = said.and_then(|output| String::from_utf8(output.stdout).ok());
    let commit = commit.map(|commit| format!(", from a directory at {}", commit.trim()));
    let build = if cfg!(debug_assertions) { ", NOT A RELEASE BUILD" } else { "" };
    format!("{}{}{build}", env!("CARGO_PKG_VERSION"), commit.unwrap_or_default())
}

/// The kind of the file system, as the table of mounts names it.
fn filesystem(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    kind_of(&mounts, directory).unwrap_or("an unknown file system").to_owned()
}

/// A later mount hides an earlier one at the same place.
fn kind_of<'a>(mounts: &'a str, directory: &Path) -> Option<&'a str> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let over = mounts.filter(|(place, _)| directory.starts_with(place));
    over.max_by_key(|(place, _)| place.components().count()).map(|(_, kind)| kind)
}

fn after_colon(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim());
    value.unwrap_or("unknown").to_owned()
}

const BLOCK_BYTES: usize = 8 << 10;
const BLOCKS: usize = 128;
const SYNCS: usize = 500;

/// How long it takes to write 8 KiB over a file that exists and to hear that they are on disk.
fn disk(directory: &Path) -> Result<String, BenchError> {
    let mut times = sync_times(directory).map_err(BenchError::Directory)?;
    times.sort_unstable();
    let micros = |share: usize| times[(times.len() - 1) * share / 100].as_micros();
    Ok(format!("{} us median, {} us p99", micros(50), micros(99)))
}

fn sync_times(directory: &Path) -> std::io::Result<Vec<Duration>> {
    let path = directory.join("fdatasync");
    let mut file = File::create(&path)?;
    let block = [7; BLOCK_BYTES];
    for _ in 0..BLOCKS {
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let mut times = Vec::with_capacity(SYNCS);
    for at in 0..SYNCS {
        let offset = u64::try_from(at % BLOCKS * BLOCK_BYTES).unwrap_or(0);
        let began = Instant::now();
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(&block)?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    fs::remove_file(&path)?;
    Ok(times)
}

fn is_memory(directory: &Path) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(directory).ok().and_then(|stat| u64::try_from(stat.f_type).ok());
    kind.is_some_and(|kind| kind == TMPFS || kind == RAMFS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_says_what_a_directory_is_on() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/b xfs rw 0 0\n";
        let kind = |directory: &str| kind_of(mounts, Path::new(directory));
        assert_eq!(kind("/tmp/bench"), Some("tmpfs"));
        assert_eq!(kind("/tmp/b/bench"), Some("xfs"));
        assert_eq!(kind("/tmpfiles"), Some("ext4"));
    }
}
