use axum::http::StatusCode;
use hapax_engine::{Admission, Settled};
use serde_json::{Value, json};

use super::world::{Answer, World, ask, id, paid};

async fn release(world: &World, key: &str, document: &Value) -> Answer {
    world.order(&format!("/v1/operations/{}/release", id(key)), document).await
}

async fn resolve(world: &World, key: &str, document: &Value) -> Answer {
    world.order(&format!("/v1/operations/{}/resolve", id(key)), document).await
}

async fn notes(world: &World, key: &str) -> Vec<(String, String, String)> {
    let document = world.look(&format!("/v1/operations/{}", id(key))).await.json();
    let text = |note: &Value, field: &str| note[field].as_str().unwrap().to_owned();
    let notes = document["notes"].as_array().unwrap().iter();
    notes.map(|note| (text(note, "deed"), text(note, "phase"), text(note, "who"))).collect()
}

fn note(deed: &str, phase: &str) -> (String, String, String) {
    (deed.to_owned(), phase.to_owned(), "ada".to_owned())
}

fn order(fence: i64) -> Value {
    json!({ "fence": fence, "who": "ada", "why": "the bank says it never arrived" })
}

fn with(mut document: Value, more: &Value) -> Value {
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

/// An order that is carried out though what was sent may be at work.
fn at_once() -> Value {
    with(order(1), &json!({ "even_if_running": true }))
}

fn check_refused(answer: &Answer, code: &str) {
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", answer.text);
    assert_eq!(answer.json()["code"], code);
}

#[tokio::test(start_paused = true)]
async fn a_released_key_runs_again_and_the_release_is_noted_before_and_after() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    check_refused(&release(&world, "k", &order(1)).await, "at-work");
    let answer = release(&world, "k", &at_once()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let document = answer.json();
    assert_eq!((&document["state"], &document["noted"]), (&json!("released"), &json!(true)));
    assert_eq!(notes(&world, "k").await, [note("release", "intended"), note("release", "done")]);
    assert_eq!(world.begin("k").await.attempt().fence.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_finished_key_is_not_released() {
    let world = World::new();
    world.pay("k").await;
    check_refused(&release(&world, "k", &order(1)).await, "finished");
    let Admission::Replay(_) = world.engine.begin(&ask("k")).await.unwrap() else {
        panic!("it is still answered from its outcome")
    };
    assert_eq!(notes(&world, "k").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_running_key_is_released_only_on_purpose_and_its_old_owner_then_loses() {
    let world = World::new();
    let old = world.begin("k").await;
    check_refused(&release(&world, "k", &order(1)).await, "running");
    let on_purpose = with(order(1), &json!({ "even_if_running": true }));
    assert_eq!(release(&world, "k", &on_purpose).await.status, StatusCode::OK);
    let settled = old.settle(paid()).await.unwrap();
    assert!(matches!(settled, Settled::Superseded(Some(_))), "{settled:?}");
    let new = world.begin("k").await;
    assert_eq!(new.attempt().fence.get(), 2);
    assert!(matches!(new.settle(paid()).await.unwrap(), Settled::Done(_)));
}

#[tokio::test(start_paused = true)]
async fn an_order_for_another_attempt_changes_nothing() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    assert_eq!(release(&world, "k", &at_once()).await.status, StatusCode::OK);
    world.leave_in_doubt("k").await;
    check_refused(&release(&world, "k", &order(1)).await, "changed");
    let shown = world.look(&format!("/v1/operations/{}", id("k"))).await.json();
    assert_eq!(
        (&shown["record"]["state"], &shown["record"]["fence"]),
        (&json!("in_doubt"), &json!(2))
    );
    assert_eq!(shown["record"]["doubt"], "unanswered");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_found_out_is_what_clients_hear() {
    let world = World::new();
    for (key, found, status, body, expected) in [
        ("done", "completed", 200, json!({ "body": "paid" }), &b"paid"[..]),
        ("failed", "failed", 402, json!({ "body_base64": "AP8=" }), b"\x00\xff"),
    ] {
        world.leave_in_doubt(key).await;
        let headers = json!([{ "name": "X-By", "value": "ada" }]);
        let outcome = with(json!({ "status": status, "headers": headers }), &body);
        let document = with(order(1), &json!({ "as": found, "outcome": outcome }));
        let answer = resolve(&world, key, &document).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let Admission::Replay(record) = world.engine.begin(&ask(key)).await.unwrap() else {
            panic!("{key} is answered from what was found out")
        };
        let outcome = record.outcome().unwrap();
        assert_eq!(outcome.status(), status);
        assert_eq!(outcome.headers()[0].name, "x-by");
        assert_eq!(*outcome.body(), hapax_core::Body::Kept(expected.into()));
        let deed = format!("resolve_{found}");
        assert_eq!(notes(&world, key).await, [note(&deed, "intended"), note(&deed, "done")]);
        let path = format!("/v1/operations/{}?body=true", id(key));
        let shown = world.look(&path).await.json();
        for (field, value) in body.as_object().unwrap() {
            assert_eq!(shown["record"]["outcome"][field], *value);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_happened_may_happen() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    let document = with(at_once(), &json!({ "as": "released" }));
    assert_eq!(resolve(&world, "k", &document).await.status, StatusCode::OK);
    assert_eq!(world.begin("k").await.attempt().fence.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_makes_no_sense_is_refused_and_leaves_no_trace() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    let outcome = |more: Value| with(order(1), &json!({ "as": "completed", "outcome": more }));
    for (document, named) in [
        (json!({}), "fence"),
        (json!({ "as": "completed", "fence": 1, "who": "ada" }), "why"),
        (with(order(1), &json!({ "as": "completed" })), "outcome"),
        (with(order(1), &json!({ "as": "released", "outcome": { "status": 200 } })), "outcome"),
        (with(order(1), &json!({ "as": "lost" })), "lost"),
        (with(order(0), &json!({ "as": "released" })), "fence"),
        (with(order(1), &json!({ "as": "released", "who": " " })), "who"),
        (with(order(1), &json!({ "as": "released", "why": "w".repeat(5000) })), "why"),
        (with(order(1), &json!({ "as": "released", "force": true })), "force"),
        (outcome(json!({ "status": 500 })), "status"),
        (outcome(json!({ "status": 99 })), "status"),
        (outcome(json!({ "status": 200, "body": "a", "body_base64": "YQ==" })), "not both"),
        (outcome(json!({ "status": 200, "body_base64": "%" })), "body_base64"),
        (outcome(json!({ "status": 200, "headers": [{ "name": "a b", "value": "" }] })), "a b"),
        (outcome(json!({ "status": 200, "headers": [{ "name": "a", "value": "\n" }] })), "value"),
        (
            outcome(
                json!({ "status": 200, "headers": [{ "name": "Content-Length", "value": "9" }] }),
            ),
            "Content-Length",
        ),
    ] {
        let answer = resolve(&world, "k", &document).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{document}: {}", answer.text);
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{document}: {detail}");
    }
    assert_eq!(notes(&world, "k").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    let dry = with(at_once(), &json!({ "dry_run": true }));
    let found = json!({ "as": "failed", "outcome": { "status": 402 } });
    for (answer, state, words) in [
        (release(&world, "k", &dry).await, "released", "the next request with this key runs"),
        (resolve(&world, "k", &with(dry.clone(), &found)).await, "failed", "the given answer"),
    ] {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let document = answer.json();
        assert_eq!(
            (&document["id"], &document["would_be"]),
            (&json!(id("k").to_string()), &json!(state))
        );
        assert!(document["would"].as_str().unwrap().contains(words), "{document}");
        assert_eq!(document["at"], Value::Null, "nothing was written");
    }
    let shown = world.look(&format!("/v1/operations/{}", id("k"))).await.json();
    assert_eq!(shown["record"]["state"], "in_doubt");
    assert_eq!(notes(&world, "k").await, []);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_as_the_change_would_be() {
    let world = World::new();
    world.pay("paid").await;
    world.leave_in_doubt("lost").await;
    let running = world.begin("busy").await;
    for (key, fence, code) in [
        ("paid", 1, "finished"),
        ("lost", 2, "changed"),
        ("busy", 1, "running"),
        ("never seen", 1, "unknown"),
        ("lost", 0, "invalid"),
    ] {
        let document = with(order(fence), &json!({ "as": "released" }));
        let dry = with(document.clone(), &json!({ "dry_run": true }));
        let foreseen = resolve(&world, key, &dry).await;
        assert_eq!(foreseen.json()["code"], code, "{key}");
        let refused = resolve(&world, key, &document).await;
        assert_eq!((foreseen.status, foreseen.text), (refused.status, refused.text), "{key}");
    }
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn an_operation_nobody_knows_is_not_changed() {
    let world = World::new();
    let answer = release(&world, "never seen", &order(1)).await;
    assert_eq!((answer.status, &answer.json()["code"]), (StatusCode::NOT_FOUND, &json!("unknown")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_changed_while_the_store_is_away() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    world.store.be_away();
    let answer = release(&world, "k", &order(1)).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text.contains("nothing was changed"), "{}", answer.text);
}
