//! How much room records take.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::database::Database;
use crate::BenchError;

/// Where a gateway keeps its records.
pub(super) enum RecordDisk<'a> {
    File(PathBuf),
    Server(&'a Database),
}

impl RecordDisk<'_> {
    /// Everything that is on disk for them now: a file with its log, or a schema with its indexes.
    pub(super) async fn bytes(&self) -> Result<u64, BenchError> {
        match self {
            Self::File(file) => {
                let log = with_log(file);
                Ok(length(file)? + length(&log)?)
            }
            Self::Server(database) => database.bytes().await,
        }
    }

    /// Bytes of log the server ever wrote; a file's log is written over and has no such count.
    pub(super) async fn log_bytes(&self) -> Result<Option<u64>, BenchError> {
        match self {
            Self::File(_) => Ok(None),
            Self::Server(database) => database.log_bytes().await.map(Some),
        }
    }
}

/// The name SQLite gives to a file's log.
fn with_log(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn length(file: &Path) -> Result<u64, BenchError> {
    match fs::metadata(file) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(BenchError::Directory(error)),
    }
}
