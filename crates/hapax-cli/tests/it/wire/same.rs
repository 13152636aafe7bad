//! When two requests under one key are the same, and when the second is refused.

use super::{
    Expected::{Closed, Refused},
    ROUTES, World, head, key, request, row,
};

/// A request: where to, of which type, with which body.
type Sent<'a> = (&'a str, &'a str, &'a str);

fn sent(key: &str, (path, kind, body): Sent<'_>) -> Vec<u8> {
    let lines = format!("idempotency-key: {key}\r\ncontent-type: {kind}\r\n");
    head(path, lines, &format!("content-length: {}\r\n", body.len()), body)
}

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";
const FIELDS: &str = "application/x-www-form-urlencoded";
const FORM_1: &str = "multipart/form-data; boundary=one";
const FORM_2: &str = "multipart/form-data; boundary=two";
const PART_1: &str = "--one\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--one--\r\n";
const PART_2: &str = "--two\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nx\r\n--two--\r\n";
const PART_Y: &str = "--one\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\ny\r\n--one--\r\n";

#[tokio::test]
async fn another_request_under_a_used_key_is_refused_and_the_first_answer_stays() {
    let world = World::start(ROUTES).await;
    for (number, (name, first, other)) in [
        ("query", ("/pay?a=1", TEXT, "ten"), ("/pay?a=2", TEXT, "ten")),
        ("no query", ("/pay?a=1", TEXT, "ten"), ("/pay", TEXT, "ten")),
        ("body", ("/pay", TEXT, "ten"), ("/pay", TEXT, "eleven")),
        ("empty body", ("/pay", TEXT, "ten"), ("/pay", TEXT, "")),
        ("type", ("/pay", TEXT, "ten"), ("/pay", JSON, "ten")),
        ("order", ("/raw", JSON, "{\"a\":1,\"b\":2}"), ("/raw", JSON, "{\"b\":2,\"a\":1}")),
        ("boundary", ("/raw", FORM_1, PART_1), ("/raw", FORM_2, PART_2)),
        ("charset", ("/raw", JSON, "1"), ("/raw", "application/json; charset=utf-8", "1")),
        ("value", ("/pay", JSON, "{\"a\":1}"), ("/pay", JSON, "{\"a\":2}")),
        ("part", ("/pay", FORM_1, PART_1), ("/pay", FORM_1, PART_Y)),
        ("value", ("/json", JSON, "{\"a\":1}"), ("/json", JSON, "{\"a\":2}")),
        ("part", ("/form", FORM_1, PART_1), ("/form", FORM_1, PART_Y)),
        ("path in a wide scope", ("/wide/a", TEXT, "ten"), ("/wide/b", TEXT, "ten")),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("k-{number}");
        let answer = world.ask(sent(&key, first)).await;
        assert_eq!((answer.status, answer.is_replay()), (201, false), "{name}");
        world.check(&row(name, sent(&key, other), Refused(422, "key-reused"))).await;
        let again = world.ask(sent(&key, first)).await;
        assert_eq!((&again.body, again.is_replay()), (&answer.body, true), "{name}");
    }
}

#[tokio::test]
async fn another_spelling_of_the_same_content_is_replayed_where_content_is_compared() {
    let world = World::start(ROUTES).await;
    for (name, first, other) in [
        ("json", ("/json", JSON, "{\"a\":1,\"b\":2}"), ("/json", JSON, "{ \"b\":2, \"a\":1 }")),
        ("form", ("/form", FORM_1, PART_1), ("/form", FORM_2, PART_2)),
        ("any json", ("/pay", JSON, "{\"a\":1,\"b\":2}"), ("/pay", JSON, "{\"b\":2, \"a\":1}")),
        ("charset", ("/pay", JSON, "1"), ("/pay", "application/json; charset=utf-8", "1")),
        ("any form", ("/pay", FORM_1, PART_1), ("/pay", FORM_2, PART_2)),
        ("fields", ("/pay", FIELDS, "a=%2f&b=+"), ("/pay", FIELDS, "a=%2F&b=%20")),
    ] {
        let answer = world.ask(sent(name, first)).await;
        let again = world.ask(sent(name, other)).await;
        assert_eq!((&again.body, again.is_replay()), (&answer.body, true), "{name}");
    }
}

#[tokio::test]
async fn the_same_key_on_another_endpoint_is_another_operation() {
    let world = World::start("").await;
    for (number, line) in ["POST /a", "POST /b", "PUT /a", "DELETE /a"].iter().enumerate() {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: a\r\nauthorization: alice\r\nidempotency-key: k\r\n\r\n"
        );
        assert!(!world.ask(&request).await.is_replay(), "{line}");
        assert!(world.ask(&request).await.is_replay(), "{line}");
        assert_eq!(world.upstream.total(), number + 1, "{line}");
    }
}

#[tokio::test]
async fn a_body_without_a_single_meaning_is_refused_where_content_is_compared() {
    let world = World::start(ROUTES).await;
    let deep = "[".repeat(10_000);
    for (name, body) in [
        ("member twice", "{\"a\":1,\"a\":2}"),
        ("NaN", "NaN"),
        ("number out of range", "1e400"),
        ("half a surrogate", "\"\\ud800\""),
        ("depth of 10,000", &deep),
        ("cut off", "{"),
    ] {
        let sent = sent("k", ("/json", JSON, body));
        world.check(&row(name, sent, Refused(400, "body-not-canonical"))).await;
    }
    let form = sent("k", ("/form", FORM_1, "no parts"));
    world.check(&row("no parts", form, Refused(400, "body-not-canonical"))).await;
}

#[tokio::test]
async fn an_encoded_body_is_passed_on_as_it_is_and_never_unpacked() {
    let world = World::start(ROUTES).await;
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x2b\x49\xcd\x03\0\x73\x0f\x70\xb8\x03\0\0\0";
    let framing = format!("content-length: {}\r\n", packed.len());
    for coding in ["gzip", "br", "made-up"] {
        let lines = format!("idempotency-key: {coding}\r\ncontent-encoding: {coding}\r\n");
        let first = world.ask(head("/pay", &lines, &framing, packed)).await;
        assert!(first.text().contains("\u{8}\0\0"), "{coding}: {first:?}");
        let plain = row("unpacked", request("/pay", key(coding)), Refused(422, "key-reused"));
        world.check(&plain).await;
        let lines = format!("{lines}content-type: application/json\r\n");
        let json = head("/json", lines, &framing, packed);
        world.check(&row("packed JSON", json, Refused(415, "body-encoded"))).await;
    }
}

#[tokio::test]
async fn a_refusal_that_does_not_read_its_body_closes_the_connection() {
    let world = World::start(ROUTES).await;
    let large = 1 << 20;
    let sent = head("/pay", "", &format!("content-length: {large}\r\n"), "x".repeat(200 << 10));
    world.check(&row("no key, large body", sent, Closed(400, "key-missing"))).await;
}
