//! Which victim dies how, drawn from a seed: the same number gives the same strike.

use std::time::Duration;

use crate::place::DieAt;

/// How a victim dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strike {
    /// By its own hand, at a place.
    At(DieAt),
    /// From outside, this long after it said that it is ready.
    After(Duration),
}

/// At which passing of a place victims die: most things go wrong at the first, some only later.
const NTHS: [u64; 6] = [1, 3, 8, 2, 5, 13];
/// One strike in so many comes from outside, at random.
const RANDOM_EVERY: usize = 3;

const AFTER_MIN_MS: u64 = 5;
const AFTER_MAX_MS: u64 = 150;

impl Strike {
    /// Strike `number` of a run with this seed: every place in turn, at the first passing, then at
    /// later ones; and random moments in between.
    pub fn draw(seed: u64, number: usize, places: &[&'static str]) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
        let (round, turn) = (number / RANDOM_EVERY, number % RANDOM_EVERY);
        if turn == RANDOM_EVERY - 1 || places.is_empty() {
            return Self::After(Duration::from_millis(dice.u64(AFTER_MIN_MS..=AFTER_MAX_MS)));
        }
        let at = round * (RANDOM_EVERY - 1) + turn;
        let (cycle, at) = (at / places.len(), at % places.len());
        // Shuffled in every cycle, so that a place is not always met in the same company.
        let mut order = places.to_vec();
        fastrand::Rng::with_seed(seed ^ cycle as u64).shuffle(&mut order);
        Self::At(DieAt { place: order[at].to_owned(), nth: NTHS[cycle % NTHS.len()] })
    }
}
