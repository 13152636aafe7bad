//! What victims began and what their clients were told, one line each.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
    str::FromStr,
};

use super::work::Work;
use crate::error::CrashError;

/// Something that cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalLine {
    /// The right to run was won.
    Attempt {
        /// Which operation.
        work: Work,
        /// The attempt's number.
        fence: i64,
        /// The attempt's name.
        owner: i64,
    },
    /// A client was answered with an outcome.
    Told {
        /// Which operation.
        work: Work,
        /// The status it heard.
        status: u16,
        /// The body it heard: the name of the effect.
        effect: String,
    },
    /// A client was answered that nobody knows.
    Doubted {
        /// Which operation.
        work: Work,
    },
    /// The engine said what it must never say about this operation.
    Absurd {
        /// Which operation.
        work: Work,
        /// What it said, in one word.
        what: String,
    },
}

/// A file of entries. Clones of the handle and other processes may write to it at the same time.
#[derive(Debug)]
pub struct CallerJournal {
    file: File,
}

impl CallerJournal {
    /// What its file is called.
    pub const NAME: &str = "journal";

    /// The journal at `path`, made if it does not exist.
    pub fn open(path: &Path) -> Result<Self, CrashError> {
        let file = File::options().append(true).create(true).open(path);
        let file = file.map_err(CrashError::io(format!("open {}", path.display())))?;
        Ok(Self { file })
    }

    /// Writes an entry, whole or not at all.
    pub fn write(&self, entry: &JournalLine) -> Result<(), CrashError> {
        let line = format!("{}\n", entry.line());
        (&self.file).write_all(line.as_bytes()).map_err(CrashError::io("write to the journal"))
    }

    /// Every entry ever written at `path`.
    pub fn read(path: &Path) -> Result<Vec<JournalLine>, CrashError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text.map_err(CrashError::io(format!("read {}", path.display())))?,
        };
        let entries = text.lines().map(str::parse).collect::<Result<_, _>>();
        entries.map_err(|error| {
            let source = io::Error::new(io::ErrorKind::InvalidData, error);
            CrashError::Io { action: format!("read {}", path.display()), source }
        })
    }
}

impl JournalLine {
    fn line(&self) -> String {
        match self {
            Self::Attempt { work, fence, owner } => format!("attempt {work} {fence} {owner}"),
            Self::Told { work, status, effect } => format!("told {work} {status} {effect}"),
            Self::Doubted { work } => format!("doubted {work}"),
            Self::Absurd { work, what } => format!("absurd {work} {what}"),
        }
    }
}

/// A line that no victim wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no victim writes such a line: {line:?}")]
pub struct InvalidEntry {
    line: String,
}

impl FromStr for JournalLine {
    type Err = InvalidEntry;

    fn from_str(line: &str) -> Result<Self, InvalidEntry> {
        let invalid = || InvalidEntry { line: line.to_owned() };
        let words: Vec<_> = line.split(' ').collect();
        let key = words.get(1).ok_or_else(invalid)?;
        let work = key.parse().map_err(|_| invalid())?;
        match (words[0], &words[2..]) {
            ("attempt", [fence, owner]) => Ok(Self::Attempt {
                work,
                fence: fence.parse().map_err(|_| invalid())?,
                owner: owner.parse().map_err(|_| invalid())?,
            }),
            ("told", [status, effect]) => Ok(Self::Told {
                work,
                status: status.parse().map_err(|_| invalid())?,
                effect: (*effect).to_owned(),
            }),
            ("doubted", []) => Ok(Self::Doubted { work }),
            ("absurd", [what]) => Ok(Self::Absurd { work, what: (*what).to_owned() }),
            _ => Err(invalid()),
        }
    }
}
