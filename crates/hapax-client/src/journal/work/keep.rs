//! What an owner writes: that it lives, that it leaves, how it ended.

use super::take::write;
use crate::journal::{
    book::{Page, Work, Worked},
    entry::{Entry, Hold},
    place, row,
    rule::{self, Change, End, Kept, Progress, Sent},
};

#[derive(Debug)]
pub(in crate::journal) struct Renew {
    pub(in crate::journal) hold: Hold,
    pub(in crate::journal) progress: Progress,
}

impl Work for Renew {
    type Answer = Kept;

    const PLACE: Option<&'static str> = Some(place::RENEW);

    fn work(&self, page: &Page<'_>) -> Worked<Kept> {
        change(page, &self.hold, |found| {
            rule::renew(page.now, page.options.lease, (&self.hold, self.progress), found)
        })
    }
}

#[derive(Debug)]
pub(in crate::journal) struct Release {
    pub(in crate::journal) hold: Hold,
    pub(in crate::journal) progress: Progress,
    pub(in crate::journal) sent: Sent,
}

impl Work for Release {
    type Answer = Kept;

    const PLACE: Option<&'static str> = Some(place::RELEASE);

    fn work(&self, page: &Page<'_>) -> Worked<Kept> {
        change(page, &self.hold, |found| {
            rule::release(page.now, (&self.hold, self.progress, self.sent), found)
        })
    }
}

#[derive(Debug)]
pub(in crate::journal) struct Settle {
    pub(in crate::journal) hold: Hold,
    pub(in crate::journal) attempts: u32,
    pub(in crate::journal) end: End,
}

impl Work for Settle {
    type Answer = Kept;

    const PLACE: Option<&'static str> = Some(place::SETTLE);

    fn bytes(&self) -> usize {
        match &self.end {
            End::Done(answer) | End::Refused(answer) => answer.weight(),
            End::Unknown { .. } | End::GaveUp { .. } => 0,
        }
    }

    fn work(&self, page: &Page<'_>) -> Worked<Kept> {
        change(page, &self.hold, |found| {
            rule::settle(page.now, (&self.hold, self.attempts, &self.end), found)
        })
    }
}

/// Changes the entry of this hold as `rule` says. A row that cannot be read is never written over.
fn change(page: &Page<'_>, hold: &Hold, rule: impl FnOnce(Entry) -> Change<Kept>) -> Worked<Kept> {
    match row::find(page.connection, &hold.name)? {
        Ok(Some(found)) => write(page, rule(found)).map(Ok),
        Ok(None) => Ok(Ok(Kept::Lost { found: None })),
        Err(unreadable) => Ok(Err(unreadable)),
    }
}
