//! How a victim dies, and at which place in its turn.

use std::time::Duration;

use crate::place::DieAt;

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

impl Strike {
    /// The place a victim is told to die at, if it dies by its own hand.
    pub fn die_at(&self) -> Option<DieAt> {
        match self {
            Self::At(at) => Some(at.clone()),
            Self::After(_) | Self::Asleep { .. } => None,
        }
    }
}

/// The place whose turn it is at strike `number`, and how often each has had its turn before.
///
/// There is none at every `random_every`th strike, which comes from outside at random.
pub(crate) fn place_in_turn(
    seed: u64,
    number: usize,
    random_every: usize,
    places: &[&'static str],
) -> Option<(&'static str, usize)> {
    let (round, turn) = (number / random_every, number % random_every);
    if turn == random_every - 1 || places.is_empty() {
        return None;
    }
    let at = round * (random_every - 1) + turn;
    let (cycle, at) = (at / places.len(), at % places.len());
    // Shuffled in every cycle, so that a place is not always met in the same company.
    let mut order = places.to_vec();
    fastrand::Rng::with_seed(seed ^ cycle as u64).shuffle(&mut order);
    Some((order[at], cycle))
}
