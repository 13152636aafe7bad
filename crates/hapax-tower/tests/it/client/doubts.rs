//! What may have happened is asked for with the same key, and never said not to have happened.

use std::time::Duration;

use hapax_core::retry::{AttemptHistory, Conclusion};
use hapax_tower::client::{Pursuit, RetryError, RetryOptions, StopReason};

use super::script::{
    Answered, Destination, Reply, cut, drip, get, post, problem, said, status, text, tried, with,
};

async fn ask(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Answered, Destination) {
    let destination = Destination::new(script);
    (destination.ask(RetryOptions::default(), post()).await, destination)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_is_asked_for_again_with_the_same_key() {
    let (answered, destination) = ask(|nth| if nth == 1 { cut(201) } else { said(201) }).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Done);
    let keys = destination.header("idempotency-key");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(text(answered).await, "said 201");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_drips_ends_with_the_time_of_its_attempt() {
    let (answered, destination) = ask(|nth| if nth == 1 { drip(200) } else { said(200) }).await;
    assert_eq!(status(&answered), 200);
    let pause = destination.pauses()[0];
    assert!((10_000..10_200).contains(&pause.as_millis()), "{pause:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_whole_is_unknown_and_names_its_cause() {
    let (answered, _) = ask(|_| cut(201)).await;
    let error = answered.unwrap_err();
    let RetryError::Unknown { tried, source } = &error else { panic!("{error:?}") };
    assert_eq!((tried.attempts, tried.stop), (5, StopReason::AttemptsUsedUp));
    assert!(tried.key.is_some());
    assert_eq!(source.as_ref().unwrap().to_string(), "connection reset");
}

#[tokio::test(start_paused = true)]
async fn a_different_response_to_the_same_key_is_not_believed() {
    for other in [402, 200] {
        let (answered, _) = ask(move |nth| if nth == 1 { cut(201) } else { said(other) }).await;
        assert_eq!(status(&answered), other);
        assert_eq!(tried(&answered).conclusion, Conclusion::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_after_silence_counts_only_from_somebody_who_knows_the_key() {
    let after_reset =
        |reply: fn() -> Reply| ask(move |nth| if nth == 1 { Reply::Reset } else { reply() });
    let (answered, _) = after_reset(|| said(401)).await;
    assert_eq!((status(&answered), tried(&answered).conclusion), (401, Conclusion::Unknown));
    let (answered, _) = after_reset(|| with(402, &[("idempotent-replayed", "true")])).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
    let (answered, _) = after_reset(|| problem(410, "key-gone", &[])).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Unknown);
    let (answered, _) = after_reset(|| problem(422, "key-reused", &[])).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_echoes_the_key_has_looked_at_it() {
    let destination = Destination::new(|nth| match nth {
        1 => Reply::Silence,
        _ => with(402, &[("idempotency-key", "order-42")]),
    });
    let mut request = post();
    request.headers_mut().insert("idempotency-key", "\"order-42\"".parse().unwrap());
    let answered = destination.ask(RetryOptions::default(), request).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
}

#[tokio::test(start_paused = true)]
async fn what_never_left_is_given_up_without_a_doubt() {
    let (answered, destination) = ask(|_| Reply::Unreachable).await;
    let error = answered.unwrap_err();
    assert!(matches!(error, RetryError::GaveUp { .. }), "{error:?}");
    assert_eq!(destination.asked(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_is_taken_over_starts_with_its_doubt() {
    let destination = Destination::new(|_| said(401));
    let mut request = post();
    let pursuit = Pursuit { history: AttemptHistory::taken_over(), ..Pursuit::default() };
    request.extensions_mut().insert(pursuit);
    let answered = destination.ask(RetryOptions::default(), request).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Unknown);
}

#[tokio::test(start_paused = true)]
async fn what_is_only_read_is_handed_on_as_it_comes() {
    let destination = Destination::new(|_| drip(200));
    let started = tokio::time::Instant::now();
    let answered = destination.ask(RetryOptions::default(), get()).await;
    assert_eq!((status(&answered), started.elapsed()), (200, Duration::ZERO));
}
