//! Events that are looked after.

use std::time::Duration;

use axum::http::{Request, StatusCode};
use hapax_core::{
    Event, Owner,
    outbox::{Destination, Hold, Lane, OutboxLog, Park, Parking, RelayLease, Start, Topics},
};
use serde_json::{Value, json};

use super::world::{READ_TOKEN, World};

impl World {
    /// Emits three events, and parks the first two for `billing`, the second behind the first.
    pub(crate) async fn park_two(&self) {
        let event = |topic, key| Event::new(topic, key, "{\"euro\": 5}").unwrap();
        let events = [("orders.paid", "4711"), ("orders.paid", "4711"), ("orders.sent", "4712")];
        self.outbox.emit(&events.map(|(topic, key)| event(topic, key)));
        let topics = Topics::parse(["orders.*"]).unwrap();
        let destination = Destination::new("billing", topics).unwrap();
        self.outbox.register(destination, Start::Beginning).await.unwrap();
        let (owner, span) = (Owner(1), Duration::from_secs(60));
        let lease = RelayLease { destination: "billing".to_owned(), owner, span };
        let leases = self.outbox.lease(lease).await.unwrap().unwrap();
        let lane = Lane::of("orders.paid", "4711");
        let fence = leases.lanes.iter().find(|leased| leased.lane == lane).unwrap().fence;
        let events = vec![
            Parking::new(1, Hold::Tail, 8, "422 Unprocessable Content"),
            Parking::new(2, Hold::Follow, 0, "behind position 1"),
        ];
        let park = Park { destination: "billing".to_owned(), lane, fence, events };
        assert!(self.outbox.park(park).await.unwrap());
    }

    async fn outbox(&self, path: &str) -> Value {
        let answer = self.look(&format!("/v1/outbox{path}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        answer.json()
    }
}

fn order(rest: &Value) -> Value {
    let mut order = json!({ "who": "ada", "why": "billing is mended" });
    order.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    order
}

#[tokio::test(start_paused = true)]
async fn destinations_are_shown_with_how_far_behind_they_are() {
    let world = World::new();
    assert_eq!(world.outbox("").await, json!({ "destinations": [] }));
    world.park_two().await;
    let listed = &world.outbox("").await["destinations"][0];
    let expected = [("name", json!("billing")), ("paused", json!(false)), ("relays", json!(1))];
    for (member, value) in expected.into_iter().chain([("parked", json!(2)), ("behind", json!(3))])
    {
        assert_eq!(listed[member], value, "{member} of {listed}");
    }
    let shown = world.outbox("/billing").await;
    assert_eq!((&shown["destination"], &shown["parked"]), (&json!("billing"), &json!(2)));
    assert!(shown["lanes"].as_array().unwrap().iter().all(|lane| lane["owner"].is_string()));
}

#[tokio::test(start_paused = true)]
async fn parked_events_come_by_pages_with_their_payload_on_demand() {
    let world = World::new();
    world.park_two().await;
    let page = world.outbox("/billing/parked?limit=1").await;
    assert_eq!((&page["parked"][0]["position"], &page["next"]), (&json!(1), &json!(1)));
    assert_eq!(page["parked"][0].get("payload"), None);
    let page = world.outbox("/billing/parked?limit=1&after=1&payload=true").await;
    assert_eq!((&page["parked"][0]["position"], &page["next"]), (&json!(2), &Value::Null));
    assert_eq!(page["parked"][0]["payload"], "{\"euro\": 5}");
    let of_key = world.outbox("/billing/parked?topic=orders.sent&key=4712").await;
    assert_eq!(of_key["parked"], json!([]));
    for bad in ["limit=0", "limit=1001", "topic=orders.paid", "key=1", "after=x", "other=1"] {
        let answer = world.look(&format!("/v1/outbox/billing/parked?{bad}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_is_foreseen_with_what_it_must_wait_for_and_then_made() {
    let world = World::new();
    world.park_two().await;
    let path = "/v1/outbox/billing/replay";
    let foreseen = world.order(path, &order(&json!({ "position": 2, "dry_run": true }))).await;
    let foreseen = foreseen.json();
    assert_eq!(foreseen["would"], "2 events would be sent again, in this order");
    let positions: Vec<_> =
        foreseen["events"].as_array().unwrap().iter().map(|one| one["position"].clone()).collect();
    assert_eq!(positions, [1, 2]);
    let replaying = async || {
        let listed = world.outbox("/billing/parked").await;
        let parked = listed["parked"].as_array().unwrap().iter();
        parked.map(|one| one["replaying"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(replaying().await, [false, false], "a dry run changes nothing");
    let done = world.order(path, &order(&json!({ "position": 1 }))).await.json();
    assert_eq!(done, json!({ "destination": "billing", "done": "replaying", "events": 1 }));
    assert_eq!(replaying().await, [true, false]);
    let done = world.order(path, &order(&json!({ "all": true }))).await.json();
    assert_eq!(done["events"], 1);
    assert_eq!(replaying().await, [true, true]);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_says_not_exactly_what_is_meant_is_refused() {
    let world = World::new();
    world.park_two().await;
    let unclear = StatusCode::UNPROCESSABLE_ENTITY;
    for (document, status, code) in [
        (order(&json!({})), unclear, "invalid"),
        (order(&json!({ "position": 1, "all": true })), unclear, "invalid"),
        (order(&json!({ "topic": "orders.paid" })), unclear, "invalid"),
        (order(&json!({ "all": true, "more": 1 })), unclear, "invalid"),
        (json!({ "all": true, "who": "ada" }), unclear, "invalid"),
        (json!({ "all": true, "who": "ada", "why": "" }), unclear, "invalid"),
        (order(&json!({ "position": 3 })), StatusCode::NOT_FOUND, "nothing-parked"),
    ] {
        let answer = world.order("/v1/outbox/billing/replay", &document).await;
        assert_eq!((answer.status, &answer.json()["code"]), (status, &json!(code)), "{document}");
    }
    for what in ["replay", "pause", "resume"] {
        let document =
            if what == "replay" { order(&json!({ "all": true })) } else { order(&json!({})) };
        let answer = world.order(&format!("/v1/outbox/nowhere/{what}"), &document).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{what}");
        assert_eq!(answer.json()["code"], "unknown-destination", "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn sending_is_paused_and_resumed_by_those_who_may() {
    let world = World::new();
    world.park_two().await;
    for (what, done, paused) in [("pause", "paused", true), ("resume", "resumed", false)] {
        let path = format!("/v1/outbox/billing/{what}");
        let reader = Request::post(&path);
        let reader = reader.header("authorization", format!("Bearer {READ_TOKEN}"));
        let refused = world.send(reader.body(order(&json!({})).to_string().into()).unwrap()).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
        assert_eq!(world.outbox("/billing").await["paused"], !paused);
        assert_eq!(world.order(&path, &order(&json!({}))).await.json()["done"], done);
        assert_eq!(world.outbox("/billing").await["paused"], paused);
    }
}
