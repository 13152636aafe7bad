//! Which victim dies how, drawn from a seed: the same number gives the same strike.

use std::{ops::RangeInclusive, time::Duration};

use hapax_client::journal;

use super::victim;
use crate::{
    hunt::{Strike, place_in_turn},
    place::DieAt,
};

/// At which passing of a place victims die.
const NTHS: [u64; 6] = [1, 2, 1, 4, 3, 7];
/// What is passed seldom, and therefore soon: once by a victim, or only where others died before.
const SELDOM: &[&str] = &["journal.forget", "journal.release", "journal.take_up"];
/// One strike in so many comes from outside, at random.
const RANDOM_EVERY: usize = 4;

const AFTER_MS: RangeInclusive<u64> = 0..=300;
const AWAKE_MS: RangeInclusive<u64> = 5..=150;

/// Every place a victim can die at, those of the journal first.
pub(super) fn places() -> impl Iterator<Item = &'static str> {
    journal::PLACES.iter().chain(victim::PLACES).copied()
}

/// Where only the first of an episode comes: the file is made once.
fn is_made_once(place: &str) -> bool {
    place.starts_with("journal.make.")
}

/// How the first victim of an episode dies: half of them while they make the journal.
pub(super) fn first(seed: u64, episode: usize) -> Strike {
    let making: Vec<_> = places().filter(|place| is_made_once(place)).collect();
    if episode.is_multiple_of(2) {
        let place = making[episode / 2 % making.len()].to_owned();
        return Strike::At(DieAt { place, nth: 1 });
    }
    draw(seed, episode)
}

/// Strike `number` of a run: every place in turn, and random moments in between.
pub(super) fn draw(seed: u64, number: usize) -> Strike {
    let mut dice = fastrand::Rng::with_seed(seed ^ (number as u64) << 8);
    let places: Vec<_> = places().filter(|place| !is_made_once(place)).collect();
    let Some((place, _)) = place_in_turn(seed, number, RANDOM_EVERY, &places) else {
        return at_random(&mut dice);
    };
    let nth = if SELDOM.contains(&place) { 1 } else { NTHS[dice.usize(..NTHS.len())] };
    Strike::At(DieAt { place: place.to_owned(), nth })
}

fn at_random(dice: &mut fastrand::Rng) -> Strike {
    let mut millis = |range| Duration::from_millis(dice.u64(range));
    let (after, awake) = (millis(AFTER_MS), millis(AWAKE_MS));
    if dice.bool() {
        return Strike::After(after);
    }
    Strike::Asleep { after, sleep: victim::LEASE * 2, awake }
}
