//! Messages whose length can be read in two ways, or in none.

use super::{
    Expected::{Closed, Cut},
    ROUTES, Row, World, head, key, row,
};

#[tokio::test]
async fn a_length_that_is_not_one_number_is_refused_and_the_connection_closed() {
    let world = World::start(ROUTES).await;
    let framed = |name, framing| row(name, head("/pay", key("k"), framing, "ten"), Cut(400));
    for row in [
        framed("two lengths", "content-length: 3\r\ncontent-length: 4\r\n"),
        framed("list of lengths", "content-length: 3, 4\r\n"),
        framed("plus", "content-length: +3\r\n"),
        framed("minus", "content-length: -3\r\n"),
        framed("hexadecimal", "content-length: 0x3\r\n"),
        framed("text", "content-length: 3x\r\n"),
        framed("too many digits", "content-length: 99999999999999999999\r\n"),
        framed("unknown coding", "transfer-encoding: xchunked\r\n"),
        framed("coding after chunked", "transfer-encoding: chunked, identity\r\n"),
        framed("coding on two lines", "transfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n"),
        framed("length before unknown coding", "content-length: 3\r\ntransfer-encoding: x\r\n"),
    ] {
        world.check(&row).await;
    }
    let old = b"POST /pay HTTP/1.0\r\nauthorization: alice\r\nidempotency-key: k\r\n\
                transfer-encoding: chunked\r\n\r\n3\r\nten\r\n0\r\n\r\n";
    world.check(&row("chunks of HTTP/1.0", *old, Cut(400))).await;
}

fn chunked(name: &'static str, body: &str) -> Row {
    let sent = head("/pay", key("k"), "transfer-encoding: chunked\r\n", body);
    row(name, sent, Closed(400, "body-incomplete"))
}

#[tokio::test]
async fn a_chunk_whose_size_is_unclear_is_refused_and_the_connection_closed() {
    let world = World::start(ROUTES).await;
    for row in [
        chunked("0x", "0x3\r\nten\r\n0\r\n\r\n"),
        chunked("plus", "+3\r\nten\r\n0\r\n\r\n"),
        chunked("minus", "-3\r\nten\r\n0\r\n\r\n"),
        chunked("17 digits", "10000000000000003\r\nten\r\n0\r\n\r\n"),
        chunked("LF alone", "3\nten\n0\n\n"),
        chunked("no size", "\r\nten\r\n0\r\n\r\n"),
        chunked("longer than its size", "2\r\nten\r\n0\r\n\r\n"),
        chunked("extension over lines", "3;a=\nb\r\nten\r\n0\r\n\r\n"),
    ] {
        world.check(&row).await;
    }
}

/// The coded bytes would go on without the header that announces them.
#[tokio::test]
async fn a_body_coded_for_its_way_is_refused_and_never_passed_on() {
    let world = World::start(ROUTES).await;
    let (unknown, repeated) =
        (Closed(501, "transfer-coding-unknown"), Closed(400, "transfer-coding-repeated"));
    for (name, framing, expected) in [
        ("gzip in chunks", "transfer-encoding: gzip, chunked\r\n", unknown),
        ("identity in chunks", "transfer-encoding: identity, chunked\r\n", unknown),
        ("made-up in chunks", "transfer-encoding: made-up;q=1,chunked\r\n", unknown),
        ("on two lines", "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", unknown),
        ("beside a length", "content-length: 3\r\ntransfer-encoding: gzip, chunked\r\n", unknown),
        ("twice in chunks", "transfer-encoding: chunked, Chunked\r\n", repeated),
        (
            "twice, on two lines",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            repeated,
        ),
        ("in chunks around gzip", "transfer-encoding: chunked, gzip, chunked\r\n", unknown),
    ] {
        for (path, lines) in [("/pay", key("k")), ("/free", Vec::new())] {
            let sent = head(path, lines, framing, "3\r\nten\r\n0\r\n\r\n");
            world.check(&row(name, sent, expected)).await;
        }
    }
    let empty_parts =
        head("/free", "", "transfer-encoding: , chunked\r\n", "3\r\nten\r\n0\r\n\r\n");
    assert_eq!(world.ask(empty_parts).await.text(), "receipt 1 for ten");
}

/// RFC 9112 6.3: the coding counts, and the length must not be passed on.
#[tokio::test]
async fn a_length_beside_chunks_is_dropped() {
    let world = World::start(ROUTES).await;
    for (name, framing) in [
        ("length first", "content-length: 1\r\ntransfer-encoding: chunked\r\n"),
        ("length last", "transfer-encoding: chunked\r\ncontent-length: 1\r\n"),
    ] {
        let sent = head("/pay", key(super::fresh()), framing, "3\r\nten\r\n0\r\n\r\n");
        let answer = world.ask(sent).await;
        assert!(answer.status == 201 && answer.text().ends_with(" for ten"), "{name}: {answer:?}");
    }
    let passed = world.upstream.heads();
    assert!(passed.iter().all(|head| !head.contains("\"content-length\": \"1\"")), "{passed:?}");
}
