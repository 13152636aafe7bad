//! Servers and counts about which nothing can be said: that is what is said, in a sentence.

use super::{BODY, COUNT, Verifier, VerifyOutcome};
use crate::world::{Raw, free_address};

const ONE: &str = r#"{"items":[{}]}"#;
const NONE: &str = r#"{"items":[]}"#;

fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// Answers every POST so, and every count with nothing.
async fn always(status: &'static str, headers: &'static str) -> Raw {
    Raw::start(move |head| match head.starts_with("POST") {
        true => answer(status, headers, r#"{"id":"p-1"}"#),
        false => answer("200 OK", "", NONE),
    })
    .await
}

fn examined(url: &str) -> VerifyOutcome {
    let args = ["POST", url, "--json", BODY, "--count", COUNT, "--id", "/id"];
    Verifier::new().run(&[&args[..], &["--recovery", "1s"]].concat())
}

fn check_not_graded(ended: &VerifyOutcome, words: &str) {
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    let out = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.starts_with("Not graded"), "{ended:?}");
    assert!(out.contains(words), "no {words:?} in {out}");
    assert!(!ended.err.contains("V01 retry-after-success ... "), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_listens_is_told() {
    let url = format!("http://{}/payments", free_address());
    check_not_graded(&examined(&url), "was not reached");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_is_told() {
    let server = always("201 Created", "").await;
    let url = format!("https://{}/payments", server.address);
    check_not_graded(&examined(&url), "TLS with");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_told_and_not_followed() {
    let server = always("307 Temporary Redirect", "location: http://127.0.0.1:1/pay\r\n").await;
    let url = format!("http://{}/payments", server.address);
    check_not_graded(&examined(&url), "http://127.0.0.1:1/pay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_requests_is_told() {
    let server = always("429 Too Many Requests", "").await;
    let url = format!("http://{}/payments", server.address);
    check_not_graded(&examined(&url), "429");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_never_succeed_are_told() {
    let server = always("500 Internal Server Error", "").await;
    let url = format!("http://{}/payments", server.address);
    check_not_graded(&examined(&url), "500");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_of_what_nobody_asked_for_is_told() {
    let server = Raw::start(|head| match head.starts_with("POST") {
        true => answer("201 Created", "", r#"{"id":"p-1"}"#),
        false => answer("200 OK", "", ONE),
    })
    .await;
    let url = format!("http://{}/payments", server.address);
    check_not_graded(&examined(&url), "nobody asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_idempotent_by_itself_is_told() {
    let server = Raw::start(|head| match (head.starts_with("POST"), head.contains("never")) {
        (true, _) => answer("201 Created", "", r#"{"id":"p-1"}"#),
        (false, true) => answer("200 OK", "", NONE),
        (false, false) => answer("200 OK", "", ONE),
    })
    .await;
    let url = format!("http://{}/payments", server.address);
    check_not_graded(&examined(&url), "idempotent by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_that_fails_is_told() {
    let server = Raw::start(|head| match head.starts_with("POST") {
        true => answer("201 Created", "", r#"{"id":"p-1"}"#),
        false => answer("500 Internal Server Error", "", "no"),
    })
    .await;
    let url = format!("http://{}/payments", server.address);
    let ended = examined(&url);
    assert_eq!(ended.exit, Some(3), "{ended:?}");
    let told = format!("{}{}", ended.out, ended.err);
    assert!(told.contains("was answered with 500"), "{ended:?}");
}
