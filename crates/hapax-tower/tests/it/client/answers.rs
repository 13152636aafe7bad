//! Answers are understood: ours, Stripe's, anybody's.

use std::time::Duration;

use hapax_core::retry::Conclusion;
use hapax_tower::client::{RetryOptions, StopReason};

use super::script::{Answered, Destination, Reply, post, problem, said, status, text, tried, with};

async fn ask(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Answered, Destination) {
    let destination = Destination::new(script);
    (destination.ask(RetryOptions::default(), post()).await, destination)
}

#[tokio::test(start_paused = true)]
async fn a_key_in_flight_is_waited_for_as_told_and_uses_up_no_attempt() {
    let in_flight = || problem(409, "key-in-flight", &[("retry-after", "2")]);
    let (answered, destination) =
        ask(move |nth| if nth <= 12 { in_flight() } else { said(201) }).await;
    assert_eq!((status(&answered), destination.asked()), (201, 13));
    assert_eq!(tried(&answered).conclusion, Conclusion::Done);
    // A timer goes off with the next whole millisecond.
    let (asked, tick) = (Duration::from_secs(2), Duration::from_millis(1));
    for pause in destination.pauses() {
        assert!((asked..=asked * 5 / 4 + tick).contains(&pause), "{pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_wait_for_a_key_in_flight() {
    let (answered, destination) =
        ask(|_| problem(409, "key-in-flight", &[("retry-after", "2")])).await;
    let tried = tried(&answered);
    assert_eq!((tried.conclusion, tried.stop), (Conclusion::Unknown, StopReason::DeadlineTooNear));
    assert!((24..=30).contains(&destination.asked()), "{}", destination.asked());
}

#[tokio::test(start_paused = true)]
async fn a_key_of_another_request_stops_at_once() {
    for reply in [(|| problem(422, "key-reused", &[])) as fn() -> Reply, || said(422)] {
        let (answered, destination) = ask(move |_| reply()).await;
        assert_eq!((status(&answered), destination.asked()), (422, 1));
        assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_in_trouble_is_asked_again_after_growing_pauses_and_then_told_of() {
    let (answered, destination) = ask(|_| said(503)).await;
    assert_eq!((status(&answered), destination.asked()), (503, 5));
    for (nth, pause) in (0..).zip(destination.pauses()) {
        assert!(pause <= Duration::from_millis(101 << nth), "{nth}: {pause:?}");
    }
    let known = tried(&answered);
    assert_eq!((known.conclusion, known.stop), (Conclusion::Unknown, StopReason::AttemptsUsedUp));
    assert_eq!(text(answered).await, "said 503");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ran_nothing_leaves_no_doubt() {
    for code in ["store-unavailable", "overloaded", "shutting-down", "transaction-rolled-back"] {
        let (answered, destination) = ask(move |_| problem(503, code, &[])).await;
        let tried = tried(&answered);
        assert_eq!((destination.asked(), tried.conclusion), (5, Conclusion::GaveUp), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_know_or_keep_is_unknown_and_not_asked_again() {
    for code in ["outcome-in-doubt", "response-not-retained"] {
        let (answered, destination) = ask(move |_| problem(409, code, &[])).await;
        let tried = tried(&answered);
        assert_eq!((destination.asked(), tried.conclusion), (1, Conclusion::Unknown), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed_and_is_no_answer() {
    for code in [301, 302, 307, 308] {
        let (answered, destination) =
            ask(move |_| with(code, &[("location", "https://elsewhere.test/")])).await;
        assert_eq!((status(&answered), destination.asked()), (code, 1));
        assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
    }
    let (answered, _) = ask(|_| with(303, &[("location", "/charges/1")])).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Done);
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_told_as_one() {
    let (answered, _) = ask(|_| with(201, &[("idempotent-replayed", "true")])).await;
    assert!(tried(&answered).replayed);
    let (answered, _) = ask(|_| said(201)).await;
    assert!(!tried(&answered).replayed);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_kept_under_the_key_is_not_asked_for_again() {
    let (answered, destination) = ask(|_| with(500, &[("idempotent-replayed", "true")])).await;
    let tried = tried(&answered);
    assert_eq!((destination.asked(), tried.stop), (1, StopReason::Answered));
    assert_eq!(tried.conclusion, Conclusion::Unknown);
}

#[tokio::test(start_paused = true)]
async fn stripes_conflict_is_a_key_in_flight() {
    let busy = || with(409, &[("stripe-should-retry", "true")]);
    let (answered, destination) = ask(move |nth| if nth <= 7 { busy() } else { said(200) }).await;
    assert_eq!((status(&answered), destination.asked()), (200, 8));
}

#[tokio::test(start_paused = true)]
async fn stripe_is_obeyed_when_it_says_not_to_retry() {
    let (answered, destination) = ask(|_| with(500, &[("stripe-should-retry", "false")])).await;
    let tried = tried(&answered);
    assert_eq!((destination.asked(), tried.conclusion), (1, Conclusion::Unknown));
    assert_eq!(tried.stop, StopReason::Answered);
}

#[tokio::test(start_paused = true)]
async fn stripe_is_obeyed_when_it_says_to_retry_a_refusal() {
    let again = || with(424, &[("stripe-should-retry", "true")]);
    let (answered, destination) = ask(move |nth| if nth == 1 { again() } else { said(200) }).await;
    assert_eq!((destination.asked(), tried(&answered).conclusion), (2, Conclusion::Done));
}

#[tokio::test(start_paused = true)]
async fn a_plain_conflict_is_a_refusal() {
    let (answered, destination) = ask(|_| said(409)).await;
    assert_eq!((destination.asked(), tried(&answered).conclusion), (1, Conclusion::Refused));
}
