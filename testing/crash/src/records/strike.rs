//! Which victim dies how, drawn from a seed: the same number gives the same strike.

use std::{ops::RangeInclusive, time::Duration};

use super::work::LEASE;
use crate::{
    hunt::{Strike, place_in_turn},
    place::{self, DieAt},
};

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

/// Strike `number` of a run with this seed: every place in turn, at the first passing, then at
/// later ones; and random moments in between.
pub(super) fn draw(seed: u64, number: usize, places: &[&'static str]) -> Strike {
    let Some((place, cycle)) = place_in_turn(seed, number, RANDOM_EVERY, places) else {
        let dice = fastrand::Rng::with_seed(seed ^ number as u64);
        return at_random(number / RANDOM_EVERY, dice);
    };
    let nth = NTHS[cycle % NTHS.len()];
    let nth = if place::RECOVERY.contains(&place) { nth.min(RECOVERY_NTH_MAX) } else { nth };
    Strike::At(DieAt { place: place.to_owned(), nth })
}

/// The strike that leaves the most unfinished: many have begun, few have ended.
pub(super) fn in_mid_work() -> Strike {
    Strike::At(DieAt { place: place::BEGUN.to_owned(), nth: MID_WORK_NTH })
}

/// Whether a victim dies of it only where others have died before.
pub(super) fn needs_the_dead(strike: &Strike) -> bool {
    strike.die_at().is_some_and(|at| place::RECOVERY.contains(&at.place.as_str()))
}

fn at_random(round: usize, mut dice: fastrand::Rng) -> Strike {
    let mut millis = |range| Duration::from_millis(dice.u64(range));
    match round % 4 {
        0 | 1 => Strike::After(millis(AFTER_MS)),
        2 => Strike::After(millis(LATE_MS)),
        _ => Strike::Asleep { after: millis(AFTER_MS), sleep: LEASE * 2, awake: millis(AWAKE_MS) },
    }
}
