//! The conversation that both drivers have with the server.

use std::time::Duration;

use hapax_core::{
    Attempt, Fence, Record, Salt, StoreError, Timestamp, TransactionError, codec, decide,
    limits::CLAIM_ROUNDS_MAX,
    time::micros,
    transaction::{End, Entrance, TransactionAnswer, enter},
};
use tokio::time::timeout;

use super::{
    SAVEPOINT,
    error::TransactionFault,
    session::{AttemptEnding, Session},
};
use crate::{OpenError, VERSION, inbox::Carried};

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
    /// Until when the outcome is kept, as known at the beginning.
    pub(crate) expires_at: Timestamp,
}

/// What a transaction is for.
#[derive(Debug)]
pub(crate) enum TransactionPurpose {
    /// An operation.
    Operation(Held),
    /// A message.
    Message(Carried),
}

impl TransactionPurpose {
    /// The lock that only this transaction has, by which it can be found.
    pub(crate) fn lock(&self) -> Option<LockName> {
        match self {
            Self::Operation(held) => {
                Some(LockName { kind: "operation", name: held.attempt.id.to_string() })
            }
            Self::Message(carried) => carried.lock(),
        }
    }
}

/// What a lock belongs to. Its number is known to the server alone, which has the salt.
#[derive(Debug)]
pub(crate) struct LockName {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// A right won, or the answer to give instead.
pub(crate) type Entering = Result<Held, TransactionAnswer>;

/// Goes on from the first claim in a transaction: it was won, or something stood in its way. The
/// savepoint is set where the right is won.
pub(crate) async fn enter_session(
    session: &mut impl Session,
    entrance: &Entrance,
    mut first: Option<Timestamp>,
) -> Result<Entering, TransactionError> {
    let id = entrance.operation.id();
    let attempt = |fence| Attempt { id, fence, owner: entrance.owner };
    let held = |fence, expires_at| Held { attempt: attempt(fence), expires_at };
    let fault = TransactionFault::before_commit;
    for round in 0..CLAIM_ROUNDS_MAX {
        if round > 0 {
            first = session.claim(entrance).await.map_err(fault)?;
        }
        if let Some(expires_at) = first {
            return Ok(Ok(held(Fence::FIRST, expires_at)));
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
            return Ok(Ok(held(claim.fence, expires_at)));
        }
    }
    Err(TransactionError::conflict("other writers kept changing the record"))
}

/// What to write at the end.
pub(crate) fn ending(held: &Held, end: &End) -> Option<AttemptEnding> {
    let sealed = codec::seal(held.attempt.id, end.to.outcome()?);
    Some(AttemptEnding { state: end.to.tag() as i16, keep: micros(end.keep), sealed })
}

/// What is stored once nobody holds the operation's lock any more.
pub(crate) async fn read_ended(
    session: &mut impl Session,
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
