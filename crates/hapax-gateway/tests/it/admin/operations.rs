use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use bytes::Bytes;
use hapax_core::{AttemptEnd, RunMode, codec::Row};
use hapax_engine::{Admission, BeginRequest};
use hapax_tower::{
    Protection,
    stored_request::{KeptFor, write},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{READ_TOKEN, World, ask, id};

#[tokio::test(start_paused = true)]
async fn doubts_come_oldest_first_over_all_pages() {
    let world = World::new();
    let keys = ["c", "a", "d", "b"];
    for key in keys {
        world.leave_in_doubt(key).await;
        sleep(Duration::from_secs(60)).await;
    }
    let list = "/v1/operations?state=in_doubt&order=oldest&limit=3";
    let first = world.look(list).await.json();
    let second =
        world.look(&format!("{list}&after={}", first["next"].as_str().unwrap())).await.json();
    let seen = all(&first).chain(all(&second)).map(|one| one["key"].as_str().unwrap());
    assert_eq!(seen.collect::<Vec<_>>(), keys);
    assert_eq!((&second["next"], &second["incomplete"]), (&Value::Null, &Value::Null));
    for (query, told) in [
        ("order=oldest", "`oldest` is for what is in doubt"),
        ("order=oldest&state=in_doubt&key=a", "without a key"),
        ("order=youngest", "none of id, oldest"),
        ("order=oldest&state=in_doubt&after=a", "the `next` of the page before"),
    ] {
        let refused = world.look(&format!("/v1/operations?{query}")).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert!(refused.text.contains(told), "{}", refused.text);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_needed_to_decide_is_shown_and_what_was_sent_only_to_whoever_may_decide() {
    let world = World::new();
    let (parts, ()) = Request::post("/payments?card=4711").body(()).unwrap().into_parts();
    let body = Bytes::from_static(b"pay 100");
    let kept = write(&parts, &body, KeptFor::WaitedFor, &Protection::default(), &HeaderMap::new());
    let asked = BeginRequest { mode: RunMode::Run { request: Some(kept) }, ..ask("k") };
    let Admission::Execute(permit) = world.engine.begin(&asked).await.unwrap() else {
        panic!("it is new")
    };
    let steps = permit.steps();
    let receipt = || async { Ok::<_, std::io::Error>("receipt 7".to_owned()) };
    steps.step("charge", |_| receipt()).await.unwrap();
    let owner = format!("{:016x}", permit.attempt().owner.0);
    permit.settle(AttemptEnd::Unanswered).await.unwrap();
    let path = format!("/v1/operations/{}", id("k"));
    let shown = world.look(&path).await.json();
    assert_eq!(shown["record"]["owner"], owner);
    let request = &shown["record"]["request"];
    assert_eq!((&request["method"], &request["path"]), (&json!("POST"), &json!("/payments")));
    assert_eq!((&request["body_bytes"], &request["body"]), (&json!(7), &Value::Null));
    assert_eq!(request["body_sha256"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&shown["steps"][0]["name"], &shown["steps"][0]["result"]),
        (&json!("charge"), &Value::Null)
    );
    let doubted = shown["timeline"][1].clone();
    assert_eq!(doubted["by"], "record");
    let whole = world.look(&format!("{path}?body=true")).await.json();
    assert_eq!(whole["record"]["request"]["body"], "pay 100");
    assert_eq!(whole["steps"][0]["result"], "\"receipt 7\"");
    let looking = Request::get(format!("{path}?body=true"))
        .header("authorization", format!("Bearer {READ_TOKEN}"))
        .body(Body::empty())
        .unwrap();
    let request = world.send(looking).await.json()["record"]["request"].clone();
    assert_eq!(request, json!({ "method": "POST", "path": "/payments", "body_bytes": 7 }));
}

#[tokio::test(start_paused = true)]
async fn operations_are_listed_by_state_tenant_and_scope() {
    let world = World::new();
    world.pay("paid").await;
    world.leave_in_doubt("lost").await;
    let running = world.begin("running").await;
    for (query, expected) in [
        ("", &["paid", "lost", "running"][..]),
        ("?state=in_doubt", &["lost"]),
        ("?state=completed&tenant=acme", &["paid"]),
        ("?tenant=acme&scope=POST%20/payments", &["paid", "lost", "running"]),
        ("?scope=POST+/payments&state=running", &["running"]),
        ("?tenant=other", &[]),
        ("?scope=POST%20/refunds", &[]),
    ] {
        let answer = world.look(&format!("/v1/operations{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let document = answer.json();
        let mut keys: Vec<_> = all(&document).map(|one| one["key"].as_str().unwrap()).collect();
        keys.sort_unstable();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(keys, expected, "{query}");
        assert_eq!(document["next"], Value::Null);
    }
    drop(running);
}

fn all(document: &Value) -> impl Iterator<Item = &Value> {
    document["operations"].as_array().unwrap().iter()
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_without_gaps_or_repeats() {
    let world = World::new();
    for number in 0..7 {
        world.pay(&format!("k{number}")).await;
    }
    let (mut seen, mut path) = (Vec::new(), "/v1/operations?limit=3".to_owned());
    loop {
        let document = world.look(&path).await.json();
        let ids = all(&document).map(|one| one["id"].as_str().unwrap().to_owned());
        seen.extend(ids);
        let Some(next) = document["next"].as_str() else { break };
        path = format!("/v1/operations?limit=3&after={next}");
    }
    let mut expected: Vec<_> = (0..7).map(|number| id(&format!("k{number}")).to_string()).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_shown_by_what_its_client_was_told() {
    let world = World::new();
    world.pay("k").await;
    let told = hapax_core::Salt::from_bytes([7; 32]).signed(id("k"));
    let document = world.look(&format!("/v1/operations/{told}")).await.json();
    assert_eq!(
        (&document["id"], &document["record"]["key"]),
        (&json!(id("k").to_string()), &json!("k"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_shown_with_its_outcome_and_without_its_body() {
    let world = World::new();
    world.pay("k").await;
    let path = format!("/v1/operations/{}", id("k"));
    let document = world.look(&path).await.json();
    let record = &document["record"];
    assert_eq!(record["tenant"], "acme");
    assert_eq!(record["scope"], "POST /payments");
    assert_eq!((&record["state"], &record["fence"]), (&json!("completed"), &json!(1)));
    assert_eq!(
        record["outcome"],
        json!({
            "status": 201,
            "headers": [{ "name": "content-type", "value": "text/plain" }],
            "body_bytes": 4,
            "body_kept": true,
        })
    );
    assert_eq!(record["created_at"], "2027-01-15T08:00:00.000000Z");
    assert!(!document["timeline"].as_array().unwrap().is_empty());
    let with_body = world.look(&format!("{path}?body=true")).await.json();
    assert_eq!(with_body["record"]["outcome"]["body"], "paid");
}

#[tokio::test(start_paused = true)]
async fn an_explanation_says_what_the_next_request_meets() {
    let world = World::new();
    world.leave_in_doubt("lost").await;
    let explain = async |key| {
        let answer = world.look(&format!("/v1/operations/{}/explanation", id(key))).await;
        assert_eq!(answer.status, StatusCode::OK);
        let document = answer.json();
        assert!(!document["because"].as_str().unwrap().is_empty());
        assert!(!document["advice"].as_str().unwrap().is_empty());
        (document["answer"].clone(), document["another"].clone())
    };
    assert_eq!(explain("lost").await, (json!("refused_in_doubt"), json!("refused_mismatch")));
    assert_eq!(explain("never seen").await, (json!("runs"), json!("runs")));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_is_listed_as_such_and_hides_no_other() {
    let world = World::new();
    world.pay("good").await;
    world.pay("bad").await;
    world.store.tamper(id("bad"), |row: &mut Row| row.state = 99);
    let document = world.look("/v1/operations").await.json();
    assert_eq!(all(&document).count(), 2);
    let bad = all(&document).find(|one| one["id"] == id("bad").to_string()).unwrap();
    assert_eq!(bad["unreadable"], "damaged");
    let answer = world.look(&format!("/v1/operations/{}", id("bad"))).await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(answer.json()["code"], "damaged");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_is_refused_with_what_is_wrong() {
    let world = World::new();
    for (path, named) in [
        ("/v1/operations?state=lost", "in_doubt"),
        ("/v1/operations?limit=0", "limit"),
        ("/v1/operations?limit=1001", "limit"),
        ("/v1/operations?limit=many", "limit"),
        ("/v1/operations?after=7", "32 hexadecimal"),
        ("/v1/operations?tenant=", "tenant"),
        ("/v1/operations?stat=completed", "stat"),
        ("/v1/operations/xyz", "32 hexadecimal"),
        ("/v1/operations/+28ec75c9297cba8de8adad59f109962", "32 hexadecimal"),
        ("/v1/operations/1a0fb49b3048c68ad311324a449becfe?body=maybe", "body"),
    ] {
        let answer = world.look(path).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {}", answer.text);
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let document = answer.json();
        assert_eq!(document["code"], "invalid");
        assert!(document["detail"].as_str().unwrap().contains(named), "{path}: {document}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_nobody_knows_is_not_found() {
    let world = World::new();
    let answer = world.look(&format!("/v1/operations/{}", id("never seen"))).await;
    assert_eq!((answer.status, &answer.json()["code"]), (StatusCode::NOT_FOUND, &json!("unknown")));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_told_apart_from_an_empty_one() {
    let world = World::new();
    world.store.be_away();
    for path in ["/v1/operations", &format!("/v1/operations/{}", id("k"))] {
        let answer = world.look(path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.json()["code"], "store-unavailable");
        assert_eq!(answer.header("retry-after"), "1");
    }
}

#[tokio::test(start_paused = true)]
async fn every_address_of_the_openapi_document_is_answered() {
    let world = World::new();
    world.pay("k").await;
    let document = world.look("/v1/openapi.json").await.json();
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 27);
    world.park_two().await;
    for (path, methods) in paths.iter().filter(|(path, _)| *path != "/events") {
        let path = path.replace("{id}", &id("k").to_string()).replace("{destination}", "billing");
        let path = path.replace("{consumer}", "mailer").replace("{message}", "m-1");
        let path = format!("/v1{path}");
        for method in methods.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            let answer = match method.as_str() {
                "get" => world.look(&path).await,
                "post" => world.order(&path, &json!({})).await,
                other => panic!("nobody tests {other}"),
            };
            let expected = match method.as_str() {
                // A store in memory has no inbox.
                "get" if path.starts_with("/v1/consumers") => {
                    assert!(
                        ["no-inbox", "invalid"].contains(&answer.json()["code"].as_str().unwrap())
                    );
                    continue;
                }
                "get" => StatusCode::OK,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            };
            assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_said_as_a_problem() {
    let world = World::new();
    let answer = world.look("/v1/nothing").await;
    assert_eq!(
        (answer.status, &answer.json()["code"]),
        (StatusCode::NOT_FOUND, &json!("no-such-page"))
    );
    let answer = world.order("/v1/operations", &json!({})).await;
    assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(answer.json()["code"], "no-such-method");
    assert_eq!(world.get("/payments").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test(start_paused = true)]
async fn a_key_alone_is_looked_for_and_with_its_tenant_and_scope_it_is_found() {
    let world = World::new();
    for key in ["a", "b", "c"] {
        world.pay(key).await;
    }
    for (query, found) in [
        ("key=b", 1),
        ("key=b&tenant=acme", 1),
        ("key=b&tenant=acme&scope=POST%20/payments", 1),
        ("key=b&tenant=acme&scope=POST%20/payments&state=in_doubt", 0),
        ("key=b&tenant=other&scope=POST%20/payments", 0),
        ("key=b&state=failed", 0),
        ("key=d", 0),
    ] {
        let answer = world.look(&format!("/v1/operations?{query}")).await;
        let listing = answer.json();
        let operations = listing["operations"].as_array().unwrap();
        assert_eq!((operations.len(), &listing["next"]), (found, &Value::Null), "{query}");
        assert!(operations.iter().all(|one| one["key"] == "b"), "{query}: {listing}");
    }
    let refused = world.look("/v1/operations?key=%00").await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("key: "), "{}", refused.text);
}
