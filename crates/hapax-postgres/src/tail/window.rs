//! The newest events of the log, in memory.

use std::collections::BTreeMap;

use hapax_core::outbox::{Look, Position, SeenRow, Stored, Topics};

use super::snapshot::Snapshot;

/// Everything above a floor that has come through the stream, as much of it as there is room for.
#[derive(Debug)]
pub(super) struct TailWindow {
    rows: BTreeMap<Position, KeptEvent>,
    /// What stands at or below it is for the table to tell.
    floor: Position,
    bytes: usize,
    room: WindowRoom,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowRoom {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

#[derive(Debug)]
struct KeptEvent {
    event: Stored,
    xid: u64,
}

/// What a look was shown.
#[derive(Debug)]
pub(super) struct WindowView {
    pub(super) rows: Vec<SeenRow>,
    pub(super) complete: bool,
    /// Whether something has come that the snapshot does not show yet.
    pub(super) early: bool,
}

/// What an event takes beside its own bytes, about.
const OVERHEAD_BYTES: usize = 256;

impl TailWindow {
    /// An empty one: every later commit above the floor comes to it.
    pub(super) fn new(floor: Position, room: WindowRoom) -> Self {
        Self { rows: BTreeMap::new(), floor, bytes: 0, room }
    }

    /// Keeps an event; the lowest ones go where there is no room.
    pub(super) fn keep(&mut self, event: Stored, xid: u64) {
        if event.position <= self.floor {
            return;
        }
        self.bytes += event.weight() + OVERHEAD_BYTES;
        self.rows.insert(event.position, KeptEvent { event, xid });
        while self.rows.len() > self.room.events || self.bytes > self.room.bytes {
            let Some((lowest, kept)) = self.rows.pop_first() else { return };
            self.bytes -= kept.event.weight() + OVERHEAD_BYTES;
            self.floor = lowest;
        }
    }

    /// Leaves everything up to here to the table.
    pub(super) fn leave(&mut self, position: Position) {
        while let Some(lowest) = self.rows.first_entry()
            && *lowest.key() <= position
        {
            self.bytes -= lowest.remove().event.weight() + OVERHEAD_BYTES;
        }
        self.floor = self.floor.max(position);
    }

    /// Whether a look begins where this does, or above.
    pub(super) fn reaches(&self, look: &Look) -> bool {
        look.after >= self.floor
    }

    /// The gaps of a look that begin too low for this.
    pub(super) fn below(&self, look: &Look) -> Vec<(Position, Position)> {
        look.gaps.iter().copied().filter(|(first, _)| *first <= self.floor).collect()
    }

    /// What the look asks for, gaps that begin too low aside, as far as the snapshot shows it.
    pub(super) fn show(&self, look: &Look, topics: &Topics, snapshot: &Snapshot) -> WindowView {
        let mut shown = WindowView { rows: Vec::new(), complete: true, early: false };
        let gaps = look.gaps.iter().filter(|(first, _)| *first > self.floor);
        let gaps = gaps.flat_map(|(first, last)| self.rows.range(first..=last));
        let above = (look.after < look.until)
            .then(|| self.rows.range(look.after.saturating_add(1)..=look.until));
        let mut bytes = 0;
        for (position, kept) in gaps.chain(above.into_iter().flatten()) {
            if !snapshot.shows(kept.xid) {
                shown.early = true;
                continue;
            }
            if shown.rows.len() >= look.limits.rows || bytes >= look.limits.bytes.max(1) {
                shown.complete = false;
                break;
            }
            let stored = &kept.event;
            let wanted = look.wants(stored.lane, *position) && topics.wants(&stored.topic);
            let event = wanted.then(|| stored.clone());
            bytes += event.as_ref().map_or(0, Stored::weight);
            shown.rows.push(SeenRow { position: *position, event, held: false });
        }
        shown
    }
}
