//! Request bodies: how large they may be, and when two are the same.

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use hapax_tower::{BodyForm, Protection};
use tower::ServiceExt;

use crate::world::{Answer, World, keyed};

fn json(ignored: &[&str]) -> World {
    let ignored = ignored.iter().map(|pointer| (*pointer).to_owned()).collect();
    World::with(Protection { body: BodyForm::Json { ignored }, ..Protection::default() })
}

fn raw() -> World {
    World::with(Protection { body: BodyForm::Raw, ..Protection::default() })
}

#[tokio::test(start_paused = true)]
async fn a_body_over_its_cap_is_refused_before_anything_is_claimed() {
    let world = World::with(Protection { request_bytes_max: 10, ..Protection::default() });
    assert_eq!(world.pay("k-1", "ten bytes!").await.status, 201);
    world.pay("k-2", "eleven byte").await.check(413, "body-too-large");
    assert_eq!((world.runs(), world.store.all().await.len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_announced_length_over_the_cap_is_refused_without_reading() {
    let world = World::with(Protection { request_bytes_max: 10, ..Protection::default() });
    let pieces = stream::poll_fn(|_| -> std::task::Poll<Option<Result<Bytes, std::io::Error>>> {
        panic!("nobody may read this")
    });
    let request = keyed("/pay").header("content-length", "11").header("expect", "100-continue");
    let request = request.body(Body::from_stream(pieces)).unwrap();
    let response = world.app.clone().oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), world.runs()), (413, 0));
    assert_eq!(response.headers()["connection"], "close");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_early_claims_nothing() {
    let world = World::new();
    let pieces = [Ok("ha"), Err(std::io::Error::other("cut"))];
    let request = keyed("/pay").body(Body::from_stream(stream::iter(pieces))).unwrap();
    let response = world.app.clone().oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), world.runs()), (400, 0));
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn in_raw_form_another_order_of_members_is_another_request() {
    let world = raw();
    let json = || keyed("/pay").header("content-type", "application/json");
    world.send(json(), r#"{"a":1,"b":2}"#).await;
    world.send(json(), r#"{"b":2,"a":1}"#).await.check(422, "key-reused");
}

#[tokio::test(start_paused = true)]
async fn as_json_order_space_and_spelling_do_not_matter_and_values_do() {
    let world = json(&["/sent_at", "/meta/trace"]);
    let first = r#"{"amount":100,"to":"Zo\u00eb","meta":{"trace":1,"a":2},"sent_at":1}"#;
    let same = "{ \"to\": \"Zo\u{eb}\", \"amount\":1.00e2, \"sent_at\": 9, \"meta\":{\"a\":2}}";
    world.pay("k-1", first).await;
    assert!(world.pay("k-1", same).await.is_replay());
    let other = first.replace("100", "101");
    world.pay("k-1", &other).await.check(422, "key-reused");
    let other = first.replace("\"a\":2", "\"a\":3");
    world.pay("k-1", &other).await.check(422, "key-reused");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn json_without_a_single_meaning_is_refused_before_anything_is_claimed() {
    let world = json(&[]);
    let deep = "[".repeat(10_000);
    for body in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":1,"\u0061":2}"#,
        "NaN",
        "1e400",
        r#""\ud800""#,
        "{",
        "01",
        "[1,]",
        "1 2",
        deep.as_str(),
    ] {
        world.pay("k-1", body).await.check(400, "body-not-canonical");
    }
    assert!(world.store.all().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_encoded_body_is_opaque_in_raw_form_and_refused_as_json() {
    let encoded = || keyed("/pay").header("content-encoding", "gzip");
    let world = raw();
    assert_eq!(world.send(encoded(), "not really").await.status, 201);
    json(&[]).send(encoded(), "{}").await.check(415, "body-encoded");
}

#[tokio::test(start_paused = true)]
async fn a_new_multipart_boundary_is_another_request_in_raw_form() {
    let world = raw();
    let part = |boundary: &str| {
        let header = format!("multipart/form-data; boundary={boundary}");
        (keyed("/pay").header("content-type", header), format!("--{boundary}--"))
    };
    let (request, body) = part("one");
    world.send(request, &body).await;
    let (request, body) = part("two");
    let answer: Answer = world.send(request, &body).await;
    answer.check(422, "key-reused");
}
