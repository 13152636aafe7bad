//! A disk that keeps what was synced, and of the rest whatever it likes.
//!
//! Per file: the bytes that are durable, and what was done to it since its last sync. A name is durable
//! once the directory was synced; until then the file behind it may be whole and not be found.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
};

use bytes::Bytes;
use fastrand::Rng;

use crate::{error::PowerError, log::DiskCall};

/// What a disk writes as a whole, in bytes: a write of several can be torn between them.
pub const SECTOR_BYTES: usize = 512;

/// The files of a directory, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct DiskImage {
    /// What is in each.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl DiskImage {
    /// A number that differs where images do, for all that is likely.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// What becomes of that which was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it arrived, as if only the process had died.
    Nothing,
    /// None of it arrived.
    Everything,
    /// What came before some moment arrived, what came after did not.
    Later,
    /// Each file has its own such moment.
    LaterByFile,
    /// Some of it arrived, in any order.
    Some,
    /// Some sectors of it arrived, in any order.
    Torn,
}

impl Loss {
    /// Every way to lose something that chance has a part in.
    pub const BY_CHANCE: [Self; 4] = [Self::Later, Self::LaterByFile, Self::Some, Self::Torn];
}

/// What a sync is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syncs {
    /// What was written before it is durable after it.
    Honest,
    /// Nothing, after so many that are honest: a disk that lies, to see whether the judge notices.
    IgnoredAfter(usize),
    /// Nothing, once somebody told that what is kept there is open.
    IgnoredOnceOpened,
}

/// The state of the disk between two calls.
#[derive(Debug, Clone)]
pub struct DiskModel {
    files: Vec<FileModel>,
    inodes: HashMap<u64, usize>,
    /// As processes see it.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<Unsynced<NameChange>>,
    changes: u64,
    syncs: Syncs,
}

#[derive(Debug, Clone, Default)]
struct FileModel {
    durable: Vec<u8>,
    unsynced: Vec<Unsynced<FileChange>>,
}

/// A change, and how many there were before it on the whole disk.
#[derive(Debug, Clone)]
struct Unsynced<C> {
    after: u64,
    change: C,
}

#[derive(Debug, Clone)]
enum FileChange {
    Write { offset: usize, bytes: Bytes },
    Resize { len: usize },
}

#[derive(Debug, Clone)]
enum NameChange {
    Added { name: String, file: usize },
    Removed { name: String },
}

impl DiskModel {
    /// A disk on which these files are durable.
    pub fn new(before: &DiskImage, syncs: Syncs) -> Self {
        let file = |durable: &Vec<u8>| FileModel { durable: durable.clone(), unsynced: Vec::new() };
        let names: BTreeMap<_, _> = before.files.keys().cloned().zip(0..).collect();
        Self {
            files: before.files.values().map(file).collect(),
            inodes: HashMap::new(),
            durable_names: names.clone(),
            names,
            unsynced_names: Vec::new(),
            changes: 0,
            syncs,
        }
    }

    /// The disk after this call.
    pub fn perform(&mut self, call: &DiskCall) -> Result<(), PowerError> {
        match call {
            DiskCall::Opened { inode, name } => {
                let missing = || PowerError::Log(format!("{name} was opened and is not there"));
                let file = *self.names.get(name).ok_or_else(missing)?;
                self.inodes.insert(*inode, file);
            }
            DiskCall::Created { inode, name } => {
                let file = self.files.len();
                self.files.push(FileModel::default());
                self.inodes.insert(*inode, file);
                self.names.insert(name.clone(), file);
                self.rename(NameChange::Added { name: name.clone(), file });
            }
            DiskCall::Written { inode, offset, bytes } => {
                let offset = size(*offset);
                self.change(*inode, FileChange::Write { offset, bytes: bytes.clone() })?;
            }
            DiskCall::Truncated { inode, len } => {
                self.change(*inode, FileChange::Resize { len: size(*len) })?;
            }
            DiskCall::Unlinked { name } => {
                self.names.remove(name);
                self.rename(NameChange::Removed { name: name.clone() });
            }
            DiskCall::Synced { inode } if self.is_synced() => {
                let file = self.file(*inode)?;
                for Unsynced { change, .. } in mem::take(&mut file.unsynced) {
                    change.apply(&mut file.durable);
                }
            }
            DiskCall::DirectorySynced if self.is_synced() => {
                for Unsynced { change, .. } in mem::take(&mut self.unsynced_names) {
                    change.apply(&mut self.durable_names);
                }
            }
            DiskCall::Told(line) if self.syncs == Syncs::IgnoredOnceOpened => {
                if line.starts_with("opened ") {
                    self.syncs = Syncs::IgnoredAfter(0);
                }
            }
            DiskCall::Synced { .. } | DiskCall::DirectorySynced | DiskCall::Told(_) => {}
        }
        Ok(())
    }

    /// What a process finds that comes after the loss of power.
    pub fn after_power_loss(&self, loss: Loss, chance: &mut Rng) -> DiskImage {
        let later = chance.u64(self.oldest_change()..=self.changes);
        let mut names = self.durable_names.clone();
        for (at, unsynced) in self.unsynced_names.iter().enumerate() {
            let arrived = match loss {
                Loss::Nothing => true,
                Loss::Everything => false,
                Loss::Later => unsynced.after < later,
                Loss::LaterByFile => chance.usize(..=self.unsynced_names.len()) > at,
                Loss::Some | Loss::Torn => chance.bool(),
            };
            if arrived {
                unsynced.change.apply(&mut names);
            }
        }
        let found = |(name, file): (String, usize)| {
            (name, self.files[file].after_power_loss(loss, later, chance))
        };
        DiskImage { files: names.into_iter().map(found).collect() }
    }

    /// The name of the file with this inode, if it has one.
    pub fn name_of(&self, inode: u64) -> Option<&str> {
        let file = self.inodes.get(&inode)?;
        self.names.iter().find(|(_, named)| *named == file).map(|(name, _)| name.as_str())
    }

    fn is_synced(&mut self) -> bool {
        match &mut self.syncs {
            Syncs::Honest | Syncs::IgnoredOnceOpened => true,
            Syncs::IgnoredAfter(0) => false,
            Syncs::IgnoredAfter(honest) => {
                *honest -= 1;
                true
            }
        }
    }

    fn oldest_change(&self) -> u64 {
        let in_files = self.files.iter().filter_map(|file| file.unsynced.first());
        let oldest = in_files.map(|unsynced| unsynced.after);
        let name = self.unsynced_names.first().map(|unsynced| unsynced.after);
        oldest.chain(name).min().unwrap_or(self.changes)
    }

    fn change(&mut self, inode: u64, change: FileChange) -> Result<(), PowerError> {
        let after = self.changes;
        self.changes += 1;
        self.file(inode)?.unsynced.push(Unsynced { after, change });
        Ok(())
    }

    fn rename(&mut self, change: NameChange) {
        self.unsynced_names.push(Unsynced { after: self.changes, change });
        self.changes += 1;
    }

    fn file(&mut self, inode: u64) -> Result<&mut FileModel, PowerError> {
        let file = self.inodes.get(&inode).and_then(|&file| self.files.get_mut(file));
        file.ok_or_else(|| PowerError::Log(format!("nobody opened inode {inode}")))
    }
}

impl FileModel {
    fn after_power_loss(&self, loss: Loss, later: u64, chance: &mut Rng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let mut apply = |change: &FileChange| change.apply(&mut bytes);
        let changes = || self.unsynced.iter().map(|unsynced| &unsynced.change);
        match loss {
            Loss::Nothing => changes().for_each(apply),
            Loss::Everything => {}
            Loss::Later => {
                let arrived = self.unsynced.iter().filter(|unsynced| unsynced.after < later);
                arrived.for_each(|unsynced| apply(&unsynced.change));
            }
            Loss::LaterByFile => {
                let count = chance.usize(..=self.unsynced.len());
                changes().take(count).for_each(apply);
            }
            Loss::Some => {
                let mut arrived: Vec<_> = changes().filter(|_| chance.bool()).collect();
                chance.shuffle(&mut arrived);
                arrived.into_iter().for_each(apply);
            }
            Loss::Torn => {
                let sectors = changes().flat_map(FileChange::sectors);
                let mut arrived: Vec<_> = sectors.filter(|_| chance.bool()).collect();
                chance.shuffle(&mut arrived);
                arrived.iter().for_each(apply);
            }
        }
        bytes
    }
}

impl FileChange {
    fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(bytes);
            }
            Self::Resize { len } => file.resize(*len, 0),
        }
    }

    /// The same change as the disk does it: sector by sector of the file.
    fn sectors(&self) -> Vec<Self> {
        let Self::Write { offset, bytes } = self else { return vec![self.clone()] };
        let (mut offset, mut bytes) = (*offset, bytes.clone());
        let mut sectors = Vec::new();
        while !bytes.is_empty() {
            let rest = SECTOR_BYTES - offset % SECTOR_BYTES;
            let part = bytes.split_to(rest.min(bytes.len()));
            let len = part.len();
            sectors.push(Self::Write { offset, bytes: part });
            offset += len;
        }
        sectors
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Added { name, file } => {
                names.insert(name.clone(), *file);
            }
            Self::Removed { name } => {
                names.remove(name);
            }
        }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
