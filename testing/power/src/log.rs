//! The log that `recorder.c` writes: what a process did to the files of one directory, in order.
//!
//! Each entry is a byte for its kind, three little-endian numbers of 64 bits (inode; offset or length; how many
//! bytes follow), and these bytes: a name or what was written.

use std::collections::HashSet;

use bytes::{Buf, Bytes};

use crate::error::PowerError;

/// The file a workload tells in what it is about to do, and what was done. It is no part of the disk.
pub const TOLD: &str = "told";

/// One call that changed a file or its durability, or something that was told between two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskCall {
    /// A file that was there was opened.
    Opened {
        /// Which one.
        inode: u64,
        /// Under which name.
        name: String,
    },
    /// A file was made.
    Created {
        /// Which one.
        inode: u64,
        /// Under which name.
        name: String,
    },
    /// Bytes were written.
    Written {
        /// To which file.
        inode: u64,
        /// Where in it.
        offset: u64,
        /// What.
        bytes: Bytes,
    },
    /// A file was cut, or made longer by zeros.
    Truncated {
        /// Which one.
        inode: u64,
        /// To how many bytes.
        len: u64,
    },
    /// A file was synced.
    Synced {
        /// Which one.
        inode: u64,
    },
    /// The directory was synced.
    DirectorySynced,
    /// A name was removed.
    Unlinked {
        /// Which one.
        name: String,
    },
    /// The workload told this.
    Told(String),
}

/// Reads a whole log.
pub fn read(mut log: Bytes) -> Result<Vec<DiskCall>, PowerError> {
    let mut calls = Vec::new();
    let mut told = HashSet::new();
    while log.has_remaining() {
        let call = entry(&mut log)?;
        if let DiskCall::Opened { inode, name } | DiskCall::Created { inode, name } = &call
            && name == TOLD
        {
            told.insert(*inode);
            continue;
        }
        if let DiskCall::Written { inode, bytes, .. } = &call
            && told.contains(inode)
        {
            let text = String::from_utf8_lossy(bytes);
            calls.extend(text.lines().map(|line| DiskCall::Told(line.to_owned())));
            continue;
        }
        calls.push(call);
    }
    Ok(calls)
}

const HEAD_BYTES: usize = 25;

fn entry(log: &mut Bytes) -> Result<DiskCall, PowerError> {
    if log.remaining() < HEAD_BYTES {
        return Err(PowerError::Log("it ends within an entry".to_owned()));
    }
    let (kind, inode, number) = (log.get_u8(), log.get_u64_le(), log.get_u64_le());
    let len = usize::try_from(log.get_u64_le()).unwrap_or(usize::MAX);
    if log.remaining() < len {
        return Err(PowerError::Log("it ends within an entry".to_owned()));
    }
    let bytes = log.split_to(len);
    let text = || String::from_utf8_lossy(&bytes).into_owned();
    Ok(match kind {
        1 => DiskCall::Opened { inode, name: text() },
        2 => DiskCall::Created { inode, name: text() },
        3 => DiskCall::Written { inode, offset: number, bytes },
        4 => DiskCall::Truncated { inode, len: number },
        5 => DiskCall::Synced { inode },
        6 => DiskCall::DirectorySynced,
        7 => DiskCall::Unlinked { name: text() },
        8 => return Err(PowerError::Log(format!("it has no words for `{}`", text()))),
        kind => return Err(PowerError::Log(format!("{kind} is no kind of entry"))),
    })
}
