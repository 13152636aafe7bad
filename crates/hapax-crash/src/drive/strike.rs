//! Which victim dies how, drawn from a seed: the same number gives the same strike.

use std::{ops::RangeInclusive, time::Duration};

use crate::{
    place::{self, DieAt},
    work::LEASE,
};

/// How a victim dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strike {
    /// By its own hand, at a place.
    At(DieAt),
    /// From outside, this long after it said that it is ready.
    After(Duration),
    /// From outside, after it was made to sleep through its leases and has woken up again.
    Asleep {
        /// How long after it said that it is ready it falls asleep.
        after: Duration,
        /// How long it sleeps.
        sleep: Duration,
        /// How long it lives after that.
        awake: Duration,
    },
}

/// At which passing of a place victims die: most things go wrong at the first, some only later.
const NTHS: [u64; 6] = [1, 3, 8, 2, 5, 13];
/// Vanished owners are few, so later passings of such a place seldom come.
const RECOVERY_NTH_MAX: u64 = 2;
const MID_WORK_NTH: u64 = 16;
/// One strike in so many comes from outside, at random.
const RANDOM_EVERY: usize = 3;

const AFTER_MS: RangeInclusive<u64> = 5..=150;
/// Long enough for a victim to take over what others left behind.
const LATE_MS: RangeInclusive<u64> = 200..=500;
const AWAKE_MS: RangeInclusive<u64> = 5..=60;

impl Strike {
    /// Strike `number` of a run with this seed: every place in turn, at the first passing, then at
    /// later ones; and random moments in between.
    pub fn draw(seed: u64, number: usize, places: &[&'static str]) -> Self {
        let (round, turn) = (number / RANDOM_EVERY, number % RANDOM_EVERY);
        if turn == RANDOM_EVERY - 1 || places.is_empty() {
            return Self::at_random(round, fastrand::Rng::with_seed(seed ^ number as u64));
        }
        let at = round * (RANDOM_EVERY - 1) + turn;
        let (cycle, at) = (at / places.len(), at % places.len());
        // Shuffled in every cycle, so that a place is not always met in the same company.
        let mut order = places.to_vec();
        fastrand::Rng::with_seed(seed ^ cycle as u64).shuffle(&mut order);
        let (place, nth) = (order[at], NTHS[cycle % NTHS.len()]);
        let nth = if place::RECOVERY.contains(&place) { nth.min(RECOVERY_NTH_MAX) } else { nth };
        Self::At(DieAt { place: place.to_owned(), nth })
    }

    /// The strike that leaves the most unfinished: many have begun, few have ended.
    pub fn in_mid_work() -> Self {
        Self::At(DieAt { place: place::BEGUN.to_owned(), nth: MID_WORK_NTH })
    }

    /// Whether a victim dies of it only where others have died before.
    pub fn needs_the_dead(&self) -> bool {
        match self {
            Self::At(at) => place::RECOVERY.contains(&at.place.as_str()),
            Self::After(_) | Self::Asleep { .. } => false,
        }
    }

    fn at_random(round: usize, mut dice: fastrand::Rng) -> Self {
        let mut millis = |range| Duration::from_millis(dice.u64(range));
        match round % 4 {
            0 | 1 => Self::After(millis(AFTER_MS)),
            2 => Self::After(millis(LATE_MS)),
            _ => {
                Self::Asleep { after: millis(AFTER_MS), sleep: LEASE * 2, awake: millis(AWAKE_MS) }
            }
        }
    }
}
