//! What both drivers can say to the server inside a transaction.

use hapax_core::{
    OperationId, Record, StoreError, Timestamp,
    codec::{self, Sealed},
    store::Claim,
    time::micros,
    transaction::Entrance,
};

use super::error::TransactionFault;

/// A connection with an open transaction.
pub(crate) trait Session: Send {
    /// Runs a statement without parameters and without an answer.
    fn run(
        &mut self,
        text: &'static str,
    ) -> impl Future<Output = Result<(), TransactionFault>> + Send;

    /// Claims an operation that nobody has and nobody ever had, and sets the savepoint; until when
    /// its outcome is kept.
    fn claim(
        &mut self,
        entrance: &Entrance,
    ) -> impl Future<Output = Result<Option<Timestamp>, TransactionFault>> + Send;

    /// Waits for the lock of an operation, for so many microseconds.
    fn lock(
        &mut self,
        id: OperationId,
        wait: i64,
    ) -> impl Future<Output = Result<bool, TransactionFault>> + Send;

    /// What is stored, and the server's clock.
    fn read(
        &mut self,
        id: OperationId,
    ) -> impl Future<Output = Result<Option<TransactionRow>, TransactionFault>> + Send;

    /// Claims over what was read; until when its outcome is kept, if that was still there.
    fn follow(
        &mut self,
        claim: &Claim,
    ) -> impl Future<Output = Result<Option<Timestamp>, TransactionFault>> + Send;
}

/// What `tx_claim.sql` takes, in its order.
pub(crate) struct ClaimValues<'a> {
    pub(crate) id: Vec<u8>,
    pub(crate) tenant: &'a str,
    pub(crate) scope: &'a str,
    pub(crate) key: &'a str,
    pub(crate) fingerprint: &'a [u8],
    pub(crate) owner: i64,
    pub(crate) recovery: i16,
    pub(crate) retention: i64,
    pub(crate) tombstone: i64,
}

impl<'a> ClaimValues<'a> {
    pub(crate) fn of(entrance: &'a Entrance) -> Self {
        let (operation, retention) = (&entrance.operation, entrance.policy.retention());
        Self {
            id: operation.id().as_bytes().to_vec(),
            tenant: operation.tenant().as_str(),
            scope: operation.scope().as_str(),
            key: operation.key().as_str(),
            fingerprint: entrance.fingerprint.as_bytes(),
            owner: entrance.owner.0,
            recovery: entrance.policy.recovery() as i16,
            retention: micros(retention.window),
            tombstone: micros(retention.tombstone),
        }
    }
}

/// A row as read inside a transaction.
pub(crate) struct TransactionRow {
    pub(crate) now: Timestamp,
    pub(crate) row: codec::Row,
}

impl TransactionRow {
    pub(crate) fn open(self) -> Result<(Timestamp, Record), StoreError> {
        Ok((self.now, self.row.open(self.now)?))
    }
}

/// What is written at the end of an attempt.
#[derive(Debug)]
pub(crate) struct AttemptEnding {
    pub(crate) state: i16,
    pub(crate) keep: i64,
    pub(crate) sealed: Sealed,
}

/// Takes a row of `tx_read.sql` apart; both drivers call their columns alike.
macro_rules! read_row {
    ($row:expr, $id:expr) => {{
        let answer: Option<Vec<u8>> = $row.try_get(17)?;
        let request: Option<Vec<u8>> = $row.try_get(16)?;
        $crate::transaction::session::TransactionRow {
            now: hapax_core::Timestamp::from_micros($row.try_get(0)?),
            row: hapax_core::codec::Row {
                id: $id,
                format: $row.try_get(1)?,
                tenant: $row.try_get(2)?,
                scope: $row.try_get(3)?,
                key: $row.try_get(4)?,
                fingerprint: $row.try_get(5)?,
                state: $row.try_get(6)?,
                fence: $row.try_get(7)?,
                owner: $row.try_get(8)?,
                recovery: $row.try_get(9)?,
                doubt: $row.try_get(10)?,
                until: $row.try_get(11)?,
                created_at: $row.try_get(12)?,
                changed_at: $row.try_get(13)?,
                expires_at: $row.try_get(14)?,
                tombstone: $row.try_get(15)?,
                request: request.map(Into::into),
                outcome: answer.map($crate::answer::sealed),
            },
        }
    }};
}
pub(crate) use read_row;
