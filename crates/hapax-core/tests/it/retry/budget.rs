use std::{collections::VecDeque, thread, time::Duration};

use hapax_core::{
    limits::{BUDGET_RETRIES_PER_SECOND_MAX, BUDGET_TOKENS_MAX},
    retry::{Budget, Cost, Exhausted, InvalidTerms, Terms},
};
use proptest::prelude::*;

use super::ms;

fn share(percent: u32, floor_per_second: u32, saved_max: u32) -> Budget {
    Budget::new(Terms::Share { percent, floor_per_second, saved_max }).unwrap()
}

/// How many retries are paid for at this moment.
fn drain(budget: &Budget, now: Duration) -> u32 {
    let mut paid = 0;
    while budget.withdraw(now, Cost::Failure).is_ok() {
        paid += 1;
    }
    paid
}

/// Requests at a steady rate to a destination that answers none: how many retries it is sent.
fn outage(budget: &Budget, requests_per_second: u32, seconds: u32) -> u32 {
    let mut retries = 0;
    for request in 0..requests_per_second * seconds {
        let now = Duration::from_secs(1) * request / requests_per_second;
        budget.begin();
        retries += drain(budget, now);
    }
    retries
}

#[test]
fn terms_out_of_bounds_are_refused() {
    let new = |terms| Budget::new(terms).map(|budget| budget.terms());
    let (percent, floor_per_second) = (101, BUDGET_RETRIES_PER_SECOND_MAX + 1);
    let count = BUDGET_TOKENS_MAX + 1;
    for (terms, refused) in [
        (
            Terms::Share { percent, floor_per_second: 1, saved_max: 1 },
            InvalidTerms::Percent { percent },
        ),
        (
            Terms::Share { percent: 1, floor_per_second, saved_max: 1 },
            InvalidTerms::Floor { floor_per_second },
        ),
        (
            Terms::Share { percent: 1, floor_per_second: 1, saved_max: count },
            InvalidTerms::Tokens { count },
        ),
        (
            Terms::Costs { capacity: count, retry: 1, timeout: 1, success: 1 },
            InvalidTerms::Tokens { count },
        ),
        (Terms::Costs { capacity: 1, retry: 0, timeout: 1, success: 1 }, InvalidTerms::Free),
        (Terms::Costs { capacity: 1, retry: 1, timeout: 0, success: 1 }, InvalidTerms::Free),
    ] {
        assert_eq!(new(terms), Err(refused));
    }
    for terms in [Terms::default(), Terms::COSTS] {
        assert_eq!(new(terms), Ok(terms));
    }
}

#[test]
fn a_tenth_of_the_traffic_is_paid_for_and_no_more() {
    let budget = share(10, 0, 100);
    assert_eq!(drain(&budget, ms(0)), 0);
    for _ in 0..95 {
        budget.begin();
    }
    assert_eq!(drain(&budget, ms(0)), 9);
    for _ in 0..5 {
        budget.begin();
    }
    assert_eq!(drain(&budget, ms(0)), 1);
}

#[test]
fn requests_that_need_no_retry_save_up_a_limited_number() {
    let budget = share(20, 0, 7);
    for _ in 0..1_000_000 {
        budget.begin();
    }
    assert_eq!(drain(&budget, ms(0)), 7);
}

#[test]
fn the_floor_allows_a_few_retries_a_second_without_traffic() {
    let budget = share(10, 10, 100);
    assert_eq!(drain(&budget, ms(0)), 10);
    assert_eq!(drain(&budget, ms(99)), 0);
    assert_eq!(drain(&budget, ms(100)), 1);
    assert_eq!(drain(&budget, ms(500)), 4);
    assert_eq!(drain(&budget, ms(3_600_000)), 10);
}

#[test]
fn an_outage_raises_the_load_by_a_tenth() {
    for rate in [110, 200, 1000, 5000] {
        let budget = Budget::new(Terms::default()).unwrap();
        let retries = outage(&budget, rate, 20);
        assert!(retries <= rate * 20 / 10, "{retries} at {rate}/s");
        assert!(retries >= rate * 20 / 10 - 11, "{retries} at {rate}/s");
    }
}

#[test]
fn with_little_traffic_an_outage_is_sent_the_floor() {
    for rate in [1, 10, 50] {
        let budget = Budget::new(Terms::default()).unwrap();
        let retries = outage(&budget, rate, 20);
        assert!((190..=210).contains(&retries), "{retries} at {rate}/s");
    }
}

#[test]
fn a_bucket_of_costs_runs_dry_and_is_filled_by_success() {
    let budget = Budget::new(Terms::COSTS).unwrap();
    assert_eq!(drain(&budget, ms(0)), 100);
    for _ in 0..4 {
        budget.succeed(None);
    }
    assert_eq!(budget.withdraw(ms(0), Cost::Failure), Err(Exhausted));
    budget.succeed(None);
    let retry = budget.withdraw(ms(0), Cost::Failure).unwrap();
    budget.succeed(Some(retry));
    assert!(budget.withdraw(ms(0), Cost::Failure).is_ok());
    assert_eq!(budget.withdraw(Duration::MAX, Cost::Failure), Err(Exhausted));
}

#[test]
fn a_retry_after_a_timeout_costs_twice_as_much() {
    let budget = Budget::new(Terms::COSTS).unwrap();
    let mut paid = 0;
    while budget.withdraw(ms(0), Cost::Timeout).is_ok() {
        paid += 1;
    }
    assert_eq!(paid, 50);
}

#[test]
fn success_never_fills_a_bucket_beyond_its_capacity() {
    let budget = Budget::new(Terms::COSTS).unwrap();
    for _ in 0..10_000 {
        budget.succeed(None);
        budget.begin();
    }
    assert_eq!(drain(&budget, ms(0)), 100);
}

#[test]
fn callers_on_many_threads_share_one_budget() {
    let budget = share(10, 0, BUDGET_TOKENS_MAX);
    let retries: u32 = thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let call = |_| {
                        budget.begin();
                        u32::from(budget.withdraw(ms(0), Cost::Failure).is_ok())
                    };
                    (0..25_000).map(call).sum::<u32>()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(retries + drain(&budget, ms(0)), 10_000);
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Request,
    Retry,
    Pass(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => Just(Event::Request),
        4 => Just(Event::Retry),
        1 => (0_u64..2000).prop_map(Event::Pass),
    ];
    proptest::collection::vec(event, 0..400)
}

proptest! {
    #[test]
    fn no_window_is_given_more_than_its_share_its_floor_and_what_was_saved(
        events in events(), percent in 0_u32..=100, floor in 0_u32..20, saved in 0_u32..10
    ) {
        const WINDOW: Duration = Duration::from_secs(10);
        let budget = share(percent, floor, saved);
        let mut now = Duration::ZERO;
        let (mut requests, mut retries) = (VecDeque::new(), VecDeque::new());
        for event in events {
            match event {
                Event::Request => {
                    budget.begin();
                    requests.push_back(now);
                }
                Event::Retry if budget.withdraw(now, Cost::Failure).is_ok() => {
                    retries.push_back(now);
                }
                Event::Retry => {}
                Event::Pass(millis) => now += ms(millis),
            }
            for times in [&mut requests, &mut retries] {
                times.retain(|time| *time + WINDOW >= now);
            }
            let by_share = requests.len() as u64 * u64::from(percent) / 100 + 1;
            let by_floor = u64::from(floor) * 11;
            let most = by_share + by_floor + u64::from(saved);
            prop_assert!(retries.len() as u64 <= most, "{} of {most}", retries.len());
        }
    }
}
