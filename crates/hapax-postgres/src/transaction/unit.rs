//! The conversation that both drivers have with the server.

use std::time::Duration;

use hapax_core::{
    Attempt, Fence, Record, Salt, StoreError, Timestamp, TransactionError, codec, decide,
    limits::CLAIM_ROUNDS_MAX,
    store::Settlement,
    time::micros,
    transaction::{End, Entrance, TransactionAnswer, enter},
};
use hapax_sql::TransactionFault;
use tokio::time::{Instant, timeout};

use super::{
    SAVEPOINT,
    session::{AttemptEnding, Fresh, OperationSession},
};
use crate::{OpenError, VERSION};

/// When to come back if another transaction had the operation for the whole wait.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long to wait for a transaction whose commit was not confirmed to end.
const END_WAIT: Duration = Duration::from_secs(2);
/// How long a rollback may take before the statement it waits for is cancelled.
const CANCEL_AFTER: Duration = Duration::from_millis(250);
/// How long cancelling may take.
const CANCEL_MAX: Duration = Duration::from_secs(2);

/// What a transaction holds.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) attempt: Attempt,
    pub(crate) claimed: ClaimManner,
    /// Until when the outcome is kept, as known at the beginning.
    pub(crate) expires_at: Timestamp,
    pub(crate) begun: Instant,
}

/// What a transaction is for: an operation, whose outcome is kept for so long.
#[derive(Debug)]
pub struct ForOperation {
    pub(crate) held: Held,
    pub(crate) retention: Duration,
}

/// What a transaction is for: messages, or an operation.
pub(crate) trait Purpose {
    /// The lock that only this transaction has, by which it can be found.
    fn lock(&self) -> Option<LockName>;
}

impl Purpose for ForOperation {
    fn lock(&self) -> Option<LockName> {
        Some(LockName { kind: "operation", name: self.held.attempt.id.to_string() })
    }
}

/// What a lock belongs to. Its number is known to the server alone, which has the salt.
#[derive(Debug)]
pub(crate) struct LockName {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// How the operation was claimed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClaimManner {
    /// For the first time: the row is written as finished, and waits for its outcome.
    Fresh(Fresh),
    /// Over something that was there before.
    Over,
}

/// A right won, or the answer to give instead.
pub(crate) type Entering = Result<Held, TransactionAnswer>;

/// Goes on from the first claim in a transaction: it was won, or something stood in its way. The
/// savepoint is set where the right is won.
pub(crate) async fn enter_session(
    session: &mut impl OperationSession,
    entrance: &Entrance,
    mut first: Option<Fresh>,
) -> Result<Entering, TransactionError> {
    let id = entrance.operation.id();
    let attempt = |fence| Attempt { id, fence, owner: entrance.owner };
    let held = |fence, claimed, expires_at| Held {
        attempt: attempt(fence),
        claimed,
        expires_at,
        begun: Instant::now(),
    };
    let fault = TransactionFault::before_commit;
    for round in 0..CLAIM_ROUNDS_MAX {
        if round > 0 {
            first = session.claim(entrance).await.map_err(fault)?;
        }
        if let Some(fresh) = first {
            return Ok(Ok(held(Fence::FIRST, ClaimManner::Fresh(fresh), fresh.expires_at)));
        }
        if round == 0 {
            let wait = micros(entrance.wait);
            if !session.lock(id, wait).await.map_err(fault)? {
                return Ok(Err(TransactionAnswer::Busy { retry_after: TRY_AGAIN }));
            }
        }
        let Some(read) = session.read(id).await.map_err(fault)? else { continue };
        let (now, record) = read.open()?;
        let decision = decide(now, &entrance.arrival(), Some(&record), &entrance.policy);
        let claim = match enter(now, decision, Some(&record)) {
            Ok(claim) => claim,
            Err(answer) => return Ok(Err(answer)),
        };
        if let Some(expires_at) = session.follow(&claim).await.map_err(fault)? {
            session.run(SAVEPOINT).await.map_err(fault)?;
            return Ok(Ok(held(claim.fence, ClaimManner::Over, expires_at)));
        }
    }
    Err(TransactionError::conflict("other writers kept changing the record"))
}

/// What to write at the end, and whether the row itself must change.
pub(crate) fn ending(
    held: &Held,
    retention: Duration,
    end: &End,
) -> Option<(AttemptEnding, Placing)> {
    let sealed = codec::seal(held.attempt.id, end.to.outcome()?);
    let ending = AttemptEnding { state: end.to.tag() as i16, keep: micros(end.keep), sealed };
    // A fresh row says it is completed, and lives as long as was known at its beginning.
    let lives = held.begun.elapsed() + end.keep <= retention;
    let placing = match (held.claimed, &end.to) {
        (ClaimManner::Fresh(fresh), Settlement::Completed(_)) if lives => Placing::Beside(fresh),
        (ClaimManner::Fresh(_) | ClaimManner::Over, _) => Placing::WithTheRow,
    };
    Some((ending, placing))
}

/// Where an outcome is written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Placing {
    /// Into the place that a fresh claim took for it.
    Beside(Fresh),
    /// Together with a change of the row.
    WithTheRow,
}

/// What is stored once nobody holds the operation's lock any more.
pub(crate) async fn read_ended(
    session: &mut impl OperationSession,
    attempt: &Attempt,
) -> Result<Option<Record>, TransactionError> {
    let fault = TransactionFault::before_commit;
    if !session.lock(attempt.id, micros(END_WAIT)).await.map_err(fault)? {
        return Err(StoreError::unconfirmed("the transaction has not ended yet").into());
    }
    let Some(read) = session.read(attempt.id).await.map_err(fault)? else { return Ok(None) };
    Ok(Some(read.open()?.1))
}

/// Ends a transaction, and where that takes long, has its statement cancelled: the server would
/// otherwise finish what nobody waits for, and hold the key as long.
pub(crate) async fn end_soon(ending: impl Future<Output = ()>, cancel: impl Future<Output = ()>) {
    let mut ending = std::pin::pin!(ending);
    if timeout(CANCEL_AFTER, &mut ending).await.is_err() {
        // Without a connection to cancel from, the end is waited for.
        let _ = timeout(CANCEL_MAX, cancel).await;
        ending.await;
    }
}

/// The salt, if this code can work with the schema it is in.
pub(crate) fn checked_salt(
    version: i32,
    works_with: i32,
    salt: &[u8],
) -> Result<Salt, TransactionError> {
    let refused = if works_with > VERSION {
        OpenError::TooNew { found: version, needed: works_with }
    } else if version < VERSION {
        OpenError::NotMigrated { found: version }
    } else {
        match <[u8; 32]>::try_from(salt) {
            Ok(salt) => return Ok(Salt::from_bytes(salt)),
            Err(_) => OpenError::DamagedSalt,
        }
    };
    Err(StoreError::unavailable(refused).into())
}
