//! How many bytes a way has on disk.

use std::{fs, io, path::Path};

use rusqlite::Connection;
use tokio_postgres::Config;

use super::{arms::postgres_baseline::connect, error::BenchError};

/// Where keys are kept.
#[derive(Clone, Copy)]
pub(super) enum Disk<'a> {
    /// A SQLite file, and the log beside it.
    File(&'a Path),
    /// The tables of a database on PostgreSQL, with their indexes.
    Tables(&'a Config),
    /// All files under a directory.
    Directory(&'a Path),
}

const TABLES: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint \
                      FROM pg_class AS c \
                      WHERE c.relkind IN ('r', 'm') \
                      AND c.relnamespace::regnamespace::text IN ('hapax', 'public')";

impl Disk<'_> {
    pub(super) async fn bytes(self) -> Result<u64, BenchError> {
        match self {
            Self::File(file) => {
                // What is in the log alone would count by how long ago the last checkpoint was. A
                // reader may keep some of it there; that part counts as it is.
                let connection = Connection::open(file)?;
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                let log = file.with_extension("db-wal");
                let log = fs::metadata(log).map_or(0, |log| log.len());
                Ok(log + fs::metadata(file).map_err(BenchError::Directory)?.len())
            }
            Self::Tables(config) => {
                let row = connect(config).await?.query_one(TABLES, &[]).await?;
                Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0))
            }
            Self::Directory(directory) => under(directory).map_err(BenchError::Directory),
        }
    }
}

fn under(directory: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(found) if found.is_dir() => under(&entry.path())?,
            Ok(found) => found.len(),
            // Gone since the directory was read.
            Err(_) => 0,
        };
    }
    Ok(bytes)
}
