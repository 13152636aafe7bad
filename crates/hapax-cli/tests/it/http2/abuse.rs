//! Frames that break the rules.

use super::frames::{BAD_REQUEST, END_STREAM, Fate, Frames, cancel, data, head};
use crate::{
    wire::{ROUTES, World, key, request},
    world::until,
};

const PROTOCOL_ERROR: u32 = 1;

const POST: (&str, &str) = (":method", "POST");
const PATH: (&str, &str) = (":path", "/pay");
const SCHEME: (&str, &str) = (":scheme", "http");
const HOST: (&str, &str) = (":authority", "gateway");
const ALICE: (&str, &str) = ("authorization", "alice");
const KEY: (&str, &str) = ("idempotency-key", "k");

/// A good head, with one more field at its end.
fn with(field: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    vec![POST, PATH, SCHEME, HOST, ALICE, KEY, field]
}

#[tokio::test]
async fn a_malformed_head_is_an_error_of_the_protocol() {
    let world = World::start(ROUTES).await;
    for (name, fields) in [
        ("upper-case name", with(("X-Upper", "1"))),
        ("upper-case key", vec![POST, PATH, SCHEME, HOST, ALICE, ("Idempotency-Key", "k")]),
        ("no method", vec![PATH, SCHEME, HOST, ALICE, KEY]),
        ("no path", vec![POST, SCHEME, HOST, ALICE, KEY]),
        ("no scheme", vec![POST, PATH, HOST, ALICE, KEY]),
        ("empty path", vec![POST, (":path", ""), SCHEME, HOST, ALICE, KEY]),
        ("two methods", vec![POST, POST, PATH, SCHEME, HOST, ALICE, KEY]),
        ("two paths", vec![POST, PATH, PATH, SCHEME, HOST, ALICE, KEY]),
        ("late pseudo-header", vec![POST, SCHEME, HOST, ALICE, KEY, PATH]),
        ("unknown pseudo-header", vec![POST, PATH, SCHEME, HOST, (":evil", "1"), ALICE, KEY]),
        ("status", vec![POST, PATH, SCHEME, HOST, (":status", "200"), ALICE, KEY]),
        ("connection", with(("connection", "close"))),
        ("transfer-encoding", with(("transfer-encoding", "chunked"))),
        ("upgrade", with(("upgrade", "websocket"))),
        ("te", with(("te", "gzip"))),
        ("line in a value", with(("x", "a\r\nidempotency-key: l"))),
        ("NUL in a value", with(("x", "a\0b"))),
        ("line in a name", with(("x\r\ny", "a"))),
        ("space in a name", with(("x y", "a"))),
        ("unusable length", with(("content-length", "+3"))),
        ("length of a request without body", with(("content-length", "3"))),
    ] {
        let mut frames = Frames::open(world.gateway.address).await;
        frames.send(&head(1, END_STREAM, &fields)).await;
        let fate = frames.fate(1).await;
        let refused = [Fate::Reset(PROTOCOL_ERROR), Fate::GoneAway(PROTOCOL_ERROR)];
        assert!(refused.contains(&fate), "{name}: {fate:?}");
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn a_host_that_contradicts_itself_is_refused() {
    let world = World::start(ROUTES).await;
    for (name, fields) in [
        ("other host", with(("host", "evil"))),
        ("two hosts", [with(("host", "gateway")), vec![("host", "gateway")]].concat()),
        ("no host", vec![POST, PATH, SCHEME, ALICE, KEY]),
    ] {
        let mut frames = Frames::open(world.gateway.address).await;
        frames.send(&head(1, END_STREAM, &fields)).await;
        assert_eq!(frames.fate(1).await, Fate::Answered(BAD_REQUEST), "{name}");
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{name}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_it_says_runs_nothing() {
    let world = World::start(ROUTES).await;
    let announced = with(("content-length", "3"));
    for (name, body) in [
        ("shorter", data(1, END_STREAM, b"te")),
        ("longer", data(1, END_STREAM, b"tens")),
        ("longer in pieces", [data(1, 0, b"ten"), data(1, END_STREAM, b"s")].concat()),
        ("taken back", [data(1, 0, b"te"), cancel(1)].concat()),
    ] {
        let mut frames = Frames::open(world.gateway.address).await;
        frames.send(&[head(1, 0, &announced), body].concat()).await;
        if name == "taken back" {
            // Nothing is said about a stream its client gave up; the next one shows it was read.
            frames.send(&head(3, END_STREAM, &[POST, PATH, SCHEME, HOST, ALICE])).await;
            assert_eq!(frames.fate(3).await, Fate::Answered(BAD_REQUEST), "{name}");
        } else {
            let fate = frames.fate(1).await;
            let refused = [Fate::Reset(PROTOCOL_ERROR), Fate::Answered(BAD_REQUEST)];
            assert!(refused.contains(&fate), "{name}: {fate:?}");
        }
        assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0), "{name}");
    }
    assert_eq!(world.ask(request("/pay", key("k"))).await.status, 201, "the key is free");
}

#[tokio::test]
async fn a_flood_of_requests_taken_back_ends_the_connection_and_leaves_nothing() {
    const STREAMS: u32 = 10_000;
    let world = World::start(ROUTES).await;
    let mut frames = Frames::open(world.gateway.address).await;
    for number in 0..STREAMS {
        let (stream, key) = (2 * number + 1, format!("flood-{number}"));
        let fields = [POST, PATH, SCHEME, HOST, ALICE, ("idempotency-key", &key)];
        frames.send(&[head(stream, END_STREAM, &fields), cancel(stream)].concat()).await;
    }
    let fate = frames.fate(u32::MAX).await;
    assert!(matches!(fate, Fate::GoneAway(_) | Fate::Closed), "{fate:?}");
    until("everything to come to rest", async || {
        world.in_state("pending").await.is_empty() && world.in_state("running").await.is_empty()
    })
    .await;
    let begun = world.upstream.total();
    assert!(begun < 1_000, "{begun} of {STREAMS} were begun");
    assert_eq!(world.in_state("completed").await.len(), begun);
    if let Some(released) = world.in_state("released").await.first() {
        let mut frames = Frames::open(world.gateway.address).await;
        let fields = [POST, PATH, SCHEME, HOST, ALICE, ("idempotency-key", released)];
        frames.send(&head(1, END_STREAM, &fields)).await;
        frames.fate(1).await;
        assert_eq!(world.upstream.total(), begun + 1, "its key is free");
    }
    assert_eq!(world.ask(request("/pay", key("k"))).await.status, 201, "others are served");
}
