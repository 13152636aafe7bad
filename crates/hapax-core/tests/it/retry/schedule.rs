use std::time::Duration;

use hapax_core::{
    limits::{
        RETRY_AFTER_MAX, RETRY_ATTEMPTS_MAX, RETRY_BASE_MIN, RETRY_CAP_MAX, RETRY_SPREAD_DIVISOR,
    },
    retry::{Backoff, Failure, InvalidSchedule, Jitter, Next, Schedule, Why},
};
use proptest::prelude::*;

use super::ms;

const JITTERS: [Jitter; 4] = [Jitter::Full, Jitter::Equal, Jitter::Decorrelated, Jitter::None];
const TICK: Duration = Duration::from_nanos(1);

fn schedule(jitter: Jitter, base: Duration, cap: Duration) -> Schedule {
    Schedule::new(Backoff { jitter, base, cap }, RETRY_ATTEMPTS_MAX).unwrap()
}

fn failure(attempt: u32, told: Option<Duration>, left: Duration) -> Failure {
    Failure { attempt, previous: Duration::ZERO, told, left }
}

#[test]
fn the_default_is_full_jitter_from_100_ms_to_20_s_in_five_attempts() {
    let default = Schedule::default();
    let backoff = Backoff { jitter: Jitter::Full, base: ms(100), cap: ms(20_000) };
    assert_eq!(default.backoff(), backoff);
    assert_eq!(default.attempts_max(), 5);
    assert_eq!(Schedule::new(backoff, 5), Ok(default));
}

#[test]
fn schedules_out_of_bounds_are_refused() {
    let new = |base, cap, attempts| {
        Schedule::new(Backoff { jitter: Jitter::Full, base, cap }, attempts).map(|_| ())
    };
    assert_eq!(new(RETRY_BASE_MIN, RETRY_BASE_MIN, 1), Ok(()));
    assert_eq!(new(RETRY_CAP_MAX, RETRY_CAP_MAX, RETRY_ATTEMPTS_MAX), Ok(()));
    for (base, cap) in [(RETRY_BASE_MIN - TICK, ms(1000)), (ms(11), ms(10)), (ms(0), ms(0))] {
        assert_eq!(new(base, cap, 1), Err(InvalidSchedule::Base { base, cap }));
    }
    let cap = RETRY_CAP_MAX + TICK;
    assert_eq!(new(ms(1), cap, 1), Err(InvalidSchedule::Cap { cap }));
    for attempts_max in [0, RETRY_ATTEMPTS_MAX + 1] {
        let refused = Err(InvalidSchedule::Attempts { attempts_max });
        assert_eq!(new(ms(1), ms(1), attempts_max), refused);
    }
}

#[test]
fn without_jitter_the_base_doubles_up_to_the_cap() {
    let schedule = schedule(Jitter::None, ms(100), ms(1000));
    let pauses: Vec<_> = (1..=6).filter_map(|attempt| schedule.pause(attempt, ms(0), 0)).collect();
    assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000].map(ms));
}

#[test]
fn the_last_attempt_is_followed_by_nothing() {
    let schedule = Schedule::default();
    assert!(schedule.pause(4, ms(0), 0).is_some());
    for attempt in [5, 6, u32::MAX] {
        assert_eq!(schedule.pause(attempt, ms(0), 0), None);
        let end = schedule.next(failure(attempt, None, Duration::MAX), 0);
        assert_eq!(end, Next::GiveUp(Why::AttemptsUsedUp));
    }
}

#[test]
fn a_pause_that_does_not_fit_the_time_left_is_not_begun() {
    let schedule = schedule(Jitter::None, ms(100), ms(100));
    assert_eq!(schedule.next(failure(1, None, ms(101)), 0), Next::Wait(ms(100)));
    let give_up = Next::GiveUp(Why::DeadlineTooNear);
    assert_eq!(schedule.next(failure(1, None, ms(100)), 0), give_up);
    assert_eq!(schedule.next(failure(1, Some(ms(500)), ms(400)), 0), give_up);
    assert_eq!(schedule.until_finished(Some(ms(500)), ms(400), 0), give_up);
}

#[test]
fn a_retry_after_without_jitter_is_honoured_to_the_letter_and_clamped() {
    let schedule = schedule(Jitter::None, ms(100), ms(1000));
    let next = |told| schedule.next(failure(1, Some(told), Duration::MAX), 7);
    assert_eq!(next(ms(2500)), Next::Wait(ms(2500)));
    assert_eq!(next(Duration::from_secs(999_999)), Next::Wait(RETRY_AFTER_MAX));
    assert_eq!(next(Duration::MAX), Next::Wait(RETRY_AFTER_MAX));
    assert_eq!(next(Duration::ZERO), Next::Wait(ms(100)));
}

#[test]
fn waiting_for_an_earlier_attempt_uses_up_no_attempts() {
    let schedule = Schedule::default();
    let Next::Wait(pause) = schedule.until_finished(None, ms(1000), u64::MAX) else {
        panic!("there was time to wait");
    };
    assert!((ms(100)..=ms(200)).contains(&pause), "{pause:?}");
    let Next::Wait(pause) = schedule.until_finished(Some(ms(2000)), ms(9000), 3) else {
        panic!("there was time to wait");
    };
    assert!((ms(2000)..=ms(2500)).contains(&pause), "{pause:?}");
}

fn spans() -> impl Strategy<Value = (Duration, Duration)> {
    (1_u64..10_000, 0_u64..1_000_000).prop_map(|(base, more)| (ms(base), ms(base + more)))
}

proptest! {
    #[test]
    fn no_pause_is_longer_than_the_cap(
        (base, cap) in spans(), attempt in 1..RETRY_ATTEMPTS_MAX, previous: Duration, random: u64
    ) {
        for jitter in JITTERS {
            let pause = schedule(jitter, base, cap).pause(attempt, previous, random);
            prop_assert!(pause.is_some_and(|pause| pause <= cap), "{jitter:?} {pause:?}");
        }
    }

    #[test]
    fn equal_jitter_waits_at_least_half_and_decorrelated_at_least_the_base(
        (base, cap) in spans(), attempt in 1..RETRY_ATTEMPTS_MAX, previous: Duration, random: u64
    ) {
        let pause = |jitter, random| {
            schedule(jitter, base, cap).pause(attempt, previous, random).unwrap()
        };
        prop_assert!(pause(Jitter::Equal, random) >= pause(Jitter::None, random) / 2);
        prop_assert!(pause(Jitter::Decorrelated, random) >= base);
        prop_assert!(pause(Jitter::Full, random) <= pause(Jitter::None, random));
    }

    #[test]
    fn a_higher_cap_or_a_later_attempt_never_shortens_a_pause(
        (base, cap) in spans(), more in 0_u64..1000, attempt in 1_u32..100, random: u64
    ) {
        for jitter in [Jitter::Full, Jitter::Equal, Jitter::None] {
            let pause = |cap, attempt| schedule(jitter, base, cap).pause(attempt, ms(0), random);
            prop_assert!(pause(cap, attempt) <= pause(cap + ms(more), attempt));
            prop_assert!(pause(cap, attempt) <= pause(cap, attempt + 1));
        }
    }

    #[test]
    fn a_retry_after_is_only_ever_made_longer_and_by_little(
        told_ms in 0_u64..10_000_000, attempt in 1_u32..20, random: u64
    ) {
        let told = ms(told_ms);
        for jitter in JITTERS {
            let schedule = schedule(jitter, ms(100), ms(2000));
            let Next::Wait(pause) = schedule.next(failure(attempt, Some(told), Duration::MAX), random)
            else { panic!("there was time to wait") };
            let honoured = told.min(RETRY_AFTER_MAX);
            let spread = (honoured / RETRY_SPREAD_DIVISOR).max(ms(100));
            prop_assert!(pause >= honoured);
            prop_assert!(pause <= (honoured + spread).max(ms(2000)));
        }
    }

    #[test]
    fn what_is_waited_always_ends_before_the_deadline(
        told in proptest::option::of(0_u64..100_000), left_ms in 0_u64..100_000,
        attempt in 1_u32..20, random: u64
    ) {
        let (told, left) = (told.map(ms), ms(left_ms));
        let schedule = schedule(Jitter::Full, ms(100), ms(20_000));
        for next in [
            schedule.next(failure(attempt, told, left), random),
            schedule.until_finished(told, left, random),
        ] {
            let fits = match next {
                Next::Wait(pause) => pause < left,
                Next::GiveUp(why) => why == Why::DeadlineTooNear,
            };
            prop_assert!(fits, "{next:?} of {left:?}");
        }
    }
}
