//! What both drivers can say to the server inside a transaction.

use hapax_core::{
    OperationId, Record, StoreError, Timestamp,
    codec::{self, Sealed},
    store::Claim,
    time::micros,
    transaction::Entrance,
};

use super::{error::TransactionFault, events::EventColumns};

/// A connection with an open transaction.
pub(crate) trait Session: Send {
    /// Runs a statement without parameters and without an answer.
    fn run(
        &mut self,
        text: &'static str,
    ) -> impl Future<Output = Result<(), TransactionFault>> + Send;

    /// Claims an operation that nobody has and nobody ever had, and sets the savepoint.
    fn claim(
        &mut self,
        entrance: &Entrance,
    ) -> impl Future<Output = Result<Option<Fresh>, TransactionFault>> + Send;

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

    /// Writes events into a segment by this statement; how many.
    fn emit(
        &mut self,
        text: &'static str,
        segment: i64,
        events: &EventColumns,
    ) -> impl Future<Output = Result<u64, TransactionFault>> + Send;

    /// Where the log is written now.
    fn segment(&mut self) -> impl Future<Output = Result<i64, TransactionFault>> + Send;

    /// Makes room for an outcome that expires then, or is kept for so many microseconds from now.
    fn make_room(
        &mut self,
        expires_at: Timestamp,
        keep: i64,
    ) -> impl Future<Output = Result<(), TransactionFault>> + Send;
}

/// A claim that is the first of its operation: where its outcome goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fresh {
    pub(crate) expires_at: Timestamp,
    pub(crate) bucket: i32,
    pub(crate) response: i64,
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
        let outcome = match ($row.try_get(19)?, $row.try_get(20)?, $row.try_get(21)?) {
            (Some(head), Some(body), Some(digest)) => {
                let (head, body, digest): (Vec<u8>, Vec<u8>, Vec<u8>) = (head, body, digest);
                let digest = digest.try_into().unwrap_or_default();
                Some(hapax_core::codec::Sealed { head: head.into(), body: body.into(), digest })
            }
            (_, _, _) => None,
        };
        let request: Option<Vec<u8>> = $row.try_get(18)?;
        $crate::transaction::session::TransactionRow {
            now: hapax_core::Timestamp::from_micros($row.try_get(0)?),
            row: hapax_core::codec::Row {
                id: $id,
                format: $row.try_get(3)?,
                tenant: $row.try_get(4)?,
                scope: $row.try_get(5)?,
                key: $row.try_get(6)?,
                fingerprint: $row.try_get(7)?,
                state: $row.try_get(8)?,
                fence: $row.try_get(9)?,
                owner: $row.try_get(10)?,
                recovery: $row.try_get(11)?,
                doubt: $row.try_get(12)?,
                until: $row.try_get(13)?,
                created_at: $row.try_get(14)?,
                changed_at: $row.try_get(15)?,
                expires_at: $row.try_get(16)?,
                tombstone: $row.try_get(17)?,
                request: request.map(Into::into),
                outcome,
            },
        }
    }};
}
pub(crate) use read_row;
