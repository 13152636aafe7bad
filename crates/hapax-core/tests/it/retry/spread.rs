//! How pauses are distributed, by many draws from a fixed seed.

use std::time::Duration;

use hapax_core::retry::{Backoff, Failure, Jitter, Next, Schedule};

use super::{Draws, ms};

const DRAWS: u32 = 100_000;
const BUCKETS: usize = 20;

fn schedule(jitter: Jitter) -> Schedule {
    Schedule::new(Backoff { jitter, base: ms(1000), cap: ms(8000) }, 100).unwrap()
}

/// Draws often, and expects the results to be spread evenly between the two ends.
fn check_even(from: Duration, to: Duration, mut draw: impl FnMut(u64) -> Duration) {
    let mut draws = Draws(42);
    let mut buckets = [0_u32; BUCKETS];
    let mut sum = Duration::ZERO;
    for _ in 0..DRAWS {
        let drawn = draw(draws.next());
        assert!((from..=to).contains(&drawn), "{drawn:?}");
        sum += drawn;
        let place = (drawn - from).as_nanos() * BUCKETS as u128 / (to - from).as_nanos();
        buckets[usize::try_from(place).unwrap().min(BUCKETS - 1)] += 1;
    }
    let mean = sum / DRAWS;
    let middle = (from + to) / 2;
    assert!(mean.abs_diff(middle) < (to - from) / 100, "{mean:?} is not {middle:?}");
    let expected = f64::from(DRAWS) / BUCKETS as f64;
    let chi_square: f64 =
        buckets.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // With 19 degrees of freedom, one even spread in ten thousand is further off than this.
    assert!(chi_square < 50.8, "{chi_square}: {buckets:?}");
}

#[test]
fn full_jitter_is_even_from_nothing_to_the_doubled_base() {
    for (attempt, doubled) in [(1, 1000), (2, 2000), (3, 4000), (4, 8000), (5, 8000)] {
        let schedule = schedule(Jitter::Full);
        check_even(ms(0), ms(doubled), |random| schedule.pause(attempt, ms(0), random).unwrap());
    }
}

#[test]
fn equal_jitter_is_even_from_half_to_the_doubled_base() {
    let schedule = schedule(Jitter::Equal);
    check_even(ms(1000), ms(2000), |random| schedule.pause(2, ms(0), random).unwrap());
}

#[test]
fn decorrelated_jitter_is_even_from_the_base_to_thrice_the_previous_pause() {
    let schedule = schedule(Jitter::Decorrelated);
    check_even(ms(1000), ms(6000), |random| schedule.pause(7, ms(2000), random).unwrap());
    check_even(ms(1000), ms(3000), |random| schedule.pause(1, ms(0), random).unwrap());
}

#[test]
fn those_who_are_told_the_same_time_come_back_spread_over_a_quarter_of_it() {
    let schedule = schedule(Jitter::Full);
    let told = Some(ms(60_000));
    let failure = Failure { attempt: 1, previous: ms(0), told, left: Duration::MAX };
    check_even(ms(60_000), ms(75_000), |random| match schedule.next(failure, random) {
        Next::Wait(pause) => pause,
        Next::GiveUp(why) => panic!("{why:?}"),
    });
}
