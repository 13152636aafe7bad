//! What one batch does inside the writer's transaction.
//!
//! The write lock is held, so what is read stays true until it is written: the rules themselves
//! are `hapax_core::apply`. Only the two writes of an undisturbed operation, its first claim and
//! its end, are said in SQL as well, and whatever those two do not cover goes by the rules. A row
//! that cannot be read fails its own item and is never written over.

use hapax_core::{
    Attempt, Fence, StoreError, Timestamp, apply,
    codec::{self, Row},
    store::{By, Claim, Over, Settle, Settlement, Write, Written},
};
use rusqlite::Connection;

use crate::{
    row::{self, NumberedRow, ReadyStatements},
    steps,
};

/// Performs the batch. An error is the database's, and ends the whole transaction.
pub(crate) fn perform(
    connection: &Connection,
    now: Timestamp,
    batch: &[Write],
) -> rusqlite::Result<Vec<Result<Written, StoreError>>> {
    let mut ready = ReadyStatements::on(connection)?;
    batch.iter().map(|write| perform_one(connection, &mut ready, now, write)).collect()
}

/// Removes the first claim of a key that nobody uses.
pub(crate) fn withdraw(connection: &Connection, attempt: &Attempt) -> rusqlite::Result<bool> {
    let mut delete = connection.prepare_cached(row::WITHDRAW)?;
    let (id, fence, owner) = (attempt.id.as_bytes(), Fence::FIRST.get(), attempt.owner.0);
    Ok(attempt.fence == Fence::FIRST && delete.execute((id, fence, owner))? > 0)
}

fn perform_one(
    connection: &Connection,
    ready: &mut ReadyStatements<'_>,
    now: Timestamp,
    write: &Write,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let is_done = match write {
        Write::Claim(claim) => insert_first(ready, now, claim)?,
        Write::Settle(settle) => finish_running(ready, now, settle)?,
        Write::Renew(_) => false,
        Write::Step(keep) => steps::keep(connection, now, keep)?,
    };
    if is_done { Ok(Ok(Written::Done { now })) } else { by_the_rules(connection, now, write) }
}

/// Most claims are the first of their key: those are tried without looking.
fn insert_first(
    ready: &mut ReadyStatements<'_>,
    now: Timestamp,
    claim: &Claim,
) -> rusqlite::Result<bool> {
    let Some(record) = apply::claim(now, None, claim) else { return Ok(false) };
    ready.insert(&Row::seal(&record))
}

/// Most settles end what still runs under their fence and owner: those are tried without looking.
fn finish_running(
    ready: &mut ReadyStatements<'_>,
    now: Timestamp,
    settle: &Settle,
) -> rusqlite::Result<bool> {
    let id = settle.id;
    let is_usual = settle.to.tag().is_terminal() && settle.to != Settlement::Declined;
    let (By::Owner { fence, owner }, true) = (settle.by, is_usual) else { return Ok(false) };
    let outcome = settle.to.outcome().map(|outcome| codec::seal(id, outcome));
    let end = (settle.to.tag(), settle.keep, outcome.as_ref());
    ready.finish(now, &Attempt { id, fence, owner }, end)
}

/// Changes the row as the rules say. It never makes a new one: a write that finds nothing has
/// nothing to say, except a first claim, which was inserted before.
fn by_the_rules(
    connection: &Connection,
    now: Timestamp,
    write: &Write,
) -> rusqlite::Result<Result<Written, StoreError>> {
    let Some(found) = row::find(connection, write.id())? else {
        return Ok(Ok(Written::Refused { now, record: None }));
    };
    let opened = found.and_then(|NumberedRow { number, row }| Ok((number, row.open(now)?)));
    let (number, record) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Err(error)),
    };
    let changed = match write {
        Write::Claim(_) | Write::Settle(_) | Write::Renew(_) => {
            apply::write(now, Some(&record), write)
        }
        // It is kept beside the row, or not at all.
        Write::Step(_) => None,
    };
    let Some(changed) = changed else {
        return Ok(Ok(Written::Refused { now, record: Some(Box::new(record)) }));
    };
    row::update(connection, number, &Row::seal(&changed))?;
    if let Write::Claim(Claim { over: Over::Spent(_), .. }) = write {
        steps::forget(connection, write.id())?;
    }
    Ok(Ok(Written::Done { now }))
}
