//! A provider that misbehaves in every way it knows.

use axum::http::StatusCode;

use crate::world::{Effects, World};

/// Pays while the provider does this with the first requests for the charge.
async fn check(moods: &[&str]) {
    let world = World::new().await;
    world.provider_will(moods).await;
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_charges_once() {
    check(&["hang", "hang"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_before_the_charge_charges_once() {
    check(&["fail-before", "fail-before"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_fails_after_the_charge_charges_once() {
    check(&["fail-after", "fail-after"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_answers_twice_and_late_charges_once() {
    check(&["late", "late"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_loses_its_answers_charges_once() {
    check(&["lose", "lose"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_does_all_of_it_in_turn_charges_once() {
    check(&["hang", "fail-before", "lose", "late", "fail-after"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_outlasts_our_patience_charges_once_later() {
    check(&["fail-before"; 7]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_whose_answer_was_lost_is_found_by_the_process_that_goes_on() {
    let world = World::new().await;
    world.provider_will(&["late"]).await;
    let service = world.service();
    let address = service.address.clone();
    // A busy machine may lose its short lease, and tell the client to ask again.
    let asking = async {
        loop {
            let answer = world.shop.pay(&address, "order-1").await;
            if !answer.as_ref().is_ok_and(|answer| answer.status == StatusCode::CONFLICT) {
                break answer;
            }
        }
    };
    let killing = async {
        while world.effects("order-1").await.charges == 0 {
            tokio::task::yield_now().await;
        }
        service.kill();
    };
    let (answer, ()) = tokio::join!(asking, killing);
    assert!(answer.is_err(), "{answer:?}");
    world.retry_and_check("order-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_charge_is_an_answer_and_is_replayed() {
    let world = World::new().await;
    world.provider_will(&["decline"]).await;
    let service = world.service();
    let first = world.shop.insist(&service.address, "order-1").await.unwrap();
    let again = world.shop.insist(&service.address, "order-1").await.unwrap();
    assert_eq!((first.status, &first.body), (StatusCode::PAYMENT_REQUIRED, &again.body));
    assert!(again.replayed);
    assert_eq!(world.effects("order-1").await, Effects::NONE);
}
