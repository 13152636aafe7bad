//! Servers that answer wrongly, slowly, or too much.

use std::time::Duration;

use hapax_client::{Answer, CallError, Conclusion};
use tokio::{
    io::AsyncWriteExt,
    time::{Instant, sleep},
};

use crate::{
    raw::{Raw, read_head},
    server::builder,
};

/// All of it has to be over by then, whatever a server does.
const LIMIT: Duration = Duration::from_secs(4);

/// Sends one keyed request, and says what it came to and after how many connections.
async fn ask(server: &Raw) -> (Conclusion, usize, Result<Answer, CallError>) {
    let client = builder().build().expect("a client");
    let start = Instant::now();
    let ended = client.post(&server.url).body("5").send().await;
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let conclusion = match &ended {
        Ok(_) => Conclusion::Done,
        Err(error) => error.conclusion().expect("a conclusion"),
    };
    (conclusion, server.connections(), ended)
}

async fn check(server: Raw, conclusion: Conclusion, connections: usize) {
    let (found, count, ended) = ask(&server).await;
    assert_eq!((found, count), (conclusion, connections), "{ended:?}");
}

fn whole(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_retry_after_of_eleven_days_ends_it_at_once() {
    let server = Raw::answering(|_| whole("503 No\r\nRetry-After: 999999", "")).await;
    check(server, Conclusion::Unknown, 1).await;
}

#[tokio::test]
async fn garbage_is_no_answer() {
    let server = Raw::answering(|_| "\u{1}\u{2}SSH-2.0-OpenSSH\r\n\r\n".to_owned()).await;
    check(server, Conclusion::Unknown, 3).await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let server = Raw::answering(move |_| whole(&format!("{status}\r\nLocation: /charges"), ""));
        check(server.await, Conclusion::Refused, 1).await;
    }
}

#[tokio::test]
async fn a_body_that_drips_is_cut_at_the_end_of_the_attempt() {
    let server = Raw::start(async |_, mut stream| {
        read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    });
    check(server.await, Conclusion::Unknown, 3).await;
}

#[tokio::test]
async fn a_body_cut_short_is_no_answer() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    let server = Raw::answering(move |_| cut.to_owned()).await;
    check(server, Conclusion::Unknown, 3).await;
}

#[tokio::test]
async fn a_body_cut_short_and_then_sent_whole_is_an_answer() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncha";
    let server = Raw::answering(move |number| match number {
        0 => cut.to_owned(),
        _ => whole("200 OK", "charged"),
    });
    let (conclusion, connections, ended) = ask(&server.await).await;
    assert_eq!((conclusion, connections), (Conclusion::Done, 2));
    assert_eq!(ended.expect("an answer").text(), "charged");
}

#[tokio::test]
async fn a_server_that_says_yes_and_then_no_is_not_believed() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ncha";
    let server = Raw::answering(move |number| match number {
        0 => cut.to_owned(),
        _ => whole("402 No\r\nIdempotent-Replayed: true", "no money"),
    });
    check(server.await, Conclusion::Unknown, 2).await;
}

#[tokio::test]
async fn a_refusal_by_somebody_who_does_not_know_the_key_settles_no_doubt() {
    let server = Raw::answering(|number| match number {
        0 => String::new(),
        _ => whole("401 Who", ""),
    });
    check(server.await, Conclusion::Unknown, 2).await;
}

#[tokio::test]
async fn an_answer_before_the_request_was_read_is_an_answer() {
    let server = Raw::start(async |_, mut stream| {
        let mut first = [0];
        let _ = tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await;
        let _ = stream.write_all(whole("200 OK", "already").as_bytes()).await;
        read_head(&mut stream).await;
    });
    check(server.await, Conclusion::Done, 1).await;
}

#[tokio::test]
async fn a_connection_that_is_closed_at_once_leaves_a_doubt() {
    let server = Raw::start(async |_, stream| drop(stream)).await;
    check(server, Conclusion::Unknown, 3).await;
}

#[tokio::test]
async fn more_headers_than_anybody_needs_are_no_answer() {
    let many: String = (0..200).map(|number| format!("X-{number}: y\r\n")).collect();
    let server = Raw::answering(move |_| format!("HTTP/1.1 200 OK\r\n{many}\r\n")).await;
    check(server, Conclusion::Unknown, 3).await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_left_when_the_time_is_over() {
    let server = Raw::start(async |_, mut stream| {
        read_head(&mut stream).await;
        std::future::pending::<()>().await;
    });
    check(server.await, Conclusion::Unknown, 3).await;
}
