//! Everybody at once.

use crate::world::{Effects, World};

#[tokio::test(flavor = "multi_thread")]
async fn two_retries_and_two_completers_at_once_pay_once() {
    let world = World::new().await;
    for (number, place) in ["charge.answered", "record.entered", "mail.sent"].iter().enumerate() {
        let order = format!("order-{number}");
        world.pay_and_die_at(place, &order).await;
        let (one, other) = (world.service(), world.service());
        let (first, second) = tokio::join!(
            world.shop.insist(&one.address, &order),
            world.shop.insist(&other.address, &order),
        );
        assert_eq!(first.unwrap().body, second.unwrap().body, "{place}");
        assert_eq!(world.effects(&order).await, Effects::ONE, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_first_requests_at_once_pay_once() {
    let world = World::new().await;
    let (one, other) = (world.service(), world.service());
    let clients: Vec<_> = [&one, &other]
        .into_iter()
        .cycle()
        .take(12)
        .map(|service| {
            let (shop, address) = (world.shop.clone(), service.address.clone());
            tokio::spawn(async move { shop.insist(&address, "order-1").await })
        })
        .collect();
    let mut bodies = Vec::new();
    for client in clients {
        bodies.push(client.await.unwrap().unwrap().body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    assert_eq!(world.effects("order-1").await, Effects::ONE);
}
