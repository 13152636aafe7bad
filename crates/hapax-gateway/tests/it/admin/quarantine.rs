use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use hapax_engine::{BeginError, operator::Operator};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{Answer, READ_TOKEN, World, ask};

/// Longer than it takes a process to notice.
const NOTICED: Duration = Duration::from_secs(5);

async fn lift(world: &World, since: &Value, dry_run: bool) -> Answer {
    let why = "compared with the bank until 12:04";
    let order = json!({ "since": since, "who": "ada", "why": why, "dry_run": dry_run });
    world.order("/v1/quarantine/lift", &order).await
}

async fn quarantined() -> (World, Value) {
    let world = World::new();
    world.pay("k").await;
    Operator::new(world.store.clone()).begin_quarantine().await.unwrap();
    sleep(NOTICED).await;
    let told = world.look("/v1/overview").await.json()["now"]["quarantine"].clone();
    (world, told)
}

#[tokio::test(start_paused = true)]
async fn a_quarantine_is_told_and_only_the_one_that_was_seen_is_lifted() {
    let (world, told) = quarantined().await;
    assert_eq!(
        (&told["cause"], &told["because"]),
        (&json!("declared"), &json!("somebody said so"))
    );
    let refused = world.engine.begin(&ask("new")).await;
    assert!(matches!(refused, Err(BeginError::Quarantined)), "{refused:?}");
    let another = lift(&world, &json!("2027-01-15T07:00:00.000000Z"), false).await;
    assert_eq!(
        (another.status, &another.json()["code"]),
        (StatusCode::CONFLICT, &json!("changed"))
    );
    let foreseen = lift(&world, &told["since"], true).await;
    assert_eq!(foreseen.status, StatusCode::OK, "{}", foreseen.text);
    assert!(foreseen.text.contains("would be run again"), "{}", foreseen.text);
    assert_eq!(world.look("/v1/quarantine").await.json()["quarantine"], told, "nothing is changed");
    let lifted = lift(&world, &told["since"], false).await;
    assert_eq!(lifted.json(), json!({ "done": "lifted" }), "{}", lifted.text);
    sleep(NOTICED).await;
    world.pay("new").await;
    let past = world.look("/v1/quarantine").await.json();
    assert_eq!((&past["quarantine"], &past["lifted"]["who"]), (&Value::Null, &json!("ada")));
    assert_eq!(past["lifted"]["why"], "compared with the bank until 12:04");
    assert_eq!(past["processes"].as_array().unwrap().len(), 1);
    assert_eq!(world.look("/v1/overview").await.json()["now"]["quarantine"], Value::Null);
    let over = lift(&world, &told["since"], false).await;
    assert_eq!(over.json()["code"], "not-quarantined");
}

#[tokio::test(start_paused = true)]
async fn a_quarantine_is_not_lifted_without_a_reason_nor_by_whoever_may_only_look() {
    let (world, told) = quarantined().await;
    let order = json!({ "since": told["since"], "who": "ada", "why": " " });
    let blank = world.order("/v1/quarantine/lift", &order).await;
    assert_eq!(blank.json()["code"], "invalid");
    let by_reader = Request::post("/v1/quarantine/lift")
        .header("authorization", format!("Bearer {READ_TOKEN}"))
        .body(Body::from(order.to_string()))
        .unwrap();
    assert_eq!(world.send(by_reader).await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.look("/v1/quarantine").await.json()["quarantine"], told);
    world.store.be_away();
    assert_eq!(lift(&world, &told["since"], true).await.json()["code"], "store-unavailable");
}
