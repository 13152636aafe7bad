//! Calls without a name: the key lives in memory.

use std::time::Duration;

use hapax_client::{CallError, InvalidCall};
use hapax_tower::signal;
use http::HeaderMap;
use serde_json::json;

use crate::server::{Server, answer, builder};

#[tokio::test]
async fn all_attempts_of_a_call_have_one_key() {
    let server = Server::start(async |number| match number {
        0 | 1 => answer(503, "not now"),
        _ => answer(201, "charged"),
    })
    .await;
    let client = builder().build().expect("a client");
    let answer = client.post(server.at("/charges")).json(&json!({ "amount": 5 })).send().await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.text().as_str()), (201, "charged"));
    assert_eq!(answer.attempts(), 3);
    let keys: Vec<_> = server.seen().iter().map(|seen| seen.key().to_owned()).collect();
    let sent = format!("\"{}\"", answer.key().expect("a key"));
    assert_eq!(keys, [sent.clone(), sent.clone(), sent]);
    let kind = server.seen()[0].headers["content-type"].clone();
    assert_eq!(kind, "application/json");
}

#[tokio::test]
async fn two_calls_have_two_keys_and_reading_needs_none() {
    let server = Server::start(async |_| answer(200, "ok")).await;
    let client = builder().build().expect("a client");
    for _ in 0..2 {
        client.post(server.at("/charges")).send().await.expect("an answer");
    }
    let read = client.get(server.at("/charges")).query([("page", "a b")]).send().await;
    assert_eq!(read.expect("an answer").key(), None);
    let seen = server.seen();
    assert_ne!(seen[0].key(), seen[1].key());
    assert!(!seen[2].headers.contains_key("idempotency-key"));
}

#[tokio::test]
async fn a_key_of_ones_own_is_sent_quoted_and_escaped() {
    let server = Server::start(async |_| answer(200, "ok")).await;
    let client = builder().build().expect("a client");
    let answer = client.put(server.at("/x")).key(r#"order "7" \ a"#).send().await;
    assert_eq!(answer.expect("an answer").key(), Some(r#"order "7" \ a"#));
    assert_eq!(server.seen()[0].key(), r#""order \"7\" \\ a""#);
}

#[tokio::test]
async fn an_answer_that_never_comes_is_unknown_and_carries_the_key() {
    let server = Server::start(async |_| answer(500, "perhaps")).await;
    let client = builder().build().expect("a client");
    let error = client.post(server.at("/charges")).send().await.expect_err("no success");
    let CallError::Unknown(unfinished) = &error else { panic!("{error}") };
    assert_eq!(unfinished.attempts, 3);
    let key = error.key().expect("a key").to_owned();
    assert_eq!(server.seen()[2].key(), format!("\"{key}\""));
    assert!(error.to_string().contains(&key), "{error}");
    assert_eq!(error.answer().expect("the last answer").status(), 500);
}

#[tokio::test]
async fn where_nobody_listens_it_gives_up_because_nothing_was_sent() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/charges", gone.local_addr().expect("an address"));
    drop(gone);
    let client = builder().build().expect("a client");
    let error = client.post(url).send().await.expect_err("nobody is there");
    let CallError::GaveUp(unfinished) = &error else { panic!("{error:?}") };
    assert_eq!(unfinished.attempts, 3);
}

#[tokio::test]
async fn a_refusal_is_returned_as_an_error_with_the_answer() {
    let server = Server::start(async |_| answer(402, "no money")).await;
    let client = builder().build().expect("a client");
    let error = client.post(server.at("/charges")).send().await.expect_err("a refusal");
    let CallError::Refused(answer) = &error else { panic!("{error}") };
    assert_eq!((answer.status().as_u16(), answer.text().as_str()), (402, "no money"));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_the_served_request_says_about_time_and_retries_is_obeyed() {
    let server = Server::start(async |_| answer(503, "not now")).await;
    let client = builder().build().expect("a client");
    let mut served = HeaderMap::new();
    signal::set_retried_further_out(&mut served);
    signal::set_time_left(&mut served, Duration::from_millis(300));
    let error = client.post(server.at("/charges")).inherit(&served).send().await;
    error.expect_err("no success");
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "whoever called repeats the whole");
    let left = signal::time_left(&seen[0].headers).expect("a time").expect("a deadline");
    assert!(left <= Duration::from_millis(300), "{left:?}");
    assert!(signal::is_retried_further_out(&seen[0].headers));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_is() {
    let client = builder().build().expect("a client");
    let error = client.post("ftp://x.test/").send().await.expect_err("no HTTP");
    assert!(matches!(error, CallError::Invalid(InvalidCall::Url(_))), "{error:?}");
    let error = client.post("http://me:secret@x.test/").send().await.expect_err("a password");
    assert!(matches!(error, CallError::Invalid(InvalidCall::CredentialsInUrl)), "{error:?}");
    let error = client.post("http://x.test/").header("Idempotency-Key", "a").send().await;
    let error = error.expect_err("a key for several attempts");
    assert!(matches!(error, CallError::Invalid(InvalidCall::KeyAsHeader)), "{error:?}");
    let error = client.operation("a").post("http://x.test/").send().await.expect_err("no journal");
    assert!(matches!(error, CallError::Invalid(InvalidCall::NoJournal)), "{error:?}");
    assert!(builder().header("Idempotency-Key", "a").build().is_err());
}
