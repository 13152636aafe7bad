//! Headers after a body, and what is said before an answer.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{Played, bytes, head};
use crate::{
    text,
    world::{Connection, PATIENCE, Setup, ask},
};

const WITH_TRAILERS: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\
                             trailer: x-sum, set-cookie, hapax-fence\r\n\r\n3\r\nten\r\n0\r\n\
                             x-sum: 7\r\nset-cookie: a=1\r\nhapax-fence: 9\r\n\r\n";

#[tokio::test]
async fn what_comes_after_an_answer_reaches_whoever_said_that_they_read_it() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    for (lines, reads) in
        [("te: trailers\r\nconnection: te, close\r\n", true), ("connection: close\r\n", false)]
    {
        let mut client = Connection::open(gateway.address).await;
        client.send(format!("GET /sum HTTP/1.1\r\nhost: a\r\n{lines}\r\n")).await;
        let (mut server, asked) = upstream.accept().await;
        assert_eq!(asked.contains("te: trailers\r\n"), reads, "{asked}");
        assert_eq!(asked.contains("connection: te\r\n"), reads, "{asked}");
        server.write_all(WITH_TRAILERS.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        timeout(PATIENCE, client.socket().read_to_end(&mut heard)).await.unwrap().unwrap();
        let heard = text(&heard);
        let end = if reads { "3\r\nten\r\n0\r\nx-sum: 7\r\n\r\n" } else { "3\r\nten\r\n0\r\n\r\n" };
        assert!(heard.ends_with(end), "{heard}");
    }
}

#[tokio::test]
async fn what_comes_after_a_request_is_passed_on_but_for_what_counts_in_a_head() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    let mut client = Connection::open(gateway.address).await;
    client
        .send(
            "POST /upload HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\
             trailer: x-sum, authorization\r\n\r\n3\r\nten\r\n0\r\nx-sum: 7\r\n\
             authorization: root\r\ncontent-length: 9\r\nidempotency-key: other\r\n\r\n",
        )
        .await;
    let (mut server, asked) = upstream.accept().await;
    assert!(asked.contains("trailer: x-sum, authorization\r\n"), "{asked}");
    bytes(&mut server, "3\r\nten\r\n0\r\nx-sum: 7\r\n\r\n").await;
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), "ok");
    // Nothing of it is taken for the beginning of the next request.
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let next = head(&mut server).await;
    assert!(next.starts_with("GET / HTTP/1.1\r\n"), "{next}");
}

#[tokio::test]
async fn hints_before_an_answer_are_dropped_and_whoever_waits_to_be_told_to_send_is() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    let mut client = Connection::open(gateway.address).await;
    let head_of = "POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n";
    client.send(format!("{head_of}expect: 100-continue\r\n\r\n")).await;
    assert_eq!(head(client.socket()).await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ten").await;
    let (mut server, asked) = upstream.accept().await;
    assert!(!asked.contains("expect"), "{asked}");
    bytes(&mut server, "ten").await;
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    server.write_all(format!("{hint}{answer}").as_bytes()).await.unwrap();
    let heard = client.answer().await.unwrap();
    assert_eq!((heard.status, heard.text(), heard.header("link")), (200, "ok", None));
    let tunnel = "CONNECT inner:80 HTTP/1.1\r\nhost: inner:80\r\n\r\n";
    let refused = ask(gateway.address, tunnel).await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (501, Some("method-refused")));
}
