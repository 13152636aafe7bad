use hapax_core::{
    Attempt, AttemptAnswer, AttemptEnd, Faults, Fingerprint, Operation, Owner, Policy, StoreError,
    Timestamp, settle,
    store::Settlement,
    transaction::{Answered, End, Entrance, Fate, TransactionAnswer},
};
use hapax_sql::operation::{
    ForOperation,
    unit::{BUSY, RecordPlace, enter, leave, read_ended},
};
use hapax_sqlite_file::is_busy;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{
    error::{commit_failed, nothing_written},
    log,
    options::Clock,
    session::LentConnection,
    transaction::{EndedByHand, LogRecord, RELEASE, SAVEPOINT, UNDO, answer_before, place},
};

/// Runs `work` once for its operation, in a transaction of your own database.
///
/// Your writes and the record of the operation commit or vanish together: a crash at any place
/// leaves both or neither. `work` says what its answer means:
///
/// - completed: your writes are committed together with the outcome;
/// - failed: your writes are taken back, and the outcome is committed alone;
/// - anything else, an error of `work` or a panic takes everything back, and the key is free again.
///
/// Whoever comes again gets the stored outcome ([`Fate::Replayed`]); `work` is not called. The call
/// waits for other writers as long as the connection's busy timeout says, then refuses with
/// [`TransactionAnswer::Busy`]. The tables must be there: see [`migrate`](crate::migrate).
///
/// `work` must leave `COMMIT` and `ROLLBACK` alone; its own savepoints are welcome.
///
/// ```
/// use hapax_core::{AttemptAnswer, Key, Operation, Outcome, RequestParts, Scope, Tenant};
/// use hapax_sqlite::{OnceRequest, migrate, once};
///
/// let mut connection = rusqlite::Connection::open_in_memory()?;
/// connection.execute("CREATE TABLE payments (id TEXT PRIMARY KEY, cents INTEGER)", [])?;
/// let salt = migrate(&mut connection)?;
///
/// let operation =
///     Operation::new(Tenant::parse("acme")?, Scope::parse("pay")?, Key::parse("9f1c2d")?);
/// let request = RequestParts { body: b"{\"cents\":100}", ..RequestParts::default() };
/// let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(&request);
/// let unit = OnceRequest::new(operation, fingerprint);
///
/// for _ in 0..2 {
///     let answered = once(&mut connection, &unit, |tx| {
///         tx.execute("INSERT INTO payments VALUES ('p1', 100)", [])?;
///         Ok::<_, rusqlite::Error>(AttemptAnswer::completed(Outcome::bare(201)))
///     })?;
///     assert_eq!(answered.outcome.status(), 201);
/// }
/// let paid: i64 = connection.query_row("SELECT count(*) FROM payments", [], |row| row.get(0))?;
/// assert_eq!(paid, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn once<E>(
    connection: &mut Connection,
    unit: &OnceRequest,
    work: impl FnOnce(&Transaction<'_>) -> Result<AttemptAnswer, E>,
) -> Result<Answered, TransactionOnceError<E>> {
    let entrance = unit.entrance();
    unit.pass(place::BEFORE_BEGIN)?;
    let lent = &mut LentConnection(connection);
    if let Some(answer) = log::ready(answer_before(lent, unit.record(), &entrance))? {
        return told(answer);
    }
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) if is_busy(&error) => return told(BUSY),
        Err(error) => return Err(nothing_written(error).into()),
    };
    let lent = &mut LentConnection(&transaction);
    let entered = log::ready(enter(lent, unit.record(), &entrance)).map_err(StoreError::from)?;
    let operation = match entered {
        Ok(operation) => operation,
        Err(answer) => return told(answer),
    };
    transaction.execute_batch(SAVEPOINT).map_err(nothing_written)?;
    unit.pass(place::AFTER_BEGIN)?;
    let answer = work(&transaction).map_err(TransactionOnceError::Failed)?;
    unit.pass(place::AFTER_WORK)?;
    let outcome = answer.outcome.clone();
    let settled = settle(&operation.attempt(), AttemptEnd::Answered(answer), &unit.policy);
    let end = End { to: settled.to, keep: settled.keep };
    match &end.to {
        Settlement::Completed(_) => {}
        Settlement::Failed(_) => transaction.execute_batch(UNDO).map_err(by_hand)?,
        Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {
            transaction.rollback().map_err(by_hand)?;
            return Ok(Answered { outcome, fate: Fate::RolledBack });
        }
    }
    let expires_at = match unit.finish(transaction, &operation, &end) {
        Err(lost @ StoreError::Unconfirmed(_)) => {
            unit.find_out(connection, &operation.attempt(), lost)?
        }
        finished => finished?,
    };
    Ok(Answered { outcome, fate: Fate::Stored { expires_at } })
}

/// An operation to be run [`once`] in a transaction.
///
/// ```
/// use hapax_core::{Key, Operation, Recovery, RequestParts, Scope, Tenant};
/// use hapax_sqlite::{OnceRequest, migrate};
///
/// let mut connection = rusqlite::Connection::open_in_memory()?;
/// let salt = migrate(&mut connection)?;
/// let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("pay")?);
/// let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// let request = RequestParts { body: b"100", ..RequestParts::default() };
/// let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(&request);
/// let unit = OnceRequest::new(operation, fingerprint);
/// assert_eq!(unit.policy.recovery(), Recovery::Hold);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OnceRequest {
    /// Which operation.
    pub operation: Operation,
    /// With which request.
    pub fingerprint: Fingerprint,
    /// How it is treated; its lease does not matter, because the transaction is the lease.
    pub policy: Policy,
    /// The clock of its record.
    pub clock: Clock,
    /// Where tests make it fail, at one of [`PLACES`](crate::transaction::PLACES).
    pub faults: Faults,
}

/// Why an operation that was to run [`once`] has no answer.
///
/// Only [`TransactionOnceError::Unknown`] leaves open whether something was committed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionOnceError<E> {
    /// It was not run: busy, in doubt, another request's key, or past retention.
    #[error("it was not run: {0:?}")]
    Refused(TransactionAnswer),
    /// The work failed, and everything was rolled back.
    #[error("the work failed; everything was rolled back")]
    Failed(#[source] E),
    /// The database cannot be used now; nothing was committed.
    #[error("the database failed; nothing was committed")]
    Store(#[source] StoreError),
    /// The commit was not confirmed, and nobody could say what became of it: ask again with the
    /// same key.
    #[error("the commit was not confirmed; ask again with the same key")]
    Unknown(#[source] StoreError),
}

impl<E> From<StoreError> for TransactionOnceError<E> {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unconfirmed(_) => Self::Unknown(error),
            StoreError::Unavailable(_) | StoreError::Damaged(_) | StoreError::TooNew(_) => {
                Self::Store(error)
            }
        }
    }
}

impl OnceRequest {
    /// Under the default policy and the system's clock.
    pub fn new(operation: Operation, fingerprint: Fingerprint) -> Self {
        let (policy, clock, faults) = (Policy::default(), Clock::default(), Faults::default());
        Self { operation, fingerprint, policy, clock, faults }
    }

    fn entrance(&self) -> Entrance {
        Entrance {
            operation: self.operation.clone(),
            fingerprint: self.fingerprint,
            owner: Owner::draw(),
            policy: self.policy,
            wait: std::time::Duration::ZERO,
        }
    }

    fn record(&self) -> LogRecord {
        LogRecord::new(self.operation.id(), &self.clock)
    }

    fn pass(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unavailable)
    }

    /// Writes the record and commits; until when it is kept.
    fn finish(
        &self,
        transaction: Transaction<'_>,
        operation: &ForOperation<LogRecord>,
        end: &End,
    ) -> Result<Timestamp, StoreError> {
        transaction.execute_batch(RELEASE).map_err(by_hand)?;
        let lent = &mut LentConnection(&transaction);
        let expires_at = log::ready(leave(lent, operation, end, RecordPlace::Open))?;
        self.pass(place::BEFORE_COMMIT)?;
        transaction.commit().map_err(commit_failed)?;
        self.faults.at(place::AFTER_COMMIT).map_err(StoreError::unconfirmed)?;
        Ok(expires_at)
    }

    /// Until when the record is kept, if the commit that was not confirmed took place after all; an
    /// error if it did not, or if that is still unknown.
    fn find_out(
        &self,
        connection: &mut Connection,
        attempt: &Attempt,
        lost: StoreError,
    ) -> Result<Timestamp, StoreError> {
        let unknown = StoreError::unconfirmed;
        let behavior = TransactionBehavior::Immediate;
        let transaction = connection.transaction_with_behavior(behavior).map_err(unknown)?;
        let lent = &mut LentConnection(&transaction);
        let found = log::ready(read_ended(lent, self.record())).map_err(StoreError::unconfirmed)?;
        transaction.commit().map_err(unknown)?;
        let own = found.filter(|record| attempt.owns(record));
        own.map(|record| record.expires_at).ok_or_else(|| StoreError::unavailable(lost))
    }
}

fn told<E>(answer: TransactionAnswer) -> Result<Answered, TransactionOnceError<E>> {
    let TransactionAnswer::Replay(record) = &answer else {
        return Err(TransactionOnceError::Refused(answer));
    };
    let fate = Fate::Replayed { expires_at: record.expires_at };
    let outcome = record.outcome().cloned();
    outcome.map(|outcome| Answered { outcome, fate }).ok_or(TransactionOnceError::Refused(answer))
}

fn by_hand(error: rusqlite::Error) -> StoreError {
    StoreError::damaged(EndedByHand(error))
}
