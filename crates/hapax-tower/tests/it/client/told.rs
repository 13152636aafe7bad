//! What the server asks its clients to wait is heard, and never believed without bounds.

use std::time::Duration;

use hapax_core::retry::Conclusion;
use hapax_tower::client::{RetryOptions, StopReason};
use tokio::time::Instant;

use super::script::{Destination, post, said, tried, with};

const fn patient() -> Duration {
    Duration::from_secs(3600)
}

/// The pause before the second attempt.
async fn pause(headers: &'static [(&'static str, &'static str)]) -> Duration {
    let destination =
        Destination::new(move |nth| if nth == 1 { with(503, headers) } else { said(200) });
    let options = RetryOptions { deadline: patient(), ..RetryOptions::default() };
    destination.ask(options, post()).await.unwrap();
    destination.pauses()[0]
}

#[tokio::test(start_paused = true)]
async fn a_number_of_seconds_is_waited_for_and_not_much_more() {
    let pause = pause(&[("retry-after", "30")]).await;
    assert!((30.0..38.0).contains(&pause.as_secs_f64()), "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn a_date_is_waited_for_by_the_clock_of_whoever_sent_it() {
    let pause = pause(&[
        ("date", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"),
    ])
    .await;
    assert!((30.0..38.0).contains(&pause.as_secs_f64()), "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn a_number_beyond_reason_is_taken_for_five_minutes() {
    let pause = pause(&[("retry-after", "999999")]).await;
    assert!((300.0..375.0).contains(&pause.as_secs_f64()), "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn garbage_is_ignored() {
    for garbage in [
        &[("retry-after", "soon")][..],
        &[("retry-after", "-1")],
        &[("retry-after", "1e9")],
        &[("retry-after", "")],
        &[("retry-after", "Wed, 99 Oct 2015 07:28:00 GMT")],
    ] {
        let pause = pause(garbage).await;
        assert!(pause <= Duration::from_millis(101), "{garbage:?}: {pause:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_outlasts_the_deadline_is_not_begun() {
    let destination = Destination::new(|_| with(503, &[("retry-after", "999999")]));
    let start = Instant::now();
    let answered = destination.ask(RetryOptions::default(), post()).await;
    let tried = tried(&answered);
    assert_eq!((destination.asked(), start.elapsed()), (1, Duration::ZERO));
    assert_eq!((tried.conclusion, tried.stop), (Conclusion::Unknown, StopReason::DeadlineTooNear));
}
