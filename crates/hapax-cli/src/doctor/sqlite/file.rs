//! Where the file is, who may read it, and how much room it has.

use std::{fs::Metadata, path::Path};

use super::{Diagnosis, beside, directory};
use crate::units::size;

/// Less than this is little, or too little, for a store that grows.
const ROOM_BYTES: u64 = 1 << 30;
const ROOM_BYTES_MIN: u64 = 100 << 20;
/// The log is copied into the file long before it is this large, unless somebody keeps reading.
const LOG_BYTES: u64 = 256 << 20;

struct FileFacts {
    /// What the file system calls itself, and what that means here.
    file_system: FileSystem,
    /// The rights of the file, as `chmod` writes them; `None` where there are none.
    mode: Option<u32>,
    /// Whether this user may write the file and the directory it is in.
    is_writable: bool,
    free_bytes: Option<u64>,
    bytes: u64,
    log_bytes: u64,
}

/// A file system, by what a file on it can be trusted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileSystem {
    Local(&'static str),
    /// Locks between machines cannot be relied on.
    Network(&'static str),
    /// As good as the program behind it.
    Fuse,
    /// The layer of a container, which goes when the container does.
    Overlay,
    /// Gone when the machine is restarted.
    Memory(&'static str),
    Unknown,
}

const CHECKS: &[fn(&FileFacts) -> Diagnosis] = &[file_system, permissions, writable, room, log];

pub(super) fn examine(path: &Path, metadata: &Metadata) -> Vec<Diagnosis> {
    let facts = FileFacts {
        file_system: file_system_of(directory(path)),
        mode: mode(metadata),
        is_writable: is_writable(path) && is_writable(directory(path)),
        free_bytes: free_bytes(directory(path)),
        bytes: metadata.len(),
        log_bytes: beside(path, "-wal").metadata().map_or(0, |log| log.len()),
    };
    CHECKS.iter().map(|check| check(&facts)).collect()
}

pub(super) fn missing(path: &Path) -> Diagnosis {
    Diagnosis::new("file", format!("there is no file {}", path.display())).warning(
        "where keys were kept before, they are gone, and retries run again; a gateway makes a new file when it starts",
        "correct the path, or start the gateway",
    )
}

pub(super) fn not_a_file(path: &Path) -> Diagnosis {
    Diagnosis::new("file", format!("{} is not a file", path.display()))
        .danger("nothing can be kept there", "name a file: sqlite:/var/lib/hapax/hapax.db")
}

fn file_system(facts: &FileFacts) -> Diagnosis {
    let found = |name: &str| Diagnosis::new("file system", name);
    let elsewhere = "keep the file on a disk of this machine, or keep keys in PostgreSQL";
    match facts.file_system {
        FileSystem::Local(name) => found(name),
        FileSystem::Network(name) => found(name).danger(
            "locks do not hold between machines, and the file can be damaged: the store refuses to open it",
            elsewhere,
        ),
        FileSystem::Fuse => found("FUSE").warning(
            "a sync and a lock are as good as the program behind the file system, which nobody here knows",
            elsewhere,
        ),
        FileSystem::Overlay => found("overlay").warning(
            "this is a container's own layer: every key is gone when the container is removed",
            "mount a volume: podman run -v hapax:/var/lib/hapax …",
        ),
        FileSystem::Memory(name) => found(name).danger(
            "every key is gone when the machine restarts, and retries run again",
            elsewhere,
        ),
        FileSystem::Unknown => found("not known to this program"),
    }
}

fn permissions(facts: &FileFacts) -> Diagnosis {
    const NAME: &str = "permissions";
    match facts.mode {
        None => Diagnosis::new(NAME, "not looked at on this system"),
        Some(mode) if mode & 0o077 == 0 => Diagnosis::new(NAME, format!("{mode:o}")),
        Some(mode) => Diagnosis::new(NAME, format!("{mode:o}")).warning(
            "other users of this machine can read requests and answers as they were",
            "chmod 600 the file and those beside it (-wal, -shm)",
        ),
    }
}

fn writable(facts: &FileFacts) -> Diagnosis {
    const NAME: &str = "writable";
    if facts.is_writable {
        return Diagnosis::new(NAME, "this user may write the file and its directory");
    }
    Diagnosis::new(NAME, "this user may not write the file or its directory").note(
        "a gateway that runs as this user does not start; one that runs as another may",
        "run this as the gateway's user, or chown the file and its directory",
    )
}

fn room(facts: &FileFacts) -> Diagnosis {
    const NAME: &str = "room";
    let Some(free) = facts.free_bytes else {
        return Diagnosis::new(NAME, format!("the file has {}", size(facts.bytes)));
    };
    let words = format!("the file has {}, {} are free", size(facts.bytes), size(free));
    let found = Diagnosis::new(NAME, words);
    let risk = "a store without room refuses every new key with 503";
    let advice =
        "free some room, shorten retention, or move the file: hapax plan says how much is needed";
    match free {
        ..ROOM_BYTES_MIN => found.danger(risk, advice),
        ROOM_BYTES_MIN..ROOM_BYTES => found.warning(risk, advice),
        _ => found,
    }
}

fn log(facts: &FileFacts) -> Diagnosis {
    let found = Diagnosis::new("log", format!("{} in the file's -wal", size(facts.log_bytes)));
    if facts.log_bytes < LOG_BYTES {
        return found;
    }
    found.warning(
        "somebody reads the file and does not end, so that the log cannot be emptied and grows",
        "see the check \"open files\" for who has it open, and end what reads for so long",
    )
}

#[cfg(target_os = "linux")]
fn file_system_of(directory: &Path) -> FileSystem {
    use FileSystem::{Fuse, Local, Memory, Network, Overlay};

    const KNOWN: [(u64, FileSystem); 18] = [
        (0xef53, Local("ext4")),
        (0x5846_5342, Local("XFS")),
        (0x9123_683e, Local("Btrfs")),
        (0x2fc1_2fc1, Local("ZFS")),
        (0xf2f5_2010, Local("F2FS")),
        (0x6969, Network("NFS")),
        (0x517b, Network("SMB")),
        (0xff53_4d42, Network("CIFS")),
        (0xfe53_4d42, Network("SMB2")),
        (0x0102_1997, Network("9P")),
        (0x5346_414f, Network("AFS")),
        (0x00c3_6400, Network("Ceph")),
        (0x0bd0_0bd0, Network("Lustre")),
        (0x6573_5546, Fuse),
        (0x794c_7630, Overlay),
        (0x0102_1994, Memory("tmpfs")),
        (0x8584_58f6, Memory("ramfs")),
        (0x0100_1994, Memory("tmpfs")),
    ];
    let magic =
        rustix::fs::statfs(directory).ok().and_then(|found| u64::try_from(found.f_type).ok());
    let known = magic.and_then(|magic| KNOWN.into_iter().find(|(known, _)| *known == magic));
    known.map_or(FileSystem::Unknown, |(_, kind)| kind)
}

#[cfg(not(target_os = "linux"))]
fn file_system_of(_: &Path) -> FileSystem {
    FileSystem::Unknown
}

fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    found.f_bavail.checked_mul(found.f_frsize)
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;

    Some(metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> FileFacts {
        FileFacts {
            file_system: FileSystem::Local("ext4"),
            mode: Some(0o600),
            is_writable: true,
            free_bytes: Some(1 << 40),
            bytes: 1 << 20,
            log_bytes: 0,
        }
    }

    #[test]
    fn each_place_is_told_by_what_it_can_be_trusted_with() {
        assert!(CHECKS.iter().all(|check| check(&facts()).concern.is_none()));
        for (place, severity) in [
            (FileSystem::Network("NFS"), Some(Severity::Danger)),
            (FileSystem::Memory("tmpfs"), Some(Severity::Danger)),
            (FileSystem::Overlay, Some(Severity::Warning)),
            (FileSystem::Fuse, Some(Severity::Warning)),
            (FileSystem::Unknown, None),
        ] {
            let facts = FileFacts { file_system: place, ..facts() };
            assert_eq!(file_system(&facts).severity(), severity, "{place:?}");
        }
    }

    #[test]
    fn little_room_and_a_long_log_are_told() {
        for (free, severity) in
            [(1 << 20, Some(Severity::Danger)), (500 << 20, Some(Severity::Warning))]
        {
            let facts = FileFacts { free_bytes: Some(free), ..facts() };
            assert_eq!(room(&facts).severity(), severity);
        }
        let long = FileFacts { log_bytes: 1 << 30, ..facts() };
        assert_eq!(log(&long).severity(), Some(Severity::Warning));
    }
}
