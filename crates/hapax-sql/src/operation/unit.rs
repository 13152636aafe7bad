//! The conversation inside a transaction that runs an operation.

use std::time::Duration;

use hapax_core::{
    Attempt, Fence, OperationId, Record, StoreError, Timestamp, TransactionError, codec, decide,
    store::{Claim, Over},
    time::micros,
    transaction::{self, End, Entrance, TransactionAnswer},
};

use super::{OperationStatements, row::KeySeen};
use crate::{ResultRow, Session, Statement, TransactionFault, Value};

/// When to come back if another transaction had the operation for the whole wait.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// How long to wait for a transaction whose commit was not confirmed to end.
const END_WAIT: Duration = Duration::from_secs(2);

/// What a transaction knows of the operation it runs: that it is for it, and for nothing else.
#[derive(Debug)]
pub struct ForOperation {
    entrance: Entrance,
    lock: i64,
    /// The claim over what was there; `None` where nothing was, or nobody has looked.
    over: Option<Box<Claim>>,
}

impl ForOperation {
    /// As if the operation were new, without a look.
    pub fn unseen(entrance: &Entrance, lock: i64) -> Self {
        Self { entrance: entrance.clone(), lock, over: None }
    }

    /// The attempt that this is.
    pub fn attempt(&self) -> Attempt {
        let fence = self.over.as_ref().map_or(Fence::FIRST, |claim| claim.fence);
        Attempt { id: self.entrance.operation.id(), fence, owner: self.entrance.owner }
    }
}

/// Finds out whether an operation may be run, and under which fence.
///
/// `begin` goes out together with the first statement, where the transaction has not begun yet. The
/// statement that tries the lock may show what was there before it had it: whoever committed in between is
/// met when the record is written.
pub async fn enter(
    session: &mut impl Session,
    statements: &OperationStatements,
    begin: Option<&'static str>,
    entrance: &Entrance,
    lock: i64,
) -> Result<Result<ForOperation, TransactionAnswer>, TransactionError> {
    let id = entrance.operation.id();
    let values = [lock.into(), id.as_bytes().into()];
    let look = Statement { text: statements.look, values: &values };
    let fault = TransactionFault::before_commit;
    let begun = begin.map(Statement::plain);
    let asked: Vec<_> = begun.into_iter().chain([look]).collect();
    let mut rows = session.ask_all(&asked).await.map_err(fault)?.pop().unwrap_or_default();
    loop {
        let KeySeen { has_lock, found } = KeySeen::of(&rows, statements, id)?;
        let over = match decided(entrance, found) {
            Ok(over) => over,
            Err(answer) => return Ok(Err(answer)),
        };
        if has_lock {
            return Ok(Ok(ForOperation { entrance: entrance.clone(), lock, over }));
        }
        if !wait(session, statements, lock, entrance.wait).await? {
            return Ok(Err(TransactionAnswer::Busy { retry_after: TRY_AGAIN }));
        }
        rows = session.ask(statements.look, &values).await.map_err(fault)?;
    }
}

/// The same for a transaction in which a read would count: under SERIALIZABLE, looking for a record that is
/// not there is in the way of everybody whose record comes to lie beside it. So the look is made before the
/// transaction begins, by itself.
pub async fn look_before(
    session: &mut impl Session,
    statements: &OperationStatements,
    entrance: &Entrance,
    lock: i64,
) -> Result<Result<ForOperation, TransactionAnswer>, TransactionError> {
    let id = entrance.operation.id();
    let rows = session.ask(statements.peek, &[id.as_bytes().into()]).await;
    let rows = rows.map_err(TransactionFault::before_commit)?;
    let over = decided(entrance, KeySeen::of(&rows, statements, id)?.found);
    Ok(over.map(|over| ForOperation { entrance: entrance.clone(), lock, over }))
}

/// Takes the lock of what was looked at before; the answer to give if another transaction has it for too long.
/// `begin` goes out together with the first statement, where the transaction has not begun yet.
pub async fn enter_seen(
    session: &mut impl Session,
    statements: &OperationStatements,
    begin: Option<&'static str>,
    operation: &ForOperation,
) -> Result<Option<TransactionAnswer>, TransactionError> {
    let fault = TransactionFault::before_commit;
    let values = [operation.lock.into()];
    let asked = begin.map(Statement::plain).into_iter();
    let asked: Vec<_> =
        asked.chain([Statement { text: statements.lock, values: &values }]).collect();
    let rows = session.ask_all(&asked).await.map_err(fault)?.pop().unwrap_or_default();
    let row = rows.first().ok_or_else(|| TransactionFault::unexpected(0));
    if row.and_then(|row| row.flag(0)).map_err(fault)? {
        return Ok(None);
    }
    let is_over = wait(session, statements, operation.lock, operation.entrance.wait).await?;
    let busy = TransactionAnswer::Busy { retry_after: TRY_AGAIN };
    Ok((!is_over).then_some(busy))
}

/// What the machine says to what was found: a claim over it, if there is something to claim over.
fn decided(
    entrance: &Entrance,
    found: Option<(Timestamp, Record)>,
) -> Result<Option<Box<Claim>>, TransactionAnswer> {
    let Some((now, record)) = found else { return Ok(None) };
    let decision = decide(now, &entrance.arrival(), Some(&record), &entrance.policy);
    transaction::enter(now, decision, Some(&record)).map(|claim| Some(Box::new(claim)))
}

/// Waits for whoever has the operation; whether it is over. A transaction that would not see what was
/// committed meanwhile has to begin anew.
async fn wait(
    session: &mut impl Session,
    statements: &OperationStatements,
    lock: i64,
    wait: Duration,
) -> Result<bool, TransactionError> {
    let fault = TransactionFault::before_commit;
    let rows = session.ask(statements.wait, &[lock.into(), micros(wait).into()]).await;
    let rows = rows.map_err(fault)?;
    let Some(row) = rows.first() else {
        return Err(StoreError::unavailable("a wait came back without a row").into());
    };
    match (row.flag(0).map_err(fault)?, row.flag(1).map_err(fault)?) {
        (false, _) => Ok(false),
        (true, true) => Ok(true),
        (true, false) => {
            Err(TransactionError::conflict("another transaction ended after this one began"))
        }
    }
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
pub async fn leave(
    session: &mut impl Session,
    statements: &OperationStatements,
    operation: &ForOperation,
    end: &End,
    place: RecordPlace,
) -> Result<Timestamp, TransactionError> {
    let Some(outcome) = end.to.outcome() else {
        return Err(StoreError::unavailable("only an answer can be stored").into());
    };
    let id = operation.entrance.operation.id();
    let answer = (statements.pack)(&codec::seal(id, outcome));
    let (before, after) = match place {
        RecordPlace::Open => (None, None),
        RecordPlace::Committed(commit) => (None, Some(commit)),
        RecordPlace::Alone(rollback) => (rollback, None),
    };
    if let Some(before) = before {
        // By itself: what a driver prepares behind a statement that failed is refused.
        session.ask(before, &[]).await.map_err(TransactionFault::before_commit)?;
    }
    let rows = match &operation.over {
        None => {
            let values = first_record(operation, &id, end, &answer);
            let record = Statement { text: statements.record, values: &values };
            let asked: Vec<_> = [record].into_iter().chain(after.map(Statement::plain)).collect();
            let answers = session.ask_all(&asked).await;
            let answers = answers.map_err(|fault| taken(statements, place, fault))?;
            answers.into_iter().next().unwrap_or_default()
        }
        // The rows decide whether the commit is wanted.
        Some(claim) => {
            let meaning = |fault| place.meaning(fault);
            let values = following_record(claim, &id, end, &answer);
            let rows = session.ask(statements.follow, &values).await.map_err(meaning)?;
            if rows.is_empty() {
                return Err(TransactionError::taken("the record changed since it was read"));
            }
            if let Some(after) = after {
                session.ask(after, &[]).await.map_err(meaning)?;
            }
            rows
        }
    };
    let expires_at = rows.first().ok_or_else(|| TransactionFault::unanswered("without a row"));
    let expires_at = expires_at.and_then(|row| row.number(0));
    expires_at.map(Timestamp::from_micros).map_err(|fault| place.meaning(fault))
}

/// The meaning of a fault where a first record was written.
fn taken(
    statements: &OperationStatements,
    place: RecordPlace,
    fault: TransactionFault,
) -> TransactionError {
    if fault.code().is_some_and(|code| statements.taken.contains(&code))
        && let TransactionFault::Refused { cause, .. } = fault
    {
        return TransactionError::Taken(cause);
    }
    place.meaning(fault)
}

fn first_record<'a>(
    operation: &'a ForOperation,
    id: &'a OperationId,
    end: &End,
    answer: &'a [u8],
) -> Vec<Value<'a>> {
    let ForOperation { entrance, lock, .. } = operation;
    let (named, retention) = (&entrance.operation, entrance.policy.retention());
    vec![
        (*lock).into(),
        id.as_bytes().into(),
        named.tenant().as_str().into(),
        named.scope().as_str().into(),
        named.key().as_str().into(),
        entrance.fingerprint.as_bytes().into(),
        entrance.owner.0.into(),
        (entrance.policy.recovery() as i16).into(),
        micros(retention.window).into(),
        micros(retention.tombstone).into(),
        (end.to.tag() as i16).into(),
        micros(end.keep).into(),
        answer.into(),
    ]
}

fn following_record<'a>(
    claim: &'a Claim,
    id: &'a OperationId,
    end: &End,
    answer: &'a [u8],
) -> Vec<Value<'a>> {
    let (spent, seen) = match &claim.over {
        Over::Spent(seen) => (true, Some(seen)),
        Over::Abandoned(seen) => (false, Some(seen)),
        Over::Nothing => (true, None),
    };
    vec![
        id.as_bytes().into(),
        Value::Number(seen.map(|seen| seen.fence.get())),
        Value::Number(seen.map(|seen| seen.owner.0)),
        Value::Number(seen.map(|seen| (seen.tag as i16).into())),
        Value::Number(seen.map(|seen| seen.until.as_micros())),
        spent.into(),
        claim.fingerprint.as_bytes().into(),
        claim.fence.get().into(),
        claim.owner.0.into(),
        (claim.recovery as i16).into(),
        micros(claim.retention).into(),
        micros(claim.tombstone).into(),
        (end.to.tag() as i16).into(),
        micros(end.keep).into(),
        answer.into(),
    ]
}

/// What is stored once nobody has the operation's lock any more.
pub async fn read_ended(
    session: &mut impl Session,
    statements: &OperationStatements,
    attempt: &Attempt,
    lock: i64,
) -> Result<Option<Record>, TransactionError> {
    if !wait(session, statements, lock, END_WAIT).await? {
        return Err(StoreError::unconfirmed("the transaction has not ended yet").into());
    }
    let values = [lock.into(), attempt.id.as_bytes().into()];
    let rows = session.ask(statements.look, &values).await;
    let rows = rows.map_err(TransactionFault::before_commit)?;
    Ok(KeySeen::of(&rows, statements, attempt.id)?.found.map(|(_, record)| record))
}
