//! Positions that were missing, and when one of them is known never to come.
//!
//! A position is given to a writer before it commits, so a reader meets gaps: some fill, when their
//! writer commits, and some never do, when it rolled back. Every writer announces itself before it
//! takes a position and stays announced until what it wrote is visible or gone. A gap is *dead*
//! after these steps, in this order:
//!
//! 1. a read does not show it;
//! 2. the announced writers are listed, *after* that read: whoever has the position is among them,
//!    or has ended already;
//! 3. a later listing shows none of them any more;
//! 4. a read that *began after* that does not show it either.
//!
//! Listing before the first read would be wrong: a writer may come between the two. So would the
//! last read before the listing: its writer may commit between the two. A prepared transaction
//! has another name than the session that prepared it, so while any is listed nothing is dead.
//!
//! Only the last read must be up to date. One before it may show an older state of the log: what it
//! misses although it was committed is then waited for in vain, until the last read shows it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{log::segment, stored_event::Position};
use crate::limits::OUTBOX_SEGMENT_POSITIONS;

/// Somebody who may have a position and has not committed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// The segment it announced itself for.
    pub segment: i64,
    /// Its name, not used again by anybody else.
    pub name: String,
    /// Whether it is a prepared transaction, which has a name of its own.
    pub prepared: bool,
}

/// The gaps of one reader, as ranges that do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Gaps {
    /// By first position.
    ranges: BTreeMap<Position, OpenGap>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct OpenGap {
    last: Position,
    wait: Wait,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wait {
    /// Missing in a read; nobody was listed since.
    Unlisted,
    /// One of these may have it.
    For(Arc<BTreeSet<String>>),
    /// Whoever had it has ended; the next read decides.
    NextRead,
}

impl Gaps {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The lowest position that may still come.
    pub fn first(&self) -> Option<Position> {
        self.ranges.first_key_value().map(|(first, _)| *first)
    }

    /// Whether this position may still come.
    pub fn contains(&self, position: Position) -> bool {
        let at_or_below = self.ranges.range(..=position).next_back();
        at_or_below.is_some_and(|(_, gap)| position <= gap.last)
    }

    /// First and last position of each range, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Position, Position)> {
        self.ranges.iter().map(|(first, gap)| (*first, gap.last))
    }

    /// The same, as far as they lie within these bounds.
    pub(super) fn within(&self, lowest: Position, highest: Position) -> Vec<(Position, Position)> {
        let clipped = self.ranges().map(|(first, last)| (first.max(lowest), last.min(highest)));
        clipped.filter(|(first, last)| first <= last).collect()
    }

    /// Whether a listing of writers would bring anything forward.
    pub fn awaits_listing(&self) -> bool {
        self.ranges.values().any(|gap| match gap.wait {
            Wait::Unlisted | Wait::For(_) => true,
            Wait::NextRead => false,
        })
    }

    /// Whether the next read decides about some of them.
    pub(super) fn awaits_read(&self) -> bool {
        self.ranges.values().any(|gap| match gap.wait {
            Wait::NextRead => true,
            Wait::Unlisted | Wait::For(_) => false,
        })
    }

    /// A read did not show these, and they were not known to be missing.
    pub(super) fn open(&mut self, first: Position, last: Position) {
        let mut first = first;
        // What is known already keeps what it waits for.
        while first <= last {
            let next = self.ranges.range(first..=last).next().map(|(at, gap)| (*at, gap.last));
            let before = self.ranges.range(..first).next_back().map(|(_, gap)| gap.last);
            if let Some(known) = before.filter(|known| *known >= first) {
                first = known + 1;
                continue;
            }
            let end = next.map_or(last, |(at, _)| at - 1);
            self.insert(first, end);
            first = next.map_or(last, |(_, known)| known) + 1;
        }
    }

    /// Keeps the first and the last segment of a range apart, so that who writes in one does not
    /// keep what is missing in the other. However long a range is, it becomes three at most.
    fn insert(&mut self, first: Position, last: Position) {
        let start = |segment: i64| segment.saturating_mul(OUTBOX_SEGMENT_POSITIONS);
        let cuts = [first, start(segment(first) + 1), start(segment(last)), last + 1];
        for cut in cuts.windows(2) {
            let (first, last) = (cut[0].max(first), (cut[1] - 1).min(last));
            if first <= last {
                self.ranges.insert(first, OpenGap { last, wait: Wait::Unlisted });
            }
        }
    }

    /// A read showed this one; whether it was missing before.
    pub(super) fn fill(&mut self, position: Position) -> bool {
        let Some((&first, gap)) = self.ranges.range(..=position).next_back() else { return false };
        if gap.last < position {
            return false;
        }
        let Some(gap) = self.ranges.remove(&first) else { return false };
        if first < position {
            let below = OpenGap { last: position - 1, wait: gap.wait.clone() };
            self.ranges.insert(first, below);
        }
        if position < gap.last {
            self.ranges.insert(position + 1, gap);
        }
        true
    }

    /// A read that showed everything visible up to `through` has been taken, and these are still
    /// missing: what waited for nothing but this read is dead.
    pub(super) fn read_through(&mut self, through: Position) {
        self.ranges.retain(|_, gap| match gap.wait {
            Wait::NextRead => gap.last > through,
            Wait::Unlisted | Wait::For(_) => true,
        });
    }

    /// These are all writers, listed after the last read was taken.
    pub(super) fn listed(&mut self, writers: &[Writer]) {
        let mut listed: BTreeMap<(i64, i64), Arc<BTreeSet<String>>> = BTreeMap::new();
        for (first, gap) in &mut self.ranges {
            let segments = (segment(*first), segment(gap.last));
            let here = || {
                let within = move |writer: &&Writer| {
                    segments.0 <= writer.segment && writer.segment <= segments.1
                };
                writers.iter().filter(within)
            };
            gap.wait = match &gap.wait {
                Wait::Unlisted if here().next().is_none() => Wait::NextRead,
                Wait::Unlisted => {
                    let names = || Arc::new(here().map(|writer| writer.name.clone()).collect());
                    Wait::For(Arc::clone(listed.entry(segments).or_insert_with(names)))
                }
                Wait::For(names)
                    if here().any(|writer| writer.prepared || names.contains(&writer.name)) =>
                {
                    Wait::For(Arc::clone(names))
                }
                Wait::For(_) | Wait::NextRead => Wait::NextRead,
            };
        }
    }
}
