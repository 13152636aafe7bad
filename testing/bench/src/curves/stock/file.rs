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
/// A store that opens the file writes the index.
const CLAIM: &str = "INSERT INTO hapax_claims (row, id, format, tenant, scope, key, fingerprint, \
    fence, owner, recovery, created_at, changed_after, kept_for, tombstone) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, ?12, ?13)";
const END: &str = "INSERT INTO hapax_ends (row, state, changed_after, head, body, digest) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
/// A thousand rows at a time are purged no earlier than this.
const DUE: &str = "INSERT INTO hapax_ranges (range, due) VALUES (?1 >> 10, ?2) \
    ON CONFLICT DO UPDATE SET due = min(due, excluded.due)";

/// Each commit writes a page again for most of its rows, so a few large ones write far less.
const CHUNKS_PER_COMMIT: u32 = 5;

pub(super) struct StockFileWriter {
    connection: Connection,
    /// Chunks since the last commit.
    chunks: u32,
    /// The last row.
    newest: i64,
}

impl StockFileWriter {
    pub(super) fn open(path: &Path) -> Result<Self, BenchError> {
        let connection = Connection::open(path)?;
        connection.execute_batch(SETTINGS)?;
        let newest = "SELECT ifnull(max(row), 0) FROM hapax_claims";
        let newest = connection.query_row(newest, [], |row| row.get(0))?;
        Ok(Self { connection, chunks: 0, newest })
    }

    pub(super) fn write(&mut self, rows: &[Row]) -> Result<(), BenchError> {
        if self.chunks == 0 {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        let mut claim = self.connection.prepare_cached(CLAIM)?;
        let mut end = self.connection.prepare_cached(END)?;
        let mut due = self.connection.prepare_cached(DUE)?;
        for row in rows {
            let Some(Sealed { head, body, digest }) = &row.outcome else { continue };
            self.newest += 1;
            claim.execute(params![
                self.newest,
                row.id.as_bytes(),
                row.format,
                row.tenant,
                row.scope,
                uuid(&row.key),
                row.fingerprint,
                row.fence,
                row.owner,
                row.recovery,
                row.created_at,
                row.expires_at - row.created_at,
                row.tombstone,
            ])?;
            let changed_after = row.changed_at - row.created_at;
            end.execute(params![
                self.newest,
                row.state,
                changed_after,
                &**head,
                &**body,
                &digest[..],
            ])?;
            due.execute([self.newest, row.expires_at])?;
        }
        drop((claim, end, due));
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
