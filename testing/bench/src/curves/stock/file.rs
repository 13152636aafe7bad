//! Into a SQLite file.

use std::path::Path;

use hapax_core::codec::{Row, Sealed};
use rusqlite::{Connection, params};

use crate::error::BenchError;

/// Nothing is measured while it writes, so it need not be durable, and may use memory.
const SETTINGS: &str = "
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -1500000;
    PRAGMA wal_autocheckpoint = 0;
";
const INSERT: &str = "INSERT INTO hapax_operations (id, format, tenant, scope, key, fingerprint, \
    state, fence, owner, recovery, doubt, until, created_at, changed_after, kept_for, tombstone, \
    head, body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
    ?16, ?17, ?18, ?19)";

/// Each commit writes a page again for most of its rows, so a few large ones write far less.
const CHUNKS_PER_COMMIT: u32 = 5;

pub(super) struct StockFileWriter {
    connection: Connection,
    /// Chunks since the last commit.
    chunks: u32,
}

impl StockFileWriter {
    pub(super) fn open(path: &Path) -> Result<Self, BenchError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        Ok(Self { connection, chunks: 0 })
    }

    pub(super) fn write(&mut self, rows: &[Row]) -> Result<(), BenchError> {
        if self.chunks == 0 {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        let mut insert = self.connection.prepare_cached(INSERT)?;
        for row in rows {
            let key = uuid(&row.key);
            let Some(Sealed { head, body, digest }) = &row.outcome else { continue };
            insert.execute(params![
                row.id.as_bytes(),
                row.format,
                row.tenant,
                row.scope,
                key,
                row.fingerprint,
                row.state,
                row.fence,
                row.owner,
                row.recovery,
                row.doubt,
                row.until,
                row.created_at,
                row.changed_at - row.created_at,
                row.expires_at - row.created_at,
                row.tombstone,
                &**head,
                &**body,
                &digest[..],
            ])?;
        }
        drop(insert);
        self.chunks += 1;
        if self.chunks == CHUNKS_PER_COMMIT { self.commit() } else { Ok(()) }
    }

    /// Everything is in the file, and on disk.
    pub(super) fn finish(mut self) -> Result<(), BenchError> {
        self.commit()?;
        let settings = "PRAGMA synchronous = FULL";
        self.connection.execute_batch(settings)?;
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    fn commit(&mut self) -> Result<(), BenchError> {
        if self.chunks > 0 {
            self.chunks = 0;
            self.connection.execute_batch("COMMIT")?;
            self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        }
        Ok(())
    }
}

/// The bytes of a key that is a UUID, as the store keeps it.
fn uuid(key: &str) -> Vec<u8> {
    let digits: Vec<u8> = key
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}
