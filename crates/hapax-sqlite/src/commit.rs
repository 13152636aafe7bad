//! What one batch does inside the writer's transaction.
//!
//! The write lock is held, so what is read stays true until it is written: the rules themselves
//! are `hapax_core::apply`, and nothing of them is said again in SQL. A row that cannot be read
//! fails its own item and is never written over.

use hapax_core::{
    OperationId, Record, StoreError, Timestamp, apply,
    codec::Row,
    store::{Batch, Claim, Claimed, Committed, Over, Renewed, Settled},
};
use rusqlite::Connection;

use crate::row::{self, Stored};

/// Performs the batch. An error is the database's, and ends the whole transaction.
pub(crate) fn perform(
    connection: &Connection,
    now: Timestamp,
    batch: &Batch,
) -> rusqlite::Result<Committed> {
    let mut committed = Committed::default();
    for settle in &batch.settles {
        let change = |found: Option<&Record>| apply::settle(now, found, settle);
        let written = write(connection, now, settle.id, change)?;
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
    for claim in &batch.claims {
        let written = perform_claim(connection, now, claim)?;
        committed.claims.push(written.map(|written| match written {
            Written::Yes => Claimed::Won { now },
            Written::No(record) => Claimed::Found { now, record },
        }));
    }
    Ok(committed)
}

enum Written {
    Yes,
    No(Option<Box<Record>>),
}

/// Most claims are the first of their key: those are tried without looking.
fn perform_claim(
    connection: &Connection,
    now: Timestamp,
    claim: &Claim,
) -> rusqlite::Result<Result<Written, StoreError>> {
    if let (Over::Nothing, Some(record)) = (claim.over, apply::claim(now, None, claim))
        && row::insert(connection, &Row::seal(&record))?
    {
        return Ok(Ok(Written::Yes));
    }
    let change = |found: Option<&Record>| apply::claim(now, found, claim);
    write(connection, now, claim.operation.id(), change)
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
