//! The conversation inside a transaction that runs an operation.

use std::time::Duration;

use hapax_core::{
    Attempt, Record, StoreError, Timestamp, TransactionError, decide,
    store::Claim,
    transaction::{self, End, Entrance, TransactionAnswer},
};

use super::{
    LockedRecord,
    record::{KeySeen, OperationRecord},
};
use crate::{Session, TransactionFault};

/// When to come back if another transaction had the operation for the whole wait: nobody knows how long it takes.
pub const BUSY: TransactionAnswer = TransactionAnswer::Busy { retry_after: Duration::from_secs(1) };
/// How long to wait for a transaction whose commit was not confirmed to end.
const END_WAIT: Duration = Duration::from_secs(2);

/// What a transaction knows of the operation it runs: that it is for it, and for nothing else.
#[derive(Debug)]
pub struct ForOperation<R = LockedRecord> {
    /// The claim over what was there: over nothing where nothing was, or nobody has looked.
    claim: Box<Claim>,
    wait: Duration,
    record: R,
}

impl<R> ForOperation<R> {
    /// As if the operation were new, without a look.
    pub fn unseen(record: R, entrance: &Entrance) -> Self {
        Self { claim: Box::new(entrance.first_claim()), wait: entrance.wait, record }
    }

    /// The attempt that this is.
    pub fn attempt(&self) -> Attempt {
        let Claim { operation, fence, owner, .. } = &*self.claim;
        Attempt { id: operation.id(), fence: *fence, owner: *owner }
    }
}

/// Finds out whether an operation may be run, and under which fence.
pub async fn enter<R: OperationRecord>(
    session: &mut impl Session,
    mut record: R,
    entrance: &Entrance,
) -> Result<Result<ForOperation<R>, TransactionAnswer>, TransactionError> {
    let fault = TransactionFault::before_commit;
    loop {
        let KeySeen { has_lock, found } = record.look(session).await.map_err(fault)?;
        let claim = match decided(entrance, found) {
            Ok(claim) => claim,
            Err(answer) => return Ok(Err(answer)),
        };
        if has_lock {
            return Ok(Ok(ForOperation { claim, wait: entrance.wait, record }));
        }
        if !record.wait(session, entrance.wait).await.map_err(fault)? {
            return Ok(Err(BUSY));
        }
    }
}

/// The same before the transaction begins, by itself: where a replay is to wait for nobody, or where a read in
/// the transaction would count. Under SERIALIZABLE, looking for a record that is not there is in the way of
/// everybody whose record comes to lie beside it.
pub async fn look_before<R: OperationRecord>(
    session: &mut impl Session,
    mut record: R,
    entrance: &Entrance,
) -> Result<Result<ForOperation<R>, TransactionAnswer>, TransactionError> {
    let seen = record.peek(session).await.map_err(TransactionFault::before_commit)?;
    let claim = decided(entrance, seen.found);
    Ok(claim.map(|claim| ForOperation { claim, wait: entrance.wait, record }))
}

/// Takes the lock of what was looked at before; the answer to give if another transaction has it for too long.
pub async fn enter_seen(
    session: &mut impl Session,
    operation: &mut ForOperation,
) -> Result<Option<TransactionAnswer>, TransactionError> {
    let ForOperation { record, wait, .. } = operation;
    let fault = TransactionFault::before_commit;
    let has_lock = record.lock(session).await.map_err(fault)?
        || record.wait(session, *wait).await.map_err(fault)?;
    Ok((!has_lock).then_some(BUSY))
}

/// What the machine says to what was found: the claim to write over it, or an answer.
fn decided(
    entrance: &Entrance,
    found: Option<(Timestamp, Record)>,
) -> Result<Box<Claim>, TransactionAnswer> {
    let Some((now, record)) = found else { return Ok(Box::new(entrance.first_claim())) };
    let decision = decide(now, &entrance.arrival(), Some(&record), &entrance.policy);
    transaction::enter(now, decision, Some(&record)).map(Box::new)
}

/// Where the record of an attempt is written.
#[derive(Debug, Clone, Copy)]
pub enum RecordPlace {
    /// In the open transaction, whose commit is left to do.
    Open,
    /// In the open transaction, which this commits, sent along.
    Committed(&'static str),
    /// In a transaction of its own; the open one is first ended by this, if there is one.
    Alone(Option<&'static str>),
}

impl RecordPlace {
    fn meaning(self, fault: TransactionFault) -> TransactionError {
        match self {
            Self::Open => fault.before_commit(),
            Self::Committed(_) | Self::Alone(_) => fault.of_commit(),
        }
    }
}

/// Writes how an attempt ended; until when that is kept.
///
/// [`TransactionError::Taken`] says that the operation was not new, or changed since it was looked at.
pub async fn leave<R: OperationRecord>(
    session: &mut impl Session,
    operation: &ForOperation<R>,
    end: &End,
    place: RecordPlace,
) -> Result<Timestamp, TransactionError> {
    if end.to.outcome().is_none() {
        return Err(StoreError::unavailable("only an answer can be stored").into());
    }
    let (before, commit) = match place {
        RecordPlace::Open => (None, None),
        RecordPlace::Committed(commit) => (None, Some(commit)),
        RecordPlace::Alone(rollback) => (rollback, None),
    };
    if let Some(before) = before {
        // By itself: what a driver prepares behind a statement that failed is refused.
        session.ask(before, &[]).await.map_err(TransactionFault::before_commit)?;
    }
    let written = operation.record.write(session, &operation.claim, end, commit).await;
    written.map_err(|fault| place.meaning(fault))
}

/// What is stored once nobody has the operation's lock any more.
pub async fn read_ended(
    session: &mut impl Session,
    mut record: impl OperationRecord,
) -> Result<Option<Record>, TransactionError> {
    let fault = TransactionFault::before_commit;
    if !record.wait(session, END_WAIT).await.map_err(fault)? {
        return Err(StoreError::unconfirmed("the transaction has not ended yet").into());
    }
    let seen = record.look(session).await.map_err(fault)?;
    Ok(seen.found.map(|(_, record)| record))
}
