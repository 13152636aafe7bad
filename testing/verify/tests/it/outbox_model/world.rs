//! What the store of the small outbox does, and how it could do it wrong.

use std::collections::BTreeMap;

use bytes::Bytes;
use hapax_core::{
    Timestamp,
    outbox::{EventId, Look, Position, ReadLimits, Seen, SeenRow, Stored, Writer},
};

use super::moment::{KEYS, Moment, Phase, WRITERS, lane};

#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) flaw: Flaw,
}

/// A way in which an outbox could break its promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    None,
    /// Who writes is listed before the read that misses a position, not after it.
    ListedBeforeTheRead,
    /// A prepared transaction counts as somebody new.
    PreparedIgnored,
    /// A writer announces itself only once it has its position and ends.
    AnnouncedLate,
    /// A look that decides is shown what was visible before it.
    OldReadDecides,
    /// A writer takes its position while another of its key is at work.
    NoKeyLock,
}

impl World {
    pub(super) fn lock(self, moment: &mut Moment, writer: usize) -> bool {
        let taken = (0..WRITERS).any(|other| {
            other != writer
                && KEYS[other] == KEYS[writer]
                && matches!(
                    moment.writers[other].phase,
                    Phase::Locked | Phase::Announced | Phase::Ended
                )
        });
        if taken && self.flaw != Flaw::NoKeyLock {
            return false;
        }
        let phase = &mut moment.writers[writer].phase;
        *phase = if *phase == Phase::Waiting { Phase::Announced } else { Phase::Locked };
        true
    }

    pub(super) fn look(self, moment: &mut Moment) -> bool {
        let look = moment.reader.look(LIMITS);
        let visible = moment.visible.clone();
        show(moment, &look, &visible)
    }

    /// Whether old reads are worth their states: only where they could be to blame.
    pub(super) fn looks_back(self) -> bool {
        matches!(self.flaw, Flaw::None | Flaw::OldReadDecides)
    }

    pub(super) fn look_back(self, moment: &mut Moment) -> bool {
        let look = moment.reader.look(LIMITS);
        if look.decides && self.flaw != Flaw::OldReadDecides {
            return false;
        }
        let earlier = moment.earlier.clone();
        show(moment, &look, &earlier)
    }

    pub(super) fn list(self, moment: &mut Moment) -> bool {
        let writers = match (self.flaw, moment.listed_early.take()) {
            (Flaw::ListedBeforeTheRead, Some(early)) => early,
            (Flaw::ListedBeforeTheRead, None) => return false,
            (_, _) => self.writers(moment),
        };
        if !moment.reader.inquire_at_once() {
            return false;
        }
        moment.reader.listed(&writers);
        true
    }

    pub(super) fn list_early(self, moment: &mut Moment) -> bool {
        moment.listed_early = Some(self.writers(moment));
        true
    }

    fn writers(self, moment: &Moment) -> Vec<Writer> {
        let announced = |phase| match phase {
            Phase::Waiting | Phase::Announced => self.flaw != Flaw::AnnouncedLate,
            Phase::Ended => true,
            Phase::Idle | Phase::Locked | Phase::Gone => false,
        };
        let holding = moment.writers.iter().enumerate();
        let holding = holding.filter(|(_, state)| announced(state.phase));
        let writers = holding.map(|(at, state)| Writer {
            segment: 0,
            name: format!("{}{at}", if state.prepared { "prepared " } else { "" }),
            prepared: state.prepared && self.flaw != Flaw::PreparedIgnored,
        });
        writers.collect()
    }

    /// Once the writers are gone, a few more looks send everything that is visible, and all of it
    /// becomes final.
    pub(super) fn comes_to_an_end(&self, moment: &Moment) -> bool {
        let mut quiet = moment.clone();
        for writer in 0..WRITERS {
            quiet.release(writer);
        }
        quiet.join();
        for _ in 0..2 * (moment.last + 2) {
            self.look(&mut quiet);
            quiet.listed_early = Some(Vec::new());
            self.list(&mut quiet);
            quiet.acknowledge();
        }
        let highest = quiet.visible.last_key_value().map_or(0, |(at, _)| *at);
        quiet.visible.keys().all(|at| quiet.sent.contains(at))
            && quiet.lows.iter().all(|low| *low == highest)
    }
}

const LIMITS: ReadLimits = ReadLimits { rows: 2, bytes: usize::MAX };

/// Shows the reader what it asks for of these, and sends what comes of it.
fn show(moment: &mut Moment, look: &Look, visible: &BTreeMap<Position, i16>) -> bool {
    let mut visible = visible.iter().filter(|(at, _)| look.covers(**at));
    let rows: Vec<_> = visible
        .by_ref()
        .take(look.limits.rows)
        .map(|(at, key)| SeenRow {
            position: *at,
            event: look.wants(lane(*key), *at).then(|| event(*at, *key)),
            held: false,
        })
        .collect();
    let complete = visible.next().is_none();
    let seen = Seen { now: Timestamp::ZERO, session: 0, rows, complete, replay: Vec::new() };
    let passed = look.after;
    for delivery in moment.reader.take(seen).events {
        let (at, key) = (delivery.event.position, delivery.event.lane.number());
        let later = moment.sent.iter().any(|sent| *sent > at && moment.visible[sent] == key);
        if moment.sent.insert(at) {
            moment.swapped |= later;
            moment.filled_late |= at <= passed;
        } else {
            moment.sent_again = true;
        }
        moment.in_hand.insert(at);
    }
    true
}

fn event(position: Position, key: i16) -> Stored {
    Stored {
        position,
        lane: lane(key),
        id: EventId::from_bytes(i128::from(position).to_be_bytes()),
        at: Timestamp::ZERO,
        topic: "t".to_owned(),
        key: key.to_string(),
        content_type: "application/json".to_owned(),
        headers: Vec::new(),
        payload: Bytes::new(),
    }
}
