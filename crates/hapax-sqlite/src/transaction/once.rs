use hapax_core::{
    AttemptAnswer, AttemptEnd, Faults, Fingerprint, Operation, Owner, Policy, StoreError,
    clock::ClockReading,
    settle,
    store::Settlement,
    transaction::{Answered, End, Entrance, Fate, TransactionAnswer},
};
use hapax_sqlite_file::is_busy;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{
    clock_mark,
    error::{commit_failed, nothing_written},
    log,
    options::Clock,
    row::{self, NumberedRow},
    transaction::{
        BUSY_RETRY_AFTER, EndedByHand, MAKE_CERTAIN, Meddled, OpenClaim, RELEASE, SAVEPOINT, UNDO,
        enter, is_due, place,
    },
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
    // A finished operation is answered without waiting for anybody's lock.
    match row::find(connection, None, unit.operation.id()) {
        Ok(found) => {
            let found = found.transpose()?;
            let clock = unit.read_clock(connection, found.as_ref())?;
            if let Err(answer) = enter(clock, &entrance, found)? {
                return told(answer);
            }
        }
        Err(error) if is_busy(&error) => {}
        Err(error) => return Err(nothing_written(error).into()),
    }
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) if is_busy(&error) => {
            return Err(TransactionOnceError::Refused(TransactionAnswer::Busy {
                retry_after: BUSY_RETRY_AFTER,
            }));
        }
        Err(error) => return Err(nothing_written(error).into()),
    };
    let found = row::find(&transaction, None, unit.operation.id()).map_err(nothing_written)?;
    let found = found.transpose()?;
    let clock = unit.read_clock(&transaction, found.as_ref())?;
    let claimed = match enter(clock, &entrance, found)? {
        Ok(claimed) => claimed,
        Err(answer) => return told(answer),
    };
    transaction.execute_batch(SAVEPOINT).map_err(nothing_written)?;
    unit.pass(place::AFTER_BEGIN)?;
    let answer = work(&transaction).map_err(TransactionOnceError::Failed)?;
    unit.pass(place::AFTER_WORK)?;
    let outcome = answer.outcome.clone();
    let settled = settle(&claimed.attempt(), AttemptEnd::Answered(answer), &unit.policy);
    let end = End { to: settled.to, keep: settled.keep };
    match &end.to {
        Settlement::Completed(_) => {}
        Settlement::Failed(_) => transaction.execute_batch(UNDO).map_err(by_hand)?,
        Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {
            transaction.rollback().map_err(by_hand)?;
            return Ok(Answered { outcome, fate: Fate::RolledBack });
        }
    }
    let finished = unit.finish(transaction, &claimed, &end);
    if let Err(lost @ StoreError::Unconfirmed(_)) = finished {
        find_out(connection, &claimed, lost)?;
    } else {
        finished?;
    }
    Ok(Answered { outcome, fate: Fate::Stored { expires_at: claimed.expires_at() } })
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

    fn read_clock(
        &self,
        connection: &Connection,
        found: Option<&NumberedRow>,
    ) -> Result<ClockReading, StoreError> {
        let now = self.clock.now();
        let mark = if is_due(now, found) {
            clock_mark::read(connection).map_err(nothing_written)?
        } else {
            None
        };
        Ok(ClockReading { now, mark })
    }

    fn pass(&self, place: &'static str) -> Result<(), StoreError> {
        self.faults.at(place).map_err(StoreError::unavailable)
    }

    fn finish(
        &self,
        transaction: Transaction<'_>,
        claimed: &OpenClaim,
        end: &End,
    ) -> Result<(), StoreError> {
        transaction.execute_batch(RELEASE).map_err(by_hand)?;
        let row = claimed.ended(self.clock.now(), end)?;
        let written = log::ready(log::replace(&mut &*transaction, claimed.number, &row));
        if !written.map_err(nothing_written)? {
            return Err(StoreError::unavailable(Meddled));
        }
        self.pass(place::BEFORE_COMMIT)?;
        transaction.commit().map_err(commit_failed)?;
        self.faults.at(place::AFTER_COMMIT).map_err(StoreError::unconfirmed)
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

/// Whether the commit that was not confirmed took place after all; an error if it did not, or if
/// that is still unknown.
fn find_out(
    connection: &mut Connection,
    claimed: &OpenClaim,
    lost: StoreError,
) -> Result<(), StoreError> {
    let attempt = claimed.attempt();
    let unknown = StoreError::unconfirmed;
    let behavior = TransactionBehavior::Immediate;
    let transaction = connection.transaction_with_behavior(behavior).map_err(unknown)?;
    transaction.execute(MAKE_CERTAIN, []).map_err(unknown)?;
    let found = row::find(&transaction, None, attempt.id).map_err(unknown)?.transpose()?;
    transaction.commit().map_err(unknown)?;
    let is_own = |NumberedRow { row, .. }: &NumberedRow| {
        row.fence == attempt.fence.get() && row.owner == attempt.owner.0
    };
    if found.as_ref().is_some_and(is_own) { Ok(()) } else { Err(StoreError::unavailable(lost)) }
}
