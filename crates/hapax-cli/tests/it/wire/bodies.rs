//! Bodies that are too large, too short, too long, or not sent at all.

use super::{
    Expected::{Closed, Refused},
    ROUTES, World, head, key, row,
};
use crate::world::{Behaviour, Connection, Setup, Upstream};

const LARGE: &str = "content-length: 10000000\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n";

/// A body of chunks with this many bytes, with or without its end.
fn chunks(len: usize, ends: bool) -> String {
    let chunk = format!("400\r\n{}\r\n", "x".repeat(1 << 10));
    chunk.repeat(len >> 10) + if ends { "0\r\n\r\n" } else { "" }
}

#[tokio::test]
async fn a_body_over_its_cap_is_refused_before_anything_is_claimed() {
    let world = World::start(ROUTES).await;
    let (closed, open) = (Closed(413, "body-too-large"), Refused(413, "body-too-large"));
    let announced = "content-length: 2000\r\n";
    for row in [
        row("announced, nothing sent", head("/small", key("k"), LARGE, ""), closed),
        row("announced, some sent", head("/small", key("k"), LARGE, "x".repeat(4096)), closed),
        row("announced and sent", head("/small", key("k"), announced, "x".repeat(2000)), open),
        row("chunks", head("/small", key("k"), CHUNKED, chunks(4096, true)), open),
        row("many chunks", head("/small", key("k"), CHUNKED, chunks(200 << 10, true)), closed),
        row("chunks without end", head("/small", key("k"), CHUNKED, chunks(4096, false)), closed),
    ] {
        world.check(&row).await;
    }
    let small = head("/small", key("k"), "content-length: 1024\r\n", "x".repeat(1024));
    assert_eq!(
        world.ask(small).await.status,
        201,
        "the key is free, and the cap is a size allowed"
    );
}

#[tokio::test]
async fn a_body_that_ends_early_runs_nothing_and_leaves_the_key_free() {
    let world = World::start(ROUTES).await;
    for (name, sent) in [
        ("length", head("/pay", key("k"), "content-length: 9\r\n", "ten")),
        ("no body at all", head("/pay", key("k"), "content-length: 9\r\n", "")),
        ("chunk", head("/pay", key("k"), CHUNKED, "9\r\nten")),
        ("last chunk", head("/pay", key("k"), CHUNKED, "3\r\nten\r\n")),
        ("head", b"POST /pay HTTP/1.1\r\nhost: a\r\nidempotency-key: k\r\n".to_vec()),
    ] {
        let mut connection = Connection::open(world.gateway.address).await;
        connection.send(sent).await;
        connection.finish().await;
        if let Some(answer) = connection.answer().await {
            assert_eq!(answer.status, 400, "{name}");
        }
        assert!(connection.ends().await, "{name}");
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{name}");
    }
    let whole = world.ask(head("/pay", key("k"), "content-length: 3\r\n", "ten")).await;
    assert_eq!((whole.status, whole.is_replay()), (201, false));
}

#[tokio::test]
async fn what_follows_a_body_is_another_request_or_an_error_never_part_of_it() {
    let world = World::start(ROUTES).await;
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send(head("/pay", key("k"), "content-length: 2\r\n", "ten\r\n\r\n")).await;
    let first = connection.answer().await.unwrap();
    assert_eq!((first.status, first.text()), (201, "receipt 1 for te"));
    assert_eq!(connection.answer().await.unwrap().status, 400);
    assert!(connection.ends().await);
    assert_eq!(world.upstream.total(), 1);
}

#[tokio::test]
async fn requests_may_be_sent_before_their_turn() {
    let world = World::start(ROUTES).await;
    let one = head("/pay", key("k"), "content-length: 3\r\n", "ten");
    let two = head("/pay", key("l"), "content-length: 3\r\n", "ten");
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send([one.clone(), one, two].concat()).await;
    let mut heard = Vec::new();
    for _ in 0..3 {
        let answer = connection.answer().await.unwrap();
        heard.push((answer.text().to_owned(), answer.is_replay()));
    }
    let (first, second) = ("receipt 1 for ten".to_owned(), "receipt 2 for ten".to_owned());
    assert_eq!(heard, [(first.clone(), false), (first, true), (second, false)]);
}

#[tokio::test]
async fn a_client_that_waits_to_be_told_sends_its_body_only_if_it_is_wanted() {
    let world = World::start(ROUTES).await;
    let lines = |value| [key(value), b"expect: 100-continue\r\n".to_vec()].concat();
    for replayed in [false, true] {
        let mut connection = Connection::open(world.gateway.address).await;
        connection.send(head("/pay", lines("k"), "content-length: 3\r\n", "")).await;
        assert_eq!(connection.answer().await.unwrap().status, 100);
        connection.send("ten").await;
        let answer = connection.answer().await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, replayed));
    }
    for (name, sent, expected) in [
        ("malformed key", head("/pay", lines("\""), LARGE, ""), Closed(400, "key-malformed")),
        ("too large", head("/pay", lines("l"), LARGE, ""), Closed(413, "body-too-large")),
    ] {
        world.check(&row(name, sent, expected)).await;
    }
    assert_eq!(world.upstream.total(), 1);
    assert!(!world.upstream.heads()[0].contains("expect"), "the gateway has answered it");
}

/// A request that is not protected is passed on while it comes, so it may break off in mid-sending.
#[tokio::test]
async fn a_broken_body_that_nothing_protects_is_told_as_its_senders_fault() {
    let some = format!("400\r\n{}\r\n", "x".repeat(1 << 10));
    for upstream_speaks in ["http1", "http2"] {
        let upstream = Upstream::start(Behaviour::default()).await;
        let config = format!("[upstream]\nprotocol = \"{upstream_speaks}\"\n");
        let gateway = Setup::new(upstream.address).config(&config).start().await;
        for (name, framing, body) in [
            ("no size", CHUNKED, "zz\r\nten\r\n0\r\n\r\n".to_owned()),
            ("longer than its size", CHUNKED, "2\r\nten\r\n0\r\n\r\n".to_owned()),
            ("no size after some", CHUNKED, format!("{some}zz\r\n")),
            ("no end", CHUNKED, some.clone()),
            ("shorter than announced", "content-length: 9\r\n", "ten".to_owned()),
            ("much shorter", LARGE, "x".repeat(100 << 10)),
        ] {
            let mut connection = Connection::open(gateway.address).await;
            connection.send(head("/free", "", framing, body)).await;
            connection.finish().await;
            let answer = connection.answer().await;
            let said = answer.as_ref().map(|answer| (answer.status, answer.code()));
            let expected = Some((400, Some("body-incomplete".to_owned())));
            assert_eq!(said, expected, "{name}, {upstream_speaks}");
            assert!(connection.ends().await, "{name}, {upstream_speaks}");
        }
        assert_eq!(upstream.total(), 0, "{upstream_speaks}");
        let whole = head("/free", "", CHUNKED, format!("{some}0\r\n\r\n"));
        let answer = crate::world::ask(gateway.address, whole).await.unwrap();
        assert_eq!(answer.status, 201, "{upstream_speaks}");
    }
}

#[tokio::test]
async fn a_body_that_nothing_protects_and_that_stalls_is_told_so() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[limits]\nbody_timeout = \"200ms\"\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    let mut connection = Connection::open(gateway.address).await;
    connection.send(head("/free", "", "content-length: 9\r\n", "ten")).await;
    let answer = connection.answer().await.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (408, Some("body-too-slow")));
    assert!(connection.ends().await);
    assert_eq!(upstream.total(), 0);
}
