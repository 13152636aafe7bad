//! Which victim dies how, drawn from a seed: the same number gives the same strike.

use std::{ops::RangeInclusive, time::Duration};

use hapax_messaging::consumer;

use super::{
    args::Role,
    relay::LEASE,
    watched::{CONSUMER_PLACES, RELAY_PLACES, WRITERS_PLACES},
};
use crate::{
    hunt::{Strike, place_in_turn},
    place::DieAt,
};

/// At which passing of a place victims die.
const NTHS: [u64; 6] = [1, 2, 1, 4, 3, 7];
/// What is passed seldom, and therefore soon.
const SELDOM: &[&str] = &[
    "outbox.register",
    "outbox.leave",
    "outbox.park",
    "outbox.release",
    "outbox.retire",
    "outbox.writers",
    "consumer.before_letter",
    "consumer.after_letter",
    "consumer.before_missed",
    "consumer.after_missed",
];
/// What is passed at the end of a victim's work.
const LAST: &[&str] = &["outbox.leave"];
/// One strike in so many comes from outside, at random.
const RANDOM_EVERY: usize = 4;

const AFTER_MS: RangeInclusive<u64> = 5..=600;
const AWAKE_MS: RangeInclusive<u64> = 20..=200;

/// How long a victim works that is to die in the midst of it.
const LONG: Duration = Duration::from_secs(5);
/// How long one works that is to die when it stops.
const SHORT: Duration = Duration::from_millis(300);

/// Every place a victim of this role can die at.
pub(super) fn places(role: Role, sqlite: bool) -> Vec<&'static str> {
    match role {
        // In SQLite there is one writer at a time, and nobody overtakes.
        Role::Relay if sqlite => RELAY_PLACES.to_vec(),
        Role::Relay => [RELAY_PLACES, WRITERS_PLACES].concat(),
        Role::Consumer => [CONSUMER_PLACES, consumer::PLACES].concat(),
    }
}

/// Strike `number` of a run: every place in turn, and random moments in between.
pub(super) fn draw(seed: u64, number: usize, places: &[&'static str]) -> Strike {
    let mut dice = fastrand::Rng::with_seed(seed ^ (number as u64) << 8);
    let Some((place, _)) = place_in_turn(seed, number, RANDOM_EVERY, places) else {
        return at_random(&mut dice);
    };
    let nth = if is_of(place, SELDOM) { 1 } else { NTHS[dice.usize(..NTHS.len())] };
    Strike::At(DieAt { place: place.to_owned(), nth })
}

/// How long a victim works that is struck like this, if it is not hit.
pub(super) fn work(strike: &Strike) -> Duration {
    match strike {
        Strike::At(at) if is_of(&at.place, LAST) => SHORT,
        Strike::At(_) | Strike::After(_) | Strike::Asleep { .. } => LONG,
    }
}

fn is_of(place: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| place.starts_with(beginning))
}

fn at_random(dice: &mut fastrand::Rng) -> Strike {
    let mut millis = |range| Duration::from_millis(dice.u64(range));
    let (after, awake) = (millis(AFTER_MS), millis(AWAKE_MS));
    if dice.u32(..3) > 0 {
        return Strike::After(after);
    }
    Strike::Asleep { after, sleep: LEASE * 3 / 2, awake }
}
