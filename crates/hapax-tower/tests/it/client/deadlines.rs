//! One deadline over all attempts, which shrinks inward; and retries at one layer.

use std::{future::pending, task::Poll, time::Duration};

use hapax_core::retry::Conclusion;
use hapax_tower::{
    Body, BoxError, BoxError as Failure,
    client::{InvalidRequest, Pursuit, RetryError, RetryLayer, RetryOptions, StopReason},
};
use http::{Request, Response};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use super::script::{Destination, Reply, get, post, said, status, tried};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn within(deadline: Duration, attempt_timeout: Duration) -> RetryOptions {
    RetryOptions { deadline, attempt_timeout, ..RetryOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_all_attempts_and_is_sent_shrinking_with_each() {
    let destination = Destination::new(|_| Reply::Silence);
    let start = Instant::now();
    let answered = destination.ask(within(seconds(25), seconds(10)), post()).await;
    let tried = tried(&answered);
    assert_eq!((tried.conclusion, tried.stop), (Conclusion::Unknown, StopReason::DeadlineTooNear));
    assert!(start.elapsed() <= seconds(25), "{:?}", start.elapsed());
    let left: Vec<u64> = destination
        .header("hapax-deadline")
        .into_iter()
        .map(|left| left.unwrap().parse().unwrap())
        .collect();
    assert_eq!(left[..2], [10_000, 10_000]);
    assert!(left.len() == 3 && (4_000..5_000).contains(&left[2]), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_less_time_shortens_the_deadline_and_one_with_more_does_not() {
    for (said, expected) in [("1500", seconds(1)..seconds(2)), ("999999", seconds(50)..seconds(61))]
    {
        let destination = Destination::new(|_| Reply::Silence);
        let mut request = post();
        request.headers_mut().insert("hapax-deadline", said.parse().unwrap());
        let start = Instant::now();
        destination.ask(RetryOptions::default(), request).await.unwrap_err();
        let first = destination.header("hapax-deadline")[0].clone().unwrap();
        assert!(first.parse::<u64>().unwrap() <= 10_000, "{first}");
        assert!(expected.contains(&start.elapsed()), "{said}: {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_nobody_understands_is_refused_before_anything_is_sent() {
    let destination = Destination::new(|_| said(200));
    let mut request = post();
    request.headers_mut().insert("hapax-deadline", "soon".parse().unwrap());
    let error = destination.ask(RetryOptions::default(), request).await.unwrap_err();
    assert!(matches!(error, RetryError::Invalid(InvalidRequest::Time(_))), "{error:?}");
    assert_eq!(destination.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn grpc_hears_of_the_time_left_in_its_own_words_where_that_is_wanted() {
    let destination = Destination::new(|_| said(200));
    destination.ask(RetryOptions::default(), post()).await.unwrap();
    let options = RetryOptions { grpc_timeout: true, ..RetryOptions::default() };
    destination.ask(options.clone(), post()).await.unwrap();
    let mut request = post();
    request.headers_mut().insert("grpc-timeout", "2S".parse().unwrap());
    destination.ask(options, request).await.unwrap();
    let told = [None, Some("10000000u".to_owned()), Some("2000000u".to_owned())];
    assert_eq!(destination.header("grpc-timeout"), told);
}

#[tokio::test(start_paused = true)]
async fn inner_layers_are_told_not_to_retry_and_one_that_is_told_does_not() {
    let destination = Destination::new(|_| Reply::Reset);
    let inner = destination.client(RetryOptions::default());
    let client = RetryLayer::new(RetryOptions::default()).unwrap().layer(inner);
    let error = client.oneshot(post()).await.unwrap_err();
    assert_eq!((destination.asked(), error.tried().unwrap().attempts), (5, 5));
    assert_eq!(destination.header("hapax-retry"), vec![Some("never".to_owned()); 5]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_repeated_further_out_is_sent_once_even_with_a_key() {
    for request in [get(), post()] {
        let destination = Destination::new(|_| said(503));
        let mut request = request;
        request.headers_mut().insert("hapax-retry", "never".parse().unwrap());
        let answered = destination.ask(RetryOptions::default(), request).await;
        assert_eq!((status(&answered), destination.asked()), (503, 1));
        assert_eq!(tried(&answered).stop, StopReason::NotRepeatable);
    }
}

#[tokio::test(start_paused = true)]
async fn one_request_can_have_a_deadline_of_its_own() {
    let destination = Destination::new(|_| Reply::Silence);
    let mut request = post();
    let pursuit = Pursuit { deadline: Some(seconds(3)), ..Pursuit::default() };
    request.extensions_mut().insert(pursuit);
    let start = Instant::now();
    destination.ask(RetryOptions::default(), request).await.unwrap_err();
    assert_eq!(start.elapsed(), seconds(3));
}

/// A client that never gets ready: all its connections are busy.
#[derive(Clone)]
struct Busy;

impl Service<Request<Body>> for Busy {
    type Response = Response<Body>;
    type Error = Failure;
    type Future = std::future::Pending<Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Pending
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        pending()
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_gets_ready_has_sent_nothing() {
    let client = RetryLayer::new(RetryOptions::default()).unwrap().layer(Busy);
    let error = client.oneshot(post()).await.unwrap_err();
    assert!(matches!(error, RetryError::GaveUp { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_call_stops_it() {
    let destination = Destination::new(|_| Reply::Unreachable);
    let mut client = destination.client(RetryOptions::default());
    let call = client.call(post());
    assert!(tokio::time::timeout(Duration::from_millis(1), call).await.is_err());
    let asked = destination.asked();
    tokio::time::sleep(seconds(120)).await;
    assert_eq!(destination.asked(), asked);
}

#[test]
fn options_without_any_time_are_refused() {
    for options in [within(Duration::ZERO, seconds(1)), within(seconds(1), Duration::ZERO)] {
        assert!(RetryLayer::new(options).is_err());
    }
}
