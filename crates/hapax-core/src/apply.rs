//! What each write of the contract does to a record, as pure functions.
//!
//! The memory store, the simulator and the model run these; SQL stores say the same in their
//! statements, and the conformance suite compares the two.

use std::time::Duration;

use crate::{
    limits::LEASE_MAX,
    outcome::Outcome,
    record::{Fence, Record, State, StateTag},
    settle::Attempt,
    store::{By, Claim, Entry, KeepStep, Over, Renew, Settle, Settlement, Summary, Write},
    time::Timestamp,
};

/// The record after a write, or `None` if it is refused. A step leaves the record as it is.
pub fn write(now: Timestamp, found: Option<&Record>, write: &Write) -> Option<Record> {
    match write {
        Write::Claim(write) => claim(now, found, write),
        Write::Settle(write) => settle(now, found, write),
        Write::Renew(write) => renew(now, found, write),
        Write::Step(keep) => found.filter(|_| keeps_step(found, keep)).cloned(),
    }
}

/// The record after a claim, or `None` if the claim does not find what it expects.
pub fn claim(now: Timestamp, found: Option<&Record>, claim: &Claim) -> Option<Record> {
    let previous = match (claim.over, found) {
        (Over::Nothing, None) => None,
        (Over::Spent(stamp), Some(record)) if record.stamp() == stamp => None,
        (Over::Abandoned(stamp), Some(record)) if record.stamp() == stamp => Some(record),
        (Over::Nothing | Over::Spent(_) | Over::Abandoned(_), _) => return None,
    };
    let state = match &claim.entry {
        Entry::Run { lease, request } => State::Running {
            lease_until: now.plus(*lease),
            request: request.clone().or_else(|| previous.and_then(Record::request).cloned()),
        },
        Entry::Queue { pick_up, request } => {
            State::Pending { pick_up_by: now.plus(*pick_up), request: request.clone() }
        }
    };
    let (fence, owner) = (claim.fence, claim.owner);
    Some(match previous {
        Some(record) => Record { fence, owner, changed_at: now, state, ..record.clone() },
        None => Record {
            operation: claim.operation.clone(),
            fingerprint: claim.fingerprint,
            fence,
            owner,
            recovery: claim.recovery,
            created_at: now,
            changed_at: now,
            expires_at: now.plus(claim.retention),
            tombstone: claim.tombstone,
            state,
        },
    })
}

/// The record after a settle, or `None` if the settler has no say over it.
pub fn settle(now: Timestamp, found: Option<&Record>, settle: &Settle) -> Option<Record> {
    let record = found.filter(|record| !record.tag().is_terminal())?;
    let has_say = match settle.by {
        By::Owner { fence, owner } => record.fence == fence && record.owner == owner,
        By::Onlooker(stamp) => record.stamp() == stamp,
    };
    let state = match &settle.to {
        Settlement::Completed(outcome) => State::Completed { outcome: outcome.clone() },
        Settlement::Failed(outcome) => State::Failed { outcome: outcome.clone() },
        Settlement::Released | Settlement::Declined => State::Released,
        Settlement::InDoubt(doubt) => {
            State::InDoubt { doubt: *doubt, request: record.request().cloned() }
        }
    };
    let (expires_at, tombstone) = match &settle.to {
        Settlement::Declined => (now.plus(settle.keep), Duration::ZERO),
        Settlement::Completed(_)
        | Settlement::Failed(_)
        | Settlement::Released
        | Settlement::InDoubt(_) => {
            (record.expires_at.max(now.plus(settle.keep)), record.tombstone)
        }
    };
    has_say.then(|| Record { changed_at: now, expires_at, tombstone, state, ..record.clone() })
}

/// The record after a renewal, or `None` if the attempt no longer owns it.
pub fn renew(now: Timestamp, found: Option<&Record>, renew: &Renew) -> Option<Record> {
    let record =
        found.filter(|record| record.fence == renew.fence && record.owner == renew.owner)?;
    let State::Running { request, .. } = &record.state else { return None };
    let state = State::Running { lease_until: now.plus(renew.lease), request: request.clone() };
    Some(Record { state, ..record.clone() })
}

/// Whether a step may be kept: the attempt still runs the operation, in the same life.
pub fn keeps_step(found: Option<&Record>, keep: &KeepStep) -> bool {
    found.is_some_and(|record| {
        record.tag() == StateTag::Running
            && record.fence == keep.fence
            && record.owner == keep.owner
            && record.created_at == keep.life
    })
}

/// Whether a record can be removed as if its first claim had never been made.
pub fn withdraws(found: Option<&Record>, attempt: &Attempt) -> bool {
    found.is_some_and(|record| {
        record.tag() == StateTag::Running
            && record.fence == Fence::FIRST
            && record.fence == attempt.fence
            && record.owner == attempt.owner
    })
}

/// Whether a sweeper should look at the record: its time is over, or further ahead than any lease
/// lasts, as after a clock was set back.
pub fn is_overdue(now: Timestamp, record: &Record) -> bool {
    let until = record.until();
    match record.tag() {
        StateTag::Pending | StateTag::Running => until <= now || now.plus(LEASE_MAX) < until,
        StateTag::Completed
        | StateTag::Failed
        | StateTag::InDoubt
        | StateTag::Released
        | StateTag::Buried => false,
    }
}

/// What a purge does with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// It is still needed.
    Keep,
    /// Nothing of it is needed any more.
    Delete,
    /// Only the fact that it existed is needed: this.
    Bury(Record),
    /// Nobody came for it in time: it failed, and that is kept for another window.
    TimeOut(Record),
}

/// Decides what a purge does with a record.
pub fn purge(now: Timestamp, record: &Record) -> Purge {
    if now < record.expires_at {
        return Purge::Keep;
    }
    match record.tag() {
        StateTag::Running | StateTag::InDoubt => Purge::Keep,
        StateTag::Pending => {
            let window = record.expires_at.after(record.created_at);
            let state = State::Failed { outcome: Outcome::never_run() };
            let expires_at = now.plus(window);
            Purge::TimeOut(Record { changed_at: now, expires_at, state, ..record.clone() })
        }
        _ if record.forget_at() <= now => Purge::Delete,
        StateTag::Buried => Purge::Keep,
        StateTag::Completed | StateTag::Failed | StateTag::Released => {
            Purge::Bury(Record { changed_at: now, state: State::Buried, ..record.clone() })
        }
    }
}

/// The record without its outcome.
pub fn summary(record: &Record) -> Summary {
    Summary {
        operation: record.operation.clone(),
        stamp: record.stamp(),
        recovery: record.recovery,
        created_at: record.created_at,
        changed_at: record.changed_at,
        expires_at: record.expires_at,
    }
}
