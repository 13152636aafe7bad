//! Requests that are refused before anything happens.

use axum::http::{Request, StatusCode};

use crate::world::{Effects, World};

const ORDER: &str = r#"{"order":"order-1","cents":900,"email":"ada@example.com"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_and_nothing_happens() {
    let world = World::new().await;
    let service = world.service();
    let request = || Request::post(format!("{}/payments", service.address));
    let caller = || request().header("authorization", "Bearer shop-1");
    let keyed = || caller().header("idempotency-key", "order-1");
    let free = ORDER.replace("900", "0");
    let (unnamed, split) = (ORDER.replace("order-1", ""), ORDER.replace("order-1", "\\u0000"));
    let refused = [
        (request().header("idempotency-key", "order-1"), ORDER, StatusCode::UNAUTHORIZED),
        (caller(), ORDER, StatusCode::BAD_REQUEST),
        (caller().header("idempotency-key", ""), ORDER, StatusCode::BAD_REQUEST),
        (keyed().header("idempotency-key", "order-2"), ORDER, StatusCode::BAD_REQUEST),
        (keyed(), "paid", StatusCode::UNPROCESSABLE_ENTITY),
        (keyed(), &free, StatusCode::UNPROCESSABLE_ENTITY),
        (keyed(), &unnamed, StatusCode::UNPROCESSABLE_ENTITY),
        (keyed(), &split, StatusCode::UNPROCESSABLE_ENTITY),
    ];
    for (request, body, status) in refused {
        let said = world.shop.send(request, body.to_owned()).await.unwrap();
        assert_eq!(said.status, status, "{said:?}");
    }
    assert_eq!(world.effects("order-1").await, Effects::NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_order_under_a_used_key_is_refused() {
    let world = World::new().await;
    world.retry_and_check("order-1").await;
    let service = world.service();
    let request = Request::post(format!("{}/payments", service.address))
        .header("authorization", "Bearer shop-1")
        .header("idempotency-key", "order-1");
    let said = world.shop.send(request, ORDER.replace("900", "901")).await.unwrap();
    assert_eq!(said.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(world.effects("order-1").await, Effects::ONE);
}
