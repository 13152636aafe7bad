//! One key per operation, and nothing repeated that has none.

use hapax_core::retry::Conclusion;
use hapax_tower::client::{InvalidRequest, Keys, RetryError, RetryOptions, StopReason};
use http::{Method, Request};

use super::script::{Destination, Reply, get, post, said, status, tried};

fn only_given() -> RetryOptions {
    RetryOptions { keys: Keys::OnlyGiven, ..RetryOptions::default() }
}

#[tokio::test(start_paused = true)]
async fn every_attempt_carries_the_same_new_key() {
    let destination = Destination::new(|nth| match nth {
        1 => Reply::Unreachable,
        2 => Reply::Reset,
        3 => said(503),
        _ => said(201),
    });
    let answered = destination.ask(RetryOptions::default(), post()).await;
    let tried = tried(&answered);
    assert_eq!((status(&answered), tried.attempts), (201, 4));
    assert_eq!((tried.conclusion, tried.stop), (Conclusion::Done, StopReason::Answered));
    let key = tried.key.unwrap();
    assert_eq!((key.len(), &key[14..15]), (36, "7"), "a UUID of version 7: {key}");
    assert_eq!(destination.header("idempotency-key"), vec![Some(format!("\"{key}\"")); 4]);
    assert_eq!(destination.each(|seen| seen.body.clone()), vec!["42 EUR"; 4]);
}

#[tokio::test(start_paused = true)]
async fn two_operations_have_two_keys() {
    let destination = Destination::new(|_| said(200));
    for _ in 0..2 {
        destination.ask(RetryOptions::default(), post()).await.unwrap();
    }
    let keys = destination.header("idempotency-key");
    assert_ne!(keys[0], keys[1]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_given_is_kept_as_it_is() {
    for given in ["\"order-42\"", "order-42"] {
        let destination = Destination::new(|nth| if nth == 1 { Reply::Reset } else { said(200) });
        let mut request = post();
        request.headers_mut().insert("idempotency-key", given.parse().unwrap());
        let answered = destination.ask(only_given(), request).await;
        assert_eq!(tried(&answered).key.as_deref(), Some("order-42"));
        assert_eq!(destination.header("idempotency-key"), vec![Some(given.to_owned()); 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_no_key_and_is_not_idempotent_is_sent_exactly_once() {
    for (reply, conclusion) in [
        ((|| Reply::Unreachable) as fn() -> Reply, Conclusion::GaveUp),
        (|| Reply::Reset, Conclusion::Unknown),
        (|| Reply::Silence, Conclusion::Unknown),
        (|| said(503), Conclusion::Unknown),
        (|| said(429), Conclusion::GaveUp),
        (|| super::script::problem(503, "overloaded", &[]), Conclusion::GaveUp),
        (|| super::script::problem(409, "key-in-flight", &[]), Conclusion::Unknown),
    ] {
        let destination = Destination::new(move |_| reply());
        let answered = destination.ask(only_given(), post()).await;
        let tried = tried(&answered);
        assert_eq!((destination.asked(), tried.attempts), (1, 1));
        assert_eq!((tried.conclusion, tried.stop), (conclusion, StopReason::NotRepeatable));
        assert_eq!(tried.key, None);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_idempotent_by_its_method_is_retried_without_a_key() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS, Method::PUT, Method::DELETE] {
        let destination = Destination::new(|nth| if nth < 3 { Reply::Reset } else { said(200) });
        let (mut parts, body) = get().into_parts();
        parts.method = method.clone();
        let request = Request::from_parts(parts, body);
        let answered = destination.ask(RetryOptions::default(), request).await;
        assert_eq!((status(&answered), destination.asked()), (200, 3), "{method}");
        assert_eq!(destination.header("idempotency-key"), vec![None; 3], "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_only_reads_is_never_unknown() {
    let destination = Destination::new(|_| Reply::Reset);
    let error = destination.ask(RetryOptions::default(), get()).await.unwrap_err();
    assert!(matches!(error, RetryError::GaveUp { .. }), "{error:?}");

    let destination = Destination::new(|nth| if nth == 1 { Reply::Reset } else { said(404) });
    let answered = destination.ask(RetryOptions::default(), get()).await;
    assert_eq!(tried(&answered).conclusion, Conclusion::Refused);
}

#[tokio::test(start_paused = true)]
async fn an_empty_key_or_two_of_them_are_refused_before_anything_is_sent() {
    let destination = Destination::new(|_| said(200));
    for keys in [&["\"\""][..], &[""], &["a", "b"]] {
        let mut request = post();
        for key in keys {
            request.headers_mut().append("idempotency-key", key.parse().unwrap());
        }
        let error = destination.ask(RetryOptions::default(), request).await.unwrap_err();
        assert!(matches!(error, RetryError::Invalid(InvalidRequest::Key)), "{error:?}");
    }
    assert_eq!(destination.asked(), 0);
}
