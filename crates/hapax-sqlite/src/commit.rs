//! What one batch does inside the writer's transaction.
//!
//! The write lock is held, so what is read stays true until it is written: the rules themselves
//! are `hapax_core::apply`. Only the two writes of an undisturbed operation, its first claim and
//! its end, are said in SQL as well, and whatever those two do not cover goes by the rules. A row
//! that cannot be read fails its own item and is never written over.

use hapax_core::{
    Attempt, Fence, OperationId, Record, StoreError, Timestamp, apply,
    codec::{self, Row},
    store::{
        Batch, By, Claim, Claimed, Committed, KeepStep, Kept, Over, Renewed, Settle, Settled,
        Settlement,
    },
};
use rusqlite::Connection;

use crate::{
    row::{self, Ready, Stored},
    steps,
};

/// Performs the batch. An error is the database's, and ends the whole transaction.
pub(crate) fn perform(
    connection: &Connection,
    now: Timestamp,
    batch: &Batch,
) -> rusqlite::Result<Committed> {
    let mut committed = Committed::default();
    let mut ready = Ready::on(connection)?;
    for settle in &batch.settles {
        let written = perform_settle(connection, &mut ready, now, settle)?;
        committed.settles.push(written.map(|written| match written {
            Written::Yes => Settled::Done { now },
            Written::No(_) => Settled::Lost,
        }));
    }
    for renew in &batch.renews {
        let change = |found: Option<&Record>| apply::renew(now, found, renew);
        let written = write(connection, now, renew.id, change)?;
        committed.renews.push(written.map(|written| match written {
            Written::Yes => Renewed::Done { now },
            Written::No(_) => Renewed::Lost,
        }));
    }
    for keep in &batch.steps {
        committed.steps.push(perform_keep(connection, now, keep)?);
    }
    for claim in &batch.claims {
        let written = perform_claim(connection, &mut ready, now, claim)?;
        committed.claims.push(written.map(|written| match written {
            Written::Yes => Claimed::Won { now },
            Written::No(record) => Claimed::Found { now, record },
        }));
    }
    Ok(committed)
}

/// Removes the first claim of a key that nobody uses.
pub(crate) fn withdraw(connection: &Connection, attempt: &Attempt) -> rusqlite::Result<bool> {
    let mut delete = connection.prepare_cached(row::WITHDRAW)?;
    let (id, fence, owner) = (attempt.id.as_bytes(), Fence::FIRST.get(), attempt.owner.0);
    Ok(attempt.fence == Fence::FIRST && delete.execute((id, fence, owner))? > 0)
}

enum Written {
    Yes,
    No(Option<Box<Record>>),
}

/// Most claims are the first of their key: those are tried without looking.
fn perform_claim(
    connection: &Connection,
    ready: &mut Ready<'_>,
    now: Timestamp,
    claim: &Claim,
) -> rusqlite::Result<Result<Written, StoreError>> {
    if let (Over::Nothing, Some(record)) = (claim.over, apply::claim(now, None, claim))
        && ready.insert(&Row::seal(&record))?
    {
        return Ok(Ok(Written::Yes));
    }
    let (id, change) =
        (claim.operation.id(), |found: Option<&Record>| apply::claim(now, found, claim));
    let written = write(connection, now, id, change)?;
    if let (Ok(Written::Yes), Over::Spent(_)) = (&written, claim.over) {
        steps::forget(connection, id)?;
    }
    Ok(written)
}

/// A step that is not kept tells why: its record is somebody else's, or cannot be read.
fn perform_keep(
    connection: &Connection,
    now: Timestamp,
    keep: &KeepStep,
) -> rusqlite::Result<Result<Kept, StoreError>> {
    if steps::keep(connection, now, keep)? {
        return Ok(Ok(Kept::Done { now }));
    }
    Ok(write(connection, now, keep.id, |_| None)?.map(|_| Kept::Lost))
}

/// Most settles end what still runs under their fence and owner: those are tried without looking.
fn perform_settle(
    connection: &Connection,
    ready: &mut Ready<'_>,
    now: Timestamp,
    settle: &Settle,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let id = settle.id;
    let is_usual = settle.to.tag().is_terminal() && settle.to != Settlement::Declined;
    if let (By::Owner { fence, owner }, true) = (settle.by, is_usual) {
        let outcome = settle.to.outcome().map(|outcome| codec::seal(id, outcome));
        let end = (settle.to.tag(), settle.keep, outcome.as_ref());
        if ready.finish(now, &Attempt { id, fence, owner }, end)? {
            return Ok(Ok(Written::Yes));
        }
    }
    let change = |found: Option<&Record>| apply::settle(now, found, settle);
    write(connection, now, id, change)
}

/// Changes the row under this id as `change` says. It never makes a new one: a write that finds
/// nothing has nothing to say, except a first claim, which was inserted before.
fn write(
    connection: &Connection,
    now: Timestamp,
    id: OperationId,
    change: impl FnOnce(Option<&Record>) -> Option<Record>,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let Some(found) = row::find(connection, id)? else { return Ok(Ok(Written::No(None))) };
    let opened = found.and_then(|Stored { number, row }| Ok((number, row.open(now)?)));
    let (number, record) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    Ok(Ok(match change(Some(&record)) {
        Some(changed) => {
            row::update(connection, number, &Row::seal(&changed))?;
            Written::Yes
        }
        None => Written::No(Some(Box::new(record))),
    }))
}
