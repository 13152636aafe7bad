//! Where an operation is, asked of the file alone.

use hapax_core::{OperationId, StoreError};
use hapax_sql::ResultRow;

use super::{
    chunk::{self, prefix},
    runs::{known_format, numbers},
    session::LogSession,
};
use crate::row::{self, FIND_AT, NumberedRow};

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
            .and_then(|()| chunk::rows_of(prefix, part.number(1)?, part.bytes(2)?));
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
    Ok(rows.first().map(row::read))
}
