//! The points at which a payment can fail, and what a retry finds there.

use crate::world::{Effects, World};

#[tokio::test(flavor = "multi_thread")]
async fn before_the_provider() {
    let world = World::new().await;
    world.pay_and_die_at("charge.asking", "order-1").await;
    assert_eq!(world.effects("order-1").await, Effects::NONE);
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_provider_and_us() {
    let world = World::new().await;
    world.pay_and_die_at("charge.answered", "order-1").await;
    assert_eq!(world.effects("order-1").await, Effects { charges: 1, ..Effects::NONE });
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_our_record() {
    let world = World::new().await;
    world.pay_and_die_at("record.committed", "order-1").await;
    let recorded = Effects { charges: 1, payments: 1, events: 1, ..Effects::NONE };
    assert_eq!(world.effects("order-1").await, recorded);
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_the_mail_server_and_us() {
    let world = World::new().await;
    world.pay_and_die_at("mail.sent", "order-1").await;
    assert_eq!(world.effects("order-1").await, Effects { mails_logged: 0, ..Effects::ONE });
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_whole_request_retried() {
    let world = World::new().await;
    world.pay_and_die_at("answering", "order-1").await;
    assert_eq!(world.effects("order-1").await, Effects::ONE);
    let first = world.retry_and_check("order-1").await;
    let second = world.retry_and_check("order-1").await;
    assert_eq!(first, second);
    assert!(first.replayed, "it was finished, and only the answer was lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_abandoned_is_finished_without_its_client() {
    let world = World::new().await;
    world.pay_and_die_at("charge.answered", "order-1").await;
    let _service = world.service();
    world.wait_until_done("order-1").await;
}
