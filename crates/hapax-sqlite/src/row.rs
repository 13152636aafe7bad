//! A record as columns of the log.

use bytes::Bytes;
use hapax_core::{
    OperationId, StoreError,
    codec::{Row, Sealed},
};
use hapax_sql::{ResultRow, TextOrBytes, TransactionFault};
use rusqlite::{
    Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    directory::Directory,
    key::{self, KeyColumn},
    log,
    session::KindRow,
};

/// Every column a [`Row`] is read from, in the order [`read`] expects, with those of its contents.
macro_rules! columns {
    ($contents:literal) => {
        concat!(
            "c.row, c.id, c.format, c.tenant, c.scope, c.key, c.fingerprint, \
             coalesce(e.state, o.state), c.fence, c.owner, c.recovery, \
             iif(e.state IS NULL, o.doubt, 0), iif(e.state IS NULL, o.until, 0), c.created_at, \
             coalesce(e.changed_after, c.changed_after), coalesce(e.kept_for, c.kept_for), \
             c.tombstone, ",
            $contents
        )
    };
    () => {
        $crate::row::columns!("c.request, e.head, e.body, e.digest")
    };
}
/// What [`columns!`] are read from.
macro_rules! tables {
    () => {
        " FROM hapax_claims AS c LEFT JOIN hapax_ends AS e ON e.row = c.row \
          LEFT JOIN hapax_open AS o ON o.row = c.row "
    };
}
/// The same, of what has not ended.
macro_rules! open_tables {
    () => {
        " FROM hapax_open AS o CROSS JOIN hapax_claims AS c ON c.row = o.row \
          LEFT JOIN hapax_ends AS e ON e.row = o.row "
    };
}
pub(crate) use {columns, open_tables, tables};

/// The row with a number, if it has this id.
pub(crate) const FIND_AT: &str =
    concat!("SELECT ", columns!(), tables!(), "WHERE c.row = ?1 AND c.id = ?2");

/// The number of the newest row there ever was.
pub(crate) const NEWEST: &str = "SELECT max(ifnull((SELECT max(row) FROM hapax_claims), 0), \
     ifnull((SELECT value FROM hapax_meta WHERE name = 'newest_row'), 0))";

/// A new claim.
pub(crate) const CLAIM: &str = "INSERT INTO hapax_claims (row, id, format, tenant, scope, key, \
     fingerprint, fence, owner, recovery, created_at, changed_after, kept_for, tombstone, request) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// What has not ended.
pub(crate) const OPEN: &str =
    "INSERT INTO hapax_open (row, state, doubt, until) VALUES (?1, ?2, ?3, ?4)";
pub(crate) const DROP_OPEN: &str = "DELETE FROM hapax_open WHERE row = ?1";

/// How it ended.
pub(crate) const END: &str = "INSERT INTO hapax_ends (row, state, changed_after, kept_for, head, \
     body, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";

/// A [`Row`] and its number in the log.
pub(crate) struct NumberedRow {
    pub(crate) number: i64,
    pub(crate) row: Row,
}

/// The number of the row after the newest.
///
/// The four lower bytes are never all zero, so that memory can do with those.
pub(crate) fn number_after(newest: i64) -> i64 {
    let next = newest + 1;
    if next & i64::from(u32::MAX) == 0 { next + 1 } else { next }
}

/// The row stored under this id, in a snapshot whose rows the directory knows.
///
/// The outer error is the database's; the inner one is this row's alone.
pub(crate) fn find(
    connection: &Connection,
    directory: Option<&Directory>,
    id: OperationId,
) -> rusqlite::Result<Option<Result<NumberedRow, StoreError>>> {
    let Some(directory) = directory else { return log::ready(log::find(&mut &*connection, id)) };
    let candidates = directory.candidates(id);
    for row in candidates.rows {
        if let Some(found) = find_at(connection, row, id)? {
            return Ok(Some(found));
        }
    }
    if candidates.maybe_older {
        for row in log::ready(log::in_runs(&mut &*connection, id))? {
            if let Some(found) = find_at(connection, row, id)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The row with this number, if it has this id.
pub(crate) fn find_at(
    connection: &Connection,
    row: i64,
    id: OperationId,
) -> rusqlite::Result<Option<Result<NumberedRow, StoreError>>> {
    let mut statement = connection.prepare_cached(FIND_AT)?;
    let mut rows = statement.query((row, id.as_bytes()))?;
    Ok(rows.next()?.map(|row| read(&KindRow(row))))
}

/// The row in the columns of [`columns!`], whichever driver has it.
pub(crate) fn read(row: &impl ResultRow) -> Result<NumberedRow, StoreError> {
    columns_of(row).map_err(TransactionFault::of_read)
}

fn columns_of(row: &impl ResultRow) -> Result<NumberedRow, TransactionFault> {
    let created_at = row.number(13)?;
    let outcome = match (bytes(row, 18)?, bytes(row, 19)?, row.maybe_bytes(20)?) {
        (Some(head), Some(body), Some(digest)) => {
            Some(Sealed { head, body, digest: sixteen(digest)? })
        }
        (_, _, _) => None,
    };
    let stored = Row {
        id: OperationId::from_bytes(sixteen(row.bytes(1)?)?),
        format: row.small(2)?,
        tenant: row.text(3)?.to_owned(),
        scope: row.text(4)?.to_owned(),
        key: match row.text_or_bytes(5)? {
            TextOrBytes::Text(key) => key.to_owned(),
            TextOrBytes::Bytes(uuid) => key::spell(&sixteen(uuid)?),
        },
        fingerprint: row.bytes(6)?.to_vec(),
        state: row.small(7)?,
        fence: row.number(8)?,
        owner: row.number(9)?,
        recovery: row.small(10)?,
        doubt: row.small(11)?,
        until: row.number(12)?,
        created_at,
        changed_at: created_at.wrapping_add(row.number(14)?),
        expires_at: created_at.wrapping_add(row.number(15)?),
        tombstone: row.number(16)?,
        request: bytes(row, 17)?,
        outcome,
    };
    Ok(NumberedRow { number: row.number(0)?, row: stored })
}

fn bytes(row: &impl ResultRow, at: usize) -> Result<Option<Bytes>, TransactionFault> {
    Ok(row.maybe_bytes(at)?.map(Bytes::copy_from_slice))
}

fn sixteen(bytes: &[u8]) -> Result<[u8; 16], TransactionFault> {
    bytes.try_into().map_err(TransactionFault::damaged)
}

impl ToSql for KeyColumn<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Text(key) => ValueRef::Text(key.as_bytes()),
            Self::Uuid(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
