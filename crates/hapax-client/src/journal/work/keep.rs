//! What an owner writes: that it lives, that it leaves, how it ended.

use super::take::write;
use crate::journal::{
    entry::{JournalEntry, OperationHold},
    place, row,
    rule::{self, EntryChange, OwnerWriteResult, PursuitEnd, PursuitProgress, Sent},
    transaction::{JournalTransaction, JournalWork, Worked},
};

#[derive(Debug)]
pub(in crate::journal) struct RenewHold {
    pub(in crate::journal) hold: OperationHold,
    pub(in crate::journal) progress: PursuitProgress,
}

impl JournalWork for RenewHold {
    type Answer = OwnerWriteResult;

    const PLACE: Option<&'static str> = Some(place::RENEW);

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<OwnerWriteResult> {
        change(page, &self.hold, |found| {
            rule::renew(page.now, page.options.lease, (&self.hold, self.progress), found)
        })
    }
}

#[derive(Debug)]
pub(in crate::journal) struct ReleaseHold {
    pub(in crate::journal) hold: OperationHold,
    pub(in crate::journal) progress: PursuitProgress,
    pub(in crate::journal) sent: Sent,
}

impl JournalWork for ReleaseHold {
    type Answer = OwnerWriteResult;

    const PLACE: Option<&'static str> = Some(place::RELEASE);

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<OwnerWriteResult> {
        change(page, &self.hold, |found| {
            rule::release(page.now, (&self.hold, self.progress, self.sent), found)
        })
    }
}

#[derive(Debug)]
pub(in crate::journal) struct SettleEntry {
    pub(in crate::journal) hold: OperationHold,
    pub(in crate::journal) attempts: u32,
    pub(in crate::journal) end: PursuitEnd,
}

impl JournalWork for SettleEntry {
    type Answer = OwnerWriteResult;

    const PLACE: Option<&'static str> = Some(place::SETTLE);

    fn bytes(&self) -> usize {
        match &self.end {
            PursuitEnd::Done(answer) | PursuitEnd::Refused(answer) => answer.weight(),
            PursuitEnd::Unknown { .. } | PursuitEnd::GaveUp { .. } => 0,
        }
    }

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<OwnerWriteResult> {
        change(page, &self.hold, |found| {
            rule::settle(page.now, (&self.hold, self.attempts, &self.end), found)
        })
    }
}

/// Changes the entry of this hold as `rule` says. A row that cannot be read is never written over.
fn change(
    page: &JournalTransaction<'_>,
    hold: &OperationHold,
    rule: impl FnOnce(JournalEntry) -> EntryChange<OwnerWriteResult>,
) -> Worked<OwnerWriteResult> {
    match row::find(page, &hold.name)? {
        Ok(Some(found)) => write(page, rule(found)).map(Ok),
        Ok(None) => Ok(Ok(OwnerWriteResult::Lost { found: None })),
        Err(unreadable) => Ok(Err(unreadable)),
    }
}
