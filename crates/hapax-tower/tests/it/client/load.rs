//! What a destination in trouble is sent.

use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::retry::{BreakerOptions, BreakerPosition, Conclusion, Terms};
use hapax_tower::client::{Destinations, Patience, Pursuit, RetryError, RetryOptions, StopReason};
use http::Uri;
use tokio::time::{Instant, advance, sleep};
use tower::ServiceExt;

use super::script::{Destination, Reply, post, said, tried};

/// One breaker that never opens, so that the budget alone is seen.
fn budget_alone() -> RetryOptions {
    let breaker = BreakerOptions { calls_min: 1_000_000, ..BreakerOptions::default() };
    let destinations = Destinations::new(Terms::default(), breaker).unwrap();
    let attempt_timeout = Duration::from_millis(200);
    RetryOptions { destinations, attempt_timeout, ..RetryOptions::default() }
}

const SPAN: Duration = Duration::from_secs(5);

/// A thousand requests in five seconds.
async fn load(destination: &Destination, options: RetryOptions) {
    let client = destination.client(options);
    let calls = (0..1_000).map(|nth| {
        let client = client.clone();
        async move {
            sleep(Duration::from_millis(5 * nth)).await;
            let _ = client.oneshot(post()).await;
        }
    });
    join_all(calls).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_adds_at_most_a_tenth_to_the_load() {
    for reply in [(|| said(503)) as fn() -> Reply, || Reply::Reset, || Reply::Silence] {
        let destination = Destination::new(move |_| reply());
        let start = Instant::now();
        load(&destination, budget_alone()).await;
        // When the requests stop, what is left to retry goes on at the floor of the budget.
        let meanwhile = destination.each(|seen| seen.at - start < SPAN);
        let asked = meanwhile.into_iter().filter(|asked| *asked).count();
        assert!((1_001..=1_100).contains(&asked), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_its_breaker_a_destination_that_is_down_is_hardly_asked() {
    let destination = Destination::new(|_| said(503));
    load(&destination, RetryOptions::default()).await;
    assert!(destination.asked() <= 100, "{}", destination.asked());
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_used_up_ends_the_call_with_what_was_heard_last() {
    let terms = Terms::Costs { capacity: 10, retry: 5, timeout: 10, success: 1 };
    let destinations = Destinations::new(terms, BreakerOptions::default()).unwrap();
    let options = RetryOptions { destinations, ..RetryOptions::default() };
    let destination = Destination::new(|_| said(503));
    let answered = destination.ask(options.clone(), post()).await;
    assert_eq!((destination.asked(), tried(&answered).stop), (3, StopReason::BudgetUsedUp));

    let silent = Destination::new(|_| Reply::Unreachable);
    let error = silent.ask(options, post()).await.unwrap_err();
    let RetryError::GaveUp { tried, source } = error else { panic!("{error:?}") };
    assert_eq!((silent.asked(), tried.stop), (1, StopReason::BudgetUsedUp));
    assert!(source.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_breaker_opens_refuses_tries_again_and_ramps_up() {
    let options = RetryOptions::default();
    let (destinations, uri) =
        (options.destinations.clone(), Uri::from_static("https://bank.test/"));
    let down = Destination::new(|_| said(503));
    while destinations.position(&uri) != BreakerPosition::Open {
        let _ = down.ask(options.clone(), post()).await;
    }
    assert!(down.asked() <= 40, "{}", down.asked());

    let well = Destination::new(|_| said(200));
    let error = well.ask(options.clone(), post()).await.unwrap_err();
    let RetryError::GaveUp { tried, source } = error else { panic!("{error:?}") };
    assert_eq!((tried.attempts, tried.conclusion), (0, Conclusion::GaveUp));
    let StopReason::BreakerOpen { wait } = tried.stop else { panic!("{:?}", tried.stop) };
    assert!(source.is_none() && wait <= Duration::from_millis(6_250), "{wait:?}");
    assert_eq!(well.asked(), 0);

    advance(wait).await;
    assert_eq!(destinations.position(&uri), BreakerPosition::Trial);
    for _ in 0..3 {
        well.ask(options.clone(), post()).await.unwrap();
    }
    assert_eq!(destinations.position(&uri), BreakerPosition::Ramp);
    let (mut asked, before) = (0, well.asked());
    for _ in 0..500 {
        asked += 1;
        let _ = well.ask(options.clone(), post()).await;
    }
    let share = (well.asked() - before) * 100 / asked;
    assert!((3..=20).contains(&share), "{share} % at the start of the ramp");
    advance(Duration::from_secs(10)).await;
    assert_eq!(destinations.position(&uri), BreakerPosition::Closed);
}

/// A request that waits until its deadline.
fn patient(deadline: Duration) -> http::Request<hapax_tower::Body> {
    let (deadline, patience) = (Some(deadline), Patience::UntilDeadline);
    let mut request = post();
    request.extensions_mut().insert(Pursuit { deadline, patience, ..Pursuit::default() });
    request
}

#[tokio::test(start_paused = true)]
async fn who_is_patient_waits_for_the_breaker_and_the_budget() {
    let terms = Terms::Share { percent: 0, floor_per_second: 1, saved_max: 0 };
    let destinations = Destinations::new(terms, BreakerOptions::default()).unwrap();
    let options = RetryOptions { destinations: destinations.clone(), ..RetryOptions::default() };
    let down = Destination::new(|_| said(503));
    let uri = Uri::from_static("https://bank.test/");
    while destinations.position(&uri) != BreakerPosition::Open {
        let _ = down.ask(options.clone(), post()).await;
    }
    let start = Instant::now();
    let recovers = Destination::new(|nth| said(if nth < 4 { 503 } else { 200 }));
    let answered = recovers.ask(options, patient(Duration::from_secs(120))).await;
    assert_eq!((tried(&answered).attempts, tried(&answered).conclusion), (4, Conclusion::Done));
    // Open for five seconds, and again after each trial that failed.
    assert!(start.elapsed() > Duration::from_secs(15), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn patience_ends_with_the_deadline_and_says_what_it_waited_for() {
    let terms = Terms::Share { percent: 0, floor_per_second: 0, saved_max: 0 };
    let destinations = Destinations::new(terms, BreakerOptions::default()).unwrap();
    let options = RetryOptions { destinations, ..RetryOptions::default() };
    let (down, start) = (Destination::new(|_| said(503)), Instant::now());
    let answered = down.ask(options, patient(Duration::from_secs(9))).await;
    assert_eq!((down.asked(), tried(&answered).stop), (1, StopReason::BudgetUsedUp));
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(8) && waited <= Duration::from_secs(9), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn patience_sends_a_destination_that_is_down_no_more_than_its_budget() {
    let destination = Destination::new(|_| said(503));
    let client = destination.client(budget_alone());
    let calls = (0..1_000).map(|nth| {
        let client = client.clone();
        async move {
            sleep(Duration::from_millis(5 * nth)).await;
            let _ = client.oneshot(patient(Duration::from_secs(30))).await;
        }
    });
    let start = Instant::now();
    join_all(calls).await;
    let meanwhile = destination.each(|seen| seen.at - start < SPAN);
    let asked = meanwhile.into_iter().filter(|asked| *asked).count();
    assert!((1_001..=1_100).contains(&asked), "{asked}");
}

#[tokio::test(start_paused = true)]
async fn destinations_are_told_apart_by_scheme_and_authority() {
    let options = RetryOptions::default();
    let down = Destination::new(|_| said(503));
    for _ in 0..20 {
        let _ = down.ask(options.clone(), post()).await;
    }
    let position = |uri: &'static str| options.destinations.position(&Uri::from_static(uri));
    assert_eq!(position("https://BANK.test/other"), BreakerPosition::Open);
    for other in ["http://bank.test/", "https://bank.test:8443/", "https://shop.test/", "/"] {
        assert_eq!(position(other), BreakerPosition::Closed, "{other}");
    }
}
