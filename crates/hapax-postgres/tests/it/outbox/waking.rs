//! Hints between processes.

use std::time::Duration;

use hapax_core::outbox::OutboxLog as _;
use tokio::{task::yield_now, time::timeout};

use super::Scene;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_is_heard_in_another_process() {
    let scene = Scene::new().await;
    let other = super::open(&scene.postgres).await;
    // It rings once by itself, when it has begun to listen.
    timeout(PATIENCE, other.rung()).await.unwrap();
    let ringing = async {
        loop {
            scene.outbox.ring();
            yield_now().await;
        }
    };
    let heard = async {
        tokio::select! { () = other.rung() => {}, () = ringing => {} }
    };
    timeout(PATIENCE, heard).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_emits_carries_no_notification() {
    let scene = Scene::new().await;
    let other = super::open(&scene.postgres).await;
    timeout(PATIENCE, other.rung()).await.unwrap();
    let client = scene.postgres.client().await;
    super::run(&client, "SELECT hapax.emit('t', 'k', '{}')").await;
    let queued = "SELECT (pg_notification_queue_usage() * 1000000)::bigint";
    assert_eq!(scene.postgres.number(queued).await, 0);
}
