//! A record as columns.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Attempt, OperationId, StateTag, StoreError, Timestamp,
    codec::{Row, Sealed},
    time::micros,
};
use rusqlite::{
    CachedStatement, Connection, ToSql, params,
    types::{FromSqlError, ToSqlOutput, ValueRef},
};

use crate::key::{self, KeyColumn};

/// Every column a [`Row`] is read from, in the order [`read`] expects.
macro_rules! columns {
    () => {
        "row, id, format, tenant, scope, key, fingerprint, state, fence, owner, recovery, doubt, \
         until, created_at, changed_after, kept_for, tombstone, request, head, body, digest"
    };
}
pub(crate) use columns;

/// The row under an id.
pub(crate) const FIND: &str =
    concat!("SELECT ", columns!(), " FROM hapax_operations WHERE id = ?1");

/// A new row, unless its id is taken; the parameters are those of [`insert`].
pub(crate) const INSERT: &str = "INSERT INTO hapax_operations (id, format, tenant, scope, key, fingerprint, state, fence, owner, \
    recovery, doubt, until, created_at, changed_after, kept_for, tombstone, request, head, \
    body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, \
    ?16, ?17, ?18, ?19, ?20) ON CONFLICT (id) DO NOTHING";

/// Over the row with a number; the parameters are those of [`update`].
pub(crate) const UPDATE: &str = "UPDATE hapax_operations SET format = ?2, fingerprint = ?3, state = ?4, fence = ?5, owner = ?6, \
    recovery = ?7, doubt = ?8, until = ?9, created_at = ?10, changed_after = ?11, \
    kept_for = ?12, tombstone = ?13, request = ?14, head = ?15, body = ?16, digest = ?17 \
    WHERE row = ?1";

/// The end of a claim that was never used.
pub(crate) const WITHDRAW: &str = "DELETE FROM hapax_operations \
    WHERE id = ?1 AND fence = ?2 AND owner = ?3 AND state = 2 AND format = 1";

/// The end of an attempt that runs under a fence and an owner.
const FINISH: &str = "UPDATE hapax_operations SET state = ?4, until = 0, changed_after = ?5 - created_at, \
    kept_for = max(kept_for, ?5 + ?6 - created_at), request = NULL, head = ?7, body = ?8, \
    digest = ?9 WHERE id = ?1 AND fence = ?2 AND owner = ?3 AND state = 2 AND format = 1";

/// A [`Row`] and the number SQLite keeps it under.
pub(crate) struct NumberedRow {
    pub(crate) number: i64,
    pub(crate) row: Row,
}

/// The row stored under this id.
///
/// The outer error is the database's; the inner one is this row's alone.
pub(crate) fn find(
    connection: &Connection,
    id: OperationId,
) -> rusqlite::Result<Option<Result<NumberedRow, StoreError>>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let mut rows = statement.query([id.as_bytes()])?;
    Ok(rows.next()?.map(read))
}

/// The row in the columns of [`columns!`].
pub(crate) fn read(row: &rusqlite::Row<'_>) -> Result<NumberedRow, StoreError> {
    columns_of(row).map_err(StoreError::damaged)
}

fn columns_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<NumberedRow> {
    let created_at: i64 = row.get(13)?;
    let outcome = match (bytes(row, 18)?, bytes(row, 19)?, row.get(20)?) {
        (Some(head), Some(body), Some(digest)) => Some(Sealed { head, body, digest }),
        (_, _, _) => None,
    };
    let stored = Row {
        id: OperationId::from_bytes(row.get(1)?),
        format: row.get(2)?,
        tenant: row.get(3)?,
        scope: row.get(4)?,
        key: key_of(row.get_ref(5)?)?,
        fingerprint: row.get(6)?,
        state: row.get(7)?,
        fence: row.get(8)?,
        owner: row.get(9)?,
        recovery: row.get(10)?,
        doubt: row.get(11)?,
        until: row.get(12)?,
        created_at,
        changed_at: created_at.wrapping_add(row.get(14)?),
        expires_at: created_at.wrapping_add(row.get(15)?),
        tombstone: row.get(16)?,
        request: bytes(row, 17)?,
        outcome,
    };
    Ok(NumberedRow { number: row.get(0)?, row: stored })
}

/// The two writes of an undisturbed operation, made ready once for many of them.
pub(crate) struct ReadyStatements<'c> {
    insert: CachedStatement<'c>,
    finish: CachedStatement<'c>,
}

impl<'c> ReadyStatements<'c> {
    pub(crate) fn on(connection: &'c Connection) -> rusqlite::Result<Self> {
        let (insert, finish) =
            (connection.prepare_cached(INSERT)?, connection.prepare_cached(FINISH)?);
        Ok(Self { insert, finish })
    }

    /// Writes a new row, unless its id is taken; says whether it did.
    pub(crate) fn insert(&mut self, row: &Row) -> rusqlite::Result<bool> {
        insert_with(&mut self.insert, row)
    }

    /// Ends a running attempt without looking at its row first; says whether it did.
    ///
    /// Only what the row itself can vouch for: that it runs under this fence and owner.
    pub(crate) fn finish(
        &mut self,
        now: Timestamp,
        attempt: &Attempt,
        (state, keep, outcome): (StateTag, Duration, Option<&Sealed>),
    ) -> rusqlite::Result<bool> {
        let written = self.finish.execute(params![
            attempt.id.as_bytes(),
            attempt.fence.get(),
            attempt.owner.0,
            state as i16,
            now.as_micros(),
            micros(keep),
            outcome.map(|sealed| &*sealed.head),
            outcome.map(|sealed| &*sealed.body),
            outcome.map(|sealed| &sealed.digest[..]),
        ])?;
        Ok(written == 1)
    }
}

/// Writes a new row, unless its id is taken; says whether it did.
pub(crate) fn insert(connection: &Connection, row: &Row) -> rusqlite::Result<bool> {
    insert_with(&mut connection.prepare_cached(INSERT)?, row)
}

fn insert_with(statement: &mut CachedStatement<'_>, row: &Row) -> rusqlite::Result<bool> {
    let [head, body, digest] = outcome(row);
    let written = statement.execute(params![
        row.id.as_bytes(),
        row.format,
        row.tenant,
        row.scope,
        KeyColumn::of(&row.key),
        row.fingerprint,
        row.state,
        row.fence,
        row.owner,
        row.recovery,
        row.doubt,
        row.until,
        row.created_at,
        row.changed_at.wrapping_sub(row.created_at),
        row.expires_at.wrapping_sub(row.created_at),
        row.tombstone,
        row.request.as_deref(),
        head,
        body,
        digest,
    ])?;
    Ok(written == 1)
}

/// Writes over the row with this number, if it is there; which operation it belongs to stays.
pub(crate) fn update(connection: &Connection, number: i64, row: &Row) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(UPDATE)?;
    let [head, body, digest] = outcome(row);
    let written = statement.execute(params![
        number,
        row.format,
        row.fingerprint,
        row.state,
        row.fence,
        row.owner,
        row.recovery,
        row.doubt,
        row.until,
        row.created_at,
        row.changed_at.wrapping_sub(row.created_at),
        row.expires_at.wrapping_sub(row.created_at),
        row.tombstone,
        row.request.as_deref(),
        head,
        body,
        digest,
    ])?;
    Ok(written == 1)
}

pub(crate) fn delete(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM hapax_operations WHERE row = ?1")?.execute([number])?;
    Ok(())
}

/// Head, body and digest.
fn outcome(row: &Row) -> [Option<&[u8]>; 3] {
    match &row.outcome {
        Some(Sealed { head, body, digest }) => [Some(head), Some(body), Some(digest)],
        None => [None; 3],
    }
}

fn bytes(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Option<Bytes>> {
    Ok(row.get_ref(column)?.as_blob_or_null()?.map(Bytes::copy_from_slice))
}

impl ToSql for KeyColumn<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(key) => ValueRef::Text(key.as_bytes()),
            Self::Uuid(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn key_of(column: ValueRef<'_>) -> Result<String, FromSqlError> {
    if let ValueRef::Blob(bytes) = column {
        let uuid = <[u8; 16]>::try_from(bytes);
        return uuid.map(|uuid| key::spell(&uuid)).map_err(|_| FromSqlError::InvalidType);
    }
    column.as_str().map(str::to_owned)
}
