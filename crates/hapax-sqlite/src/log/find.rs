//! Where an operation is, asked of the file alone.

use bytes::Bytes;
use hapax_core::{
    OperationId, StoreError,
    codec::{Row, Sealed},
};
use hapax_sql::{ResultRow, TransactionFault};

use super::{
    chunk::{self, prefix},
    runs::{known_format, numbers, stored},
    session::LogSession,
};
use crate::{
    key,
    row::{FIND_AT, NumberedRow},
};

/// The parts of all runs in which an id that begins with `?1` would be.
const PARTS: &str = "SELECT r.format, r.first_row, k.entries FROM hapax_runs AS r \
     LEFT JOIN hapax_chunks AS k ON k.chunk = (r.run << 24) + ((?1 * r.chunks) >> 32) \
     WHERE r.state = 1 ORDER BY r.last_row DESC";
/// Rows after the last run.
const TAIL: &str = "SELECT row FROM hapax_claims WHERE id = ?1 AND row > \
     (SELECT ifnull(max(last_row), 0) FROM hapax_runs WHERE state = 1)";

/// The row stored under this id.
///
/// The outer error is the database's; the inner one is this row's alone.
pub(crate) async fn find<S: LogSession>(
    session: &mut S,
    id: OperationId,
) -> Result<Option<Result<NumberedRow, StoreError>>, S::Error> {
    for row in in_tail(session, id).await? {
        if let Some(found) = find_at(session, row, id).await? {
            return Ok(Some(found));
        }
    }
    for row in in_runs(session, id).await? {
        if let Some(found) = find_at(session, row, id).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The rows after the last run that have this id.
pub(super) async fn in_tail<S: LogSession>(
    session: &mut S,
    id: OperationId,
) -> Result<Vec<i64>, S::Error> {
    let rows = session.ask(TAIL, &[id.as_bytes().into()]).await?;
    numbers(&rows).map_err(S::refuse)
}

/// The rows in runs that may have this id.
pub(crate) async fn in_runs<S: LogSession>(
    session: &mut S,
    id: OperationId,
) -> Result<Vec<i64>, S::Error> {
    let prefix = prefix(id);
    let parts = session.ask(PARTS, &[i64::from(prefix).into()]).await?;
    let mut found = Vec::new();
    for part in &parts {
        let rows = known_format(part, 0)
            .and_then(|()| Ok((part.number(1).map_err(stored)?, part.bytes(2).map_err(stored)?)))
            .and_then(|(first, entries)| chunk::rows_of(prefix, first, entries));
        found.extend(rows.map_err(S::refuse)?);
    }
    Ok(found)
}

async fn find_at<S: LogSession>(
    session: &mut S,
    row: i64,
    id: OperationId,
) -> Result<Option<Result<NumberedRow, StoreError>>, S::Error> {
    let rows = session.ask(FIND_AT, &[row.into(), id.as_bytes().into()]).await?;
    Ok(rows.first().map(|row| columns_of(row).map_err(stored)))
}

/// The row in the columns of [`FIND_AT`].
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
        key: match row.maybe_text(5) {
            Ok(Some(key)) => key.to_owned(),
            Ok(None) | Err(_) => key::spell(&sixteen(row.bytes(5)?)?),
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
