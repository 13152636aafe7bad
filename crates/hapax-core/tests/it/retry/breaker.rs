use std::time::Duration;

use hapax_core::{
    limits::{BREAKER_SPAN_MAX, BREAKER_SPAN_MIN},
    retry::{Breaker, BreakerOptions, BreakerPosition, Health, InvalidBreaker, Refused},
};

use super::{Draws, ms};

fn options() -> BreakerOptions {
    BreakerOptions {
        window: ms(1000),
        calls_min: 4,
        failures_percent: 50,
        open_for: ms(400),
        trials: 2,
        ramp: ms(1000),
    }
}

fn breaker() -> Breaker {
    Breaker::new(options()).unwrap()
}

/// Makes a call that ends at once.
fn call(breaker: &Breaker, now: Duration, health: Health) -> Result<(), Refused> {
    let pass = breaker.admit(now, 0)?;
    breaker.report(now, pass, health);
    Ok(())
}

fn opened(now: Duration) -> Breaker {
    let breaker = breaker();
    for _ in 0..4 {
        call(&breaker, now, Health::Bad).unwrap();
    }
    assert_eq!(breaker.position(now), BreakerPosition::Open);
    breaker
}

#[test]
fn options_out_of_bounds_are_refused() {
    let new = |options| Breaker::new(options).map(|_| ());
    let span = BREAKER_SPAN_MAX + ms(1);
    for (options, refused) in [
        (BreakerOptions { window: ms(1), ..options() }, InvalidBreaker::Span { span: ms(1) }),
        (BreakerOptions { open_for: span, ..options() }, InvalidBreaker::Span { span }),
        (BreakerOptions { ramp: ms(0), ..options() }, InvalidBreaker::Span { span: ms(0) }),
        (BreakerOptions { calls_min: 0, ..options() }, InvalidBreaker::Calls { calls: 0 }),
        (BreakerOptions { trials: 0, ..options() }, InvalidBreaker::Calls { calls: 0 }),
        (
            BreakerOptions { failures_percent: 0, ..options() },
            InvalidBreaker::Percent { percent: 0 },
        ),
        (
            BreakerOptions { failures_percent: 101, ..options() },
            InvalidBreaker::Percent { percent: 101 },
        ),
    ] {
        assert_eq!(new(options), Err(refused));
    }
    assert_eq!(new(BreakerOptions { ramp: BREAKER_SPAN_MIN, ..options() }), Ok(()));
    assert_eq!(new(BreakerOptions::default()), Ok(()));
}

#[test]
fn it_opens_when_half_of_enough_calls_failed() {
    let breaker = breaker();
    for health in [Health::Bad, Health::Good, Health::Bad] {
        call(&breaker, ms(0), health).unwrap();
        assert_eq!(breaker.position(ms(0)), BreakerPosition::Closed);
    }
    call(&breaker, ms(0), Health::Bad).unwrap();
    assert_eq!(breaker.position(ms(0)), BreakerPosition::Open);
    assert_eq!(call(&breaker, ms(100), Health::Good), Err(Refused { wait: ms(300) }));
}

#[test]
fn failures_that_left_the_window_are_forgotten() {
    let breaker = breaker();
    for _ in 0..3 {
        call(&breaker, ms(0), Health::Bad).unwrap();
    }
    call(&breaker, ms(1001), Health::Bad).unwrap();
    assert_eq!(breaker.position(ms(1001)), BreakerPosition::Closed);
    for _ in 0..3 {
        call(&breaker, ms(1900), Health::Bad).unwrap();
    }
    assert_eq!(breaker.position(ms(1900)), BreakerPosition::Open);
}

#[test]
fn success_in_the_window_keeps_it_closed() {
    let breaker = breaker();
    for at in 0..1000 {
        let health = if at % 3 == 2 { Health::Bad } else { Health::Good };
        call(&breaker, ms(at), health).unwrap();
    }
    assert_eq!(breaker.position(ms(1000)), BreakerPosition::Closed);
}

#[test]
fn half_open_lets_only_its_trials_through() {
    let breaker = opened(ms(0));
    assert_eq!(breaker.position(ms(399)), BreakerPosition::Open);
    assert_eq!(breaker.position(ms(400)), BreakerPosition::Trial);
    let trials: Vec<_> = (0..100).filter_map(|_| breaker.admit(ms(400), 0).ok()).collect();
    assert_eq!(trials.len(), 2);
}

#[test]
fn a_failed_trial_opens_it_again() {
    let breaker = opened(ms(0));
    call(&breaker, ms(400), Health::Good).unwrap();
    call(&breaker, ms(400), Health::Bad).unwrap();
    assert_eq!(breaker.position(ms(400)), BreakerPosition::Open);
    assert_eq!(breaker.position(ms(799)), BreakerPosition::Open);
    assert_eq!(breaker.position(ms(800)), BreakerPosition::Trial);
}

#[test]
fn trials_nobody_reported_are_replaced_and_late_news_of_them_counts() {
    let breaker = opened(ms(0));
    let lost = [breaker.admit(ms(400), 0).unwrap(), breaker.admit(ms(400), 0).unwrap()];
    assert!(breaker.admit(ms(799), 0).is_err());
    call(&breaker, ms(800), Health::Good).unwrap();
    assert_eq!(breaker.position(ms(800)), BreakerPosition::Trial);
    breaker.report(ms(900), lost[0], Health::Good);
    assert_eq!(breaker.position(ms(900)), BreakerPosition::Ramp);
}

#[test]
fn calls_come_back_slowly_when_it_closes() {
    let breaker = opened(ms(0));
    for _ in 0..2 {
        call(&breaker, ms(400), Health::Good).unwrap();
    }
    let mut draws = Draws(7);
    let mut admitted_percent = |at: u64| {
        let admitted = (0..10_000).filter(|_| breaker.admit(ms(at), draws.next()).is_ok());
        admitted.count() / 100
    };
    let shares = [400, 650, 900, 1150, 1299].map(&mut admitted_percent);
    for (share, expected) in shares.into_iter().zip([10, 35, 60, 85, 99]) {
        assert!(share.abs_diff(expected) <= 2, "{shares:?}");
    }
    assert_eq!(breaker.position(ms(1399)), BreakerPosition::Ramp);
    assert_eq!(breaker.position(ms(1400)), BreakerPosition::Closed);
    assert_eq!(admitted_percent(1400), 100);
}

#[test]
fn failures_on_the_ramp_open_it_again() {
    let breaker = opened(ms(0));
    for _ in 0..2 {
        call(&breaker, ms(400), Health::Good).unwrap();
    }
    for _ in 0..4 {
        call(&breaker, ms(500), Health::Bad).unwrap();
    }
    assert_eq!(breaker.position(ms(500)), BreakerPosition::Open);
}

#[test]
fn news_of_calls_from_before_it_opened_is_no_news() {
    let breaker = breaker();
    let early: Vec<_> = (0..10).map(|_| breaker.admit(ms(0), 0).unwrap()).collect();
    for _ in 0..4 {
        call(&breaker, ms(0), Health::Bad).unwrap();
    }
    for pass in &early[..5] {
        breaker.report(ms(400), *pass, Health::Good);
        assert_eq!(breaker.position(ms(400)), BreakerPosition::Trial);
    }
    for pass in &early[5..] {
        breaker.report(ms(400), *pass, Health::Bad);
        assert_eq!(breaker.position(ms(400)), BreakerPosition::Trial);
    }
}

#[test]
fn breakers_that_opened_together_do_not_ask_again_together() {
    let mut draws = Draws(3);
    let mut waits: Vec<_> = (0..50)
        .map(|_| {
            let breaker = breaker();
            for _ in 0..4 {
                let pass = breaker.admit(ms(0), draws.next()).unwrap();
                breaker.report(ms(0), pass, Health::Bad);
            }
            breaker.admit(ms(0), 0).unwrap_err().wait
        })
        .collect();
    assert!(waits.iter().all(|wait| (ms(400)..ms(500)).contains(wait)), "{waits:?}");
    waits.sort();
    waits.dedup();
    assert_eq!(waits.len(), 50);
}
