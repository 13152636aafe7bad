//! Where the small outbox stands at one moment.

use std::collections::{BTreeMap, BTreeSet};

use hapax_core::{
    Fence,
    outbox::{Lane, LaneHeld, Position, Reader, Writer},
};

pub(super) const WRITERS: usize = 3;
/// The lane of each writer's key: the first two share one.
pub(super) const KEYS: [i16; WRITERS] = [0, 0, 1];
/// How many events each writer emits at most.
const EMITS: [usize; WRITERS] = [2, 1, 1];
/// Who may be prepared before it commits.
const PREPARES: usize = 0;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Moment {
    pub(super) last: Position,
    pub(super) writers: [WriterState; WRITERS],
    /// What is visible: position and lane.
    pub(super) visible: BTreeMap<Position, i16>,
    /// What was visible at an earlier moment.
    pub(super) earlier: BTreeMap<Position, i16>,
    pub(super) reader: Reader,
    /// What the store has of each lane's progress.
    pub(super) lows: [Position; 2],
    /// Sent, and not acknowledged.
    pub(super) in_hand: BTreeSet<Position>,
    /// Everything that was ever sent.
    pub(super) sent: BTreeSet<Position>,
    pub(super) listed_early: Option<Vec<Writer>>,
    pub(super) restarts: u8,
    pub(super) swapped: bool,
    pub(super) filled_late: bool,
    pub(super) sent_again: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct WriterState {
    pub(super) phase: Phase,
    pub(super) prepared: bool,
    pub(super) positions: Vec<Position>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// It has its key.
    Locked,
    /// It is announced, and waits for its key.
    Waiting,
    /// It is announced and has its key.
    Announced,
    Ended,
    Gone,
}

impl Default for Moment {
    fn default() -> Self {
        let mut moment = Self {
            last: 0,
            writers: Default::default(),
            visible: BTreeMap::new(),
            earlier: BTreeMap::new(),
            reader: Reader::new(),
            lows: [0; 2],
            in_hand: BTreeSet::new(),
            sent: BTreeSet::new(),
            listed_early: None,
            restarts: 0,
            swapped: false,
            filled_late: false,
            sent_again: false,
        };
        moment.reader.add(held(0, 0));
        moment
    }
}

impl Moment {
    pub(super) fn announce(&mut self, writer: usize) -> bool {
        let phase = &mut self.writers[writer].phase;
        *phase = if *phase == Phase::Locked { Phase::Announced } else { Phase::Waiting };
        true
    }

    pub(super) fn number(&mut self, writer: usize) -> bool {
        let state = &mut self.writers[writer];
        if state.prepared || state.positions.len() >= EMITS[writer] {
            return false;
        }
        self.last += 1;
        state.positions.push(self.last);
        true
    }

    pub(super) fn prepare(&mut self, writer: usize) -> bool {
        let state = &mut self.writers[writer];
        if writer != PREPARES || state.positions.is_empty() {
            return false;
        }
        state.prepared = true;
        true
    }

    pub(super) fn end(&mut self, writer: usize, commits: bool) -> bool {
        let state = &mut self.writers[writer];
        if state.positions.is_empty() {
            return false;
        }
        state.phase = Phase::Ended;
        for position in std::mem::take(&mut state.positions) {
            if commits {
                self.visible.insert(position, KEYS[writer]);
            }
        }
        true
    }

    pub(super) fn release(&mut self, writer: usize) -> bool {
        let state = &mut self.writers[writer];
        *state = WriterState { phase: Phase::Gone, ..WriterState::default() };
        true
    }

    pub(super) fn remember(&mut self) -> bool {
        self.earlier = self.visible.clone();
        true
    }

    pub(super) fn acknowledge(&mut self) -> bool {
        for position in std::mem::take(&mut self.in_hand) {
            self.reader.acknowledge(lane(self.visible[&position]), position);
        }
        let progress = self.reader.progress();
        for low in &progress.lows {
            self.lows[low.lane.index()] = low.low;
        }
        self.reader.stored(&progress, &[]);
        true
    }

    pub(super) fn join(&mut self) -> bool {
        if self.reader.fence(lane(1)).is_some() {
            return false;
        }
        self.reader.add(held(1, self.lows[1]));
        true
    }

    pub(super) fn restart(&mut self) -> bool {
        if self.restarts > 0 {
            return false;
        }
        self.restarts += 1;
        self.in_hand.clear();
        self.listed_early = None;
        self.reader = Reader::new();
        self.reader.add(held(0, self.lows[0]));
        self.reader.add(held(1, self.lows[1]));
        true
    }

    /// What the store calls final was sent.
    pub(super) fn final_was_sent(&self) -> bool {
        let is_final = |(position, lane): (&Position, &i16)| {
            *position <= self.lows[usize::try_from(*lane).unwrap()]
        };
        self.visible.iter().filter(|row| is_final(*row)).all(|(at, _)| self.sent.contains(at))
    }

    /// A position that is, or may become, visible is above what is final; if it was passed, the
    /// reader has sent it or still waits for it.
    pub(super) fn waits_for_what_may_come(&self) -> bool {
        let in_flight = self.writers.iter().zip(KEYS).flat_map(|(state, key)| {
            state.positions.iter().map(move |position| (*position, key, false))
        });
        let visible = self.visible.iter().map(|(at, key)| (*at, *key, self.sent.contains(at)));
        let mut all = in_flight.chain(visible);
        all.all(|(position, key, sent)| {
            let Some(held) = self.reader.lanes().find(|held| held.lane == lane(key)) else {
                return true;
            };
            let passed = position <= self.reader.scanned();
            sent || (held.low < position && (!passed || self.reader.gaps().contains(position)))
        })
    }

    /// Something is final above a position that never came.
    pub(super) fn final_over_a_gap(&self) -> bool {
        (1..=self.lows[0]).any(|position| !self.visible.contains_key(&position))
    }
}

pub(super) fn lane(number: i16) -> Lane {
    Lane::from_number(number).unwrap()
}

fn held(number: i16, low: Position) -> LaneHeld {
    LaneHeld { lane: lane(number), fence: Fence::FIRST, low }
}
