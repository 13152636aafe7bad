//! `drain_delay`: not ready first, and serving on.

use super::readiness;
use crate::world::{Behaviour, Connection, Setup, Upstream, ask, post, until};

#[tokio::test]
async fn a_gateway_that_was_told_to_stop_is_not_ready_and_serves_on() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).config("drain_delay = \"3s\"\n").start().await;
    let mut kept = Connection::open(gateway.address).await;
    gateway.signal("TERM");
    until("it not to be ready", async || {
        readiness(&gateway).await.is_some_and(|answer| answer.status == 503)
    })
    .await;
    let fresh = ask(gateway.address, post("/pay", "fresh", "ten")).await.unwrap();
    assert_eq!(fresh.status, 201, "whoever does not know yet is served");
    kept.send(post("/pay", "kept", "ten")).await;
    let answer = kept.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (201, None));
    assert!(gateway.ended().await, "{}", gateway.log());
    assert!(ask(gateway.address, post("/pay", "late", "ten")).await.is_none());
    assert_eq!(upstream.total(), 2);
}

#[tokio::test]
async fn a_second_signal_ends_the_wait() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).config("drain_delay = \"1h\"\n").start().await;
    gateway.signal("TERM");
    until("it not to be ready", async || {
        readiness(&gateway).await.is_some_and(|answer| answer.status == 503)
    })
    .await;
    gateway.signal("TERM");
    assert!(!gateway.ended().await, "{}", gateway.log());
    assert!(gateway.log().contains("stopped at once"), "{}", gateway.log());
}
