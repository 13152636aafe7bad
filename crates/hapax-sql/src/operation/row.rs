//! A record as it comes back from a look.

use bytes::Bytes;
use hapax_core::{OperationId, Record, StoreError, Timestamp, TransactionError, codec};

use super::OperationStatements;
use crate::{ResultRow, TransactionFault};

/// What a look shows.
pub(super) struct KeySeen {
    pub(super) has_lock: bool,
    /// The record, and the instant by which it is judged.
    pub(super) found: Option<(Timestamp, Record)>,
}

impl KeySeen {
    pub(super) fn of(
        rows: &[impl ResultRow],
        statements: &OperationStatements,
        id: OperationId,
    ) -> Result<Self, TransactionError> {
        let Some(row) = rows.first() else {
            return Err(StoreError::unavailable("a look came back without a row").into());
        };
        let read = || -> Result<_, TransactionFault> {
            let has_lock = row.flag(0)?;
            let Some(now) = row.maybe_number(1)? else { return Ok((has_lock, None)) };
            Ok((has_lock, Some((Timestamp::from_micros(now), columns(row, statements, id)?))))
        };
        let (has_lock, found) = read().map_err(TransactionFault::before_commit)?;
        let open = |(now, row): (Timestamp, codec::Row)| row.open(now).map(|record| (now, record));
        Ok(Self { has_lock, found: found.map(open).transpose().map_err(StoreError::from)? })
    }
}

fn columns(
    row: &impl ResultRow,
    statements: &OperationStatements,
    id: OperationId,
) -> Result<codec::Row, TransactionFault> {
    Ok(codec::Row {
        id,
        format: row.small(2)?,
        tenant: row.text(3)?.to_owned(),
        scope: row.text(4)?.to_owned(),
        key: row.text(5)?.to_owned(),
        fingerprint: row.bytes(6)?.to_vec(),
        state: row.small(7)?,
        fence: row.number(8)?,
        owner: row.number(9)?,
        recovery: row.small(10)?,
        doubt: row.small(11)?,
        until: row.number(12)?,
        created_at: row.number(13)?,
        changed_at: row.number(14)?,
        expires_at: row.number(15)?,
        tombstone: row.number(16)?,
        request: row.maybe_bytes(17)?.map(Bytes::copy_from_slice),
        outcome: row.maybe_bytes(18)?.map(statements.unpack),
    })
}
