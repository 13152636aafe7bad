//! The file of a server that is killed and started again: lines, each on disk before it counts.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{effects::Effect, response::PlainResponse};

/// What is written in one piece: all of it is there after a crash, or nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StateLine {
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<Effect>,
    /// The name of a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// What it came with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
    /// Its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response: Option<PlainResponse>,
}

#[derive(Debug)]
pub(crate) struct StateFile {
    file: Mutex<File>,
}

impl StateFile {
    /// Opens or creates it, and gives what is in it. A last line without its end never counted.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<StateLine>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        let lines = text[..whole].lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok((Self { file: Mutex::new(file) }, lines))
    }

    pub(crate) fn append(&self, line: &StateLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&text)?;
        file.sync_data()
    }
}
