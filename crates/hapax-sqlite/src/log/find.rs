//! Where an operation is, asked of the file alone.

use hapax_core::{
    OperationId, StoreError,
    codec::{Row, Sealed},
};

use super::{
    chunk::{self, prefix},
    runs::known_format,
    session::LogSession,
};
use crate::{
    inbox::cell::{Cell, Cells},
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
    let rows = session.ask(TAIL, &[id.as_bytes()[..].into()]).await?;
    rows.iter().map(|row| row.number(0)).collect::<Result<_, _>>().map_err(S::refuse)
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
            .and_then(|()| chunk::rows_of(prefix, part.number(1)?, &part.bytes(2)?));
        found.extend(rows.map_err(S::refuse)?);
    }
    Ok(found)
}

async fn find_at<S: LogSession>(
    session: &mut S,
    row: i64,
    id: OperationId,
) -> Result<Option<Result<NumberedRow, StoreError>>, S::Error> {
    let rows = session.ask(FIND_AT, &[row.into(), id.as_bytes()[..].into()]).await?;
    Ok(rows.into_iter().next().map(|row| columns_of(&row)))
}

/// The row in the columns of [`FIND_AT`].
fn columns_of(row: &Cells) -> Result<NumberedRow, StoreError> {
    let created_at = row.number(13)?;
    let outcome = match (bytes(row, 18)?, bytes(row, 19)?, bytes(row, 20)?) {
        (Some(head), Some(body), Some(digest)) => {
            Some(Sealed { head: head.into(), body: body.into(), digest: sixteen(&digest)? })
        }
        (_, _, _) => None,
    };
    let stored = Row {
        id: OperationId::from_bytes(sixteen(&row.bytes(1)?)?),
        format: small(row, 2)?,
        tenant: row.text(3)?,
        scope: row.text(4)?,
        key: match row.0.get(5) {
            Some(Cell::Bytes(uuid)) => key::spell(&sixteen(uuid)?),
            Some(_) | None => row.text(5)?,
        },
        fingerprint: row.bytes(6)?,
        state: small(row, 7)?,
        fence: row.number(8)?,
        owner: row.number(9)?,
        recovery: small(row, 10)?,
        doubt: small(row, 11)?,
        until: row.number(12)?,
        created_at,
        changed_at: created_at.wrapping_add(row.number(14)?),
        expires_at: created_at.wrapping_add(row.number(15)?),
        tombstone: row.number(16)?,
        request: bytes(row, 17)?.map(Into::into),
        outcome,
    };
    Ok(NumberedRow { number: row.number(0)?, row: stored })
}

fn small(row: &Cells, at: usize) -> Result<i16, StoreError> {
    i16::try_from(row.number(at)?).map_err(StoreError::damaged)
}

fn bytes(row: &Cells, at: usize) -> Result<Option<Vec<u8>>, StoreError> {
    if row.0.get(at) == Some(&Cell::Null) { Ok(None) } else { row.bytes(at).map(Some) }
}

fn sixteen(bytes: &[u8]) -> Result<[u8; 16], StoreError> {
    bytes.try_into().map_err(StoreError::damaged)
}
