//! Requests that are taken back after they were begun.

use super::{
    fields,
    frames::{END_STREAM, Fate, Frames, cancel, head},
    stream,
};
use crate::{
    wire::World,
    world::{post, until},
};

const STREAMS: u32 = 16;
const FEW: &str = "[limits]\nstreams = 16\n";

/// Opens a stream, waits until it has reached the upstream, and takes it back.
async fn begin_and_take_back(frames: &mut Frames, world: &World, number: u32, path: &str) {
    let key = format!("k-{number}");
    let keyed = [("idempotency-key", key.as_str())];
    let fields = fields(path, if path == "/pay" { &keyed } else { &[] });
    let seen = world.upstream.heads().len();
    frames.send(&head(stream(number), END_STREAM, &fields)).await;
    until("it to reach the upstream", async || world.upstream.heads().len() > seen).await;
    frames.send(&cancel(stream(number))).await;
}

#[tokio::test]
async fn executions_whose_requests_were_taken_back_count_on_their_connection() {
    let world = World::start(FEW).await;
    world.upstream.silence(true);
    let mut frames = Frames::open(world.gateway.address).await;
    for number in 0..STREAMS {
        begin_and_take_back(&mut frames, &world, number, "/pay").await;
    }
    for number in STREAMS..2 * STREAMS {
        let key = format!("k-{number}");
        let fields = fields("/pay", &[("idempotency-key", &key)]);
        frames.send(&head(stream(number), END_STREAM, &fields)).await;
        let fate = frames.fate(stream(number)).await;
        assert!(matches!(fate, Fate::Answered(_)), "{number}: {fate:?}");
    }
    let begun = world.upstream.heads().len();
    assert_eq!(begun, usize::try_from(STREAMS).unwrap(), "the others were refused");
    world.upstream.silence(false);
    assert_eq!(world.ask(post("/pay", "other", "ten")).await.status, 201);
    until("all to be settled", async || world.in_state("running").await.is_empty()).await;
    let number = 2 * STREAMS;
    begin_and_take_back(&mut frames, &world, number, "/pay").await;
}

#[tokio::test]
async fn a_client_that_takes_back_what_it_asks_for_is_told_to_go() {
    let world = World::start(FEW).await;
    world.upstream.silence(true);
    let mut frames = Frames::open(world.gateway.address).await;
    for number in 0..=STREAMS {
        begin_and_take_back(&mut frames, &world, number, "/unprotected").await;
    }
    assert_eq!(frames.fate(u32::MAX).await, Fate::GoneAway(0));
    world.upstream.silence(false);
    assert_eq!(world.ask(post("/pay", "other", "ten")).await.status, 201);
}
