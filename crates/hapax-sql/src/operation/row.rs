//! A record as it comes back from PostgreSQL, or whoever has the same columns.

use bytes::Bytes;
use hapax_core::{
    OperationId,
    codec::{Row, Sealed},
};

use crate::{ResultRow, TransactionFault};

/// The record in the columns from the third on, whose order [`OperationStatements`](super::OperationStatements)
/// tells.
pub fn stored_row(
    row: &impl ResultRow,
    id: OperationId,
    unpack: fn(&[u8]) -> Sealed,
) -> Result<Row, TransactionFault> {
    Ok(Row {
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
        outcome: row.maybe_bytes(18)?.map(unpack),
    })
}
