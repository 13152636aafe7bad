//! A replay is the original, and says so.

use std::sync::atomic::Ordering::Relaxed;

use axum::response::IntoResponse;
use hapax_core::Fence;
use hapax_tower::{Protection, Tenancy};
use http::header;

use crate::world::{World, keyed, post};

#[tokio::test(start_paused = true)]
async fn the_second_request_hears_the_first_answer() {
    let world = World::new();
    let first = world.pay("k-1", "100").await;
    let second = world.pay("k-1", "100").await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.body, "run 1 of 3 bytes");
    assert_eq!(first.body, second.body);
    assert_eq!(second.header("x-run"), Some("1"));
    assert_eq!(second.header("content-type"), first.header("content-type"));
    assert!(!first.is_replay() && second.is_replay());
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_kept_answer_says_until_when_it_is_kept() {
    let world = World::new();
    for _ in 0..2 {
        let answer = world.pay("k-1", "100").await;
        assert_eq!(answer.header("idempotency-expires"), Some("Sat, 16 Jan 2027 08:00:00 GMT"));
    }
}

#[tokio::test(start_paused = true)]
async fn another_request_under_a_used_key_is_refused_and_told_what_differs() {
    let world = World::new();
    let first = world.pay("k-1", "100").await;
    for (request, body, differs) in [
        (keyed("/pay"), "999", "body"),
        (keyed("/pay?a=1"), "100", "query"),
        (keyed("/pay").header("content-type", "text/csv"), "100", "headers"),
    ] {
        let answer = world.send(request, body).await;
        answer.check(422, "key-reused");
        assert_eq!(answer.json()["differs"], serde_json::json!([differs]));
        assert!(!String::from_utf8_lossy(&answer.body).contains("999"));
    }
    assert_eq!(world.pay("k-1", "100").await.body, first.body);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_key_on_another_path_or_method_is_another_operation() {
    let world = World::new();
    world.send(keyed("/pay"), "100").await;
    world.send(keyed("/refund"), "100").await;
    world.send(keyed("/pay").method("PUT"), "100").await;
    assert_eq!(world.runs(), 3);
}

#[tokio::test(start_paused = true)]
async fn in_a_wider_scope_the_same_key_on_another_path_is_refused() {
    let scope = hapax_tower::Scoping::Named(hapax_core::Scope::parse("payments").unwrap());
    let world = World::with(Protection { scope, ..Protection::default() });
    world.send(keyed("/pay"), "100").await;
    let answer = world.send(keyed("/refund").method("PUT"), "100").await;
    answer.check(422, "key-reused");
    assert_eq!(answer.json()["differs"], serde_json::json!(["method", "path"]));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn headers_of_one_answer_are_not_replayed() {
    let world = World::making(|| {
        [
            ("set-cookie", "session=1"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("traceparent", "00-1-2-03"),
            ("server-timing", "db;dur=1"),
            ("idempotent-replayed", "true"),
            ("hapax-fence", "9"),
            ("x-kept", "1"),
        ]
        .into_response()
    });
    let first = world.send(keyed("/made"), "").await;
    assert_eq!(first.header("set-cookie"), Some("session=1"));
    assert!(!first.is_replay());
    let second = world.send(keyed("/made"), "").await;
    assert_eq!(second.header("x-kept"), Some("1"));
    for gone in ["set-cookie", "x-hop", "date", "traceparent", "server-timing", "hapax-fence"] {
        assert_eq!(second.header(gone), None, "{gone}");
    }
    assert!(second.is_replay());
}

#[tokio::test(start_paused = true)]
async fn a_route_chooses_which_headers_are_stored() {
    let protection = Protection {
        stored_headers: vec![header::SET_COOKIE],
        unstored_headers: vec![header::ETAG],
        ..Protection::default()
    };
    let world = World::build(protection, Tenancy::credential(), || {
        [("set-cookie", "a=1"), ("etag", "\"1\"")].into_response()
    });
    world.send(keyed("/made"), "").await;
    let second = world.send(keyed("/made"), "").await;
    assert_eq!((second.header("set-cookie"), second.header("etag")), (Some("a=1"), None));
}

#[tokio::test(start_paused = true)]
async fn repeated_headers_and_bytes_beyond_ascii_come_back_as_they_were() {
    let world = World::making(|| {
        let mut response = bytes::Bytes::from_static(b"\x00\xff\r\n").into_response();
        for value in [&b"one"[..], b"two", b"\xe9"] {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            response.headers_mut().append("x-many", value);
        }
        response
    });
    let first = world.send(keyed("/made"), "").await;
    let second = world.send(keyed("/made"), "").await;
    assert_eq!(first.body, second.body);
    let many = |answer: &crate::world::Answer| {
        answer.headers.get_all("x-many").iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(many(&first), many(&second));
    assert_eq!(many(&second).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_service_is_told_the_key_and_the_fence_and_no_client_can_forge_them() {
    let world = World::new();
    let request = keyed("/pay")
        .header("hapax-fence", "77")
        .header("hapax-anything", "1")
        .header("idempotent-replayed", "true");
    world.send(request, "100").await;
    let last = world.service.last.lock().unwrap().clone().unwrap();
    assert_eq!(last["idempotency-key"], "\"k-1\"");
    assert_eq!(last["hapax-fence"], Fence::FIRST.get().to_string());
    assert!(!last.contains_key("hapax-anything") && !last.contains_key("idempotent-replayed"));
    let unprotected = http::Request::get("/pay").header("hapax-fence", "77");
    world.send(unprotected, "").await;
    assert!(!world.service.last.lock().unwrap().clone().unwrap().contains_key("hapax-fence"));
}

#[tokio::test(start_paused = true)]
async fn two_hundred_duplicates_at_once_are_one_execution() {
    let world = World::new();
    let requests: Vec<_> =
        (0..200).map(|_| world.start(keyed("/slow").header("prefer", "wait=30"), "100")).collect();
    world.begun(1).await;
    world.service.go.add_permits(200);
    let mut replays = 0;
    for request in requests {
        let answer = request.await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (201, &b"run 1 of 3 bytes"[..]));
        replays += usize::from(answer.is_replay());
    }
    assert_eq!((replays, world.service.runs.load(Relaxed)), (199, 1));
}

#[tokio::test(start_paused = true)]
async fn a_late_retry_is_told_that_the_key_is_gone_where_tombstones_are_kept() {
    let hour = std::time::Duration::from_secs(3600);
    let retention = hapax_core::Retention {
        window: hour,
        from: hapax_core::RetainFrom::Creation,
        tombstone: hour,
    };
    let recovery = hapax_core::Recovery::Hold;
    let lease = std::time::Duration::from_secs(30);
    let policy = hapax_core::Policy::new(lease, retention, recovery).unwrap();
    let world = World::with(Protection { policy, ..Protection::default() });
    world.pay("k-1", "100").await;
    tokio::time::sleep(hour + lease).await;
    world.pay("k-1", "100").await.check(410, "key-gone");
    tokio::time::sleep(hour).await;
    assert_eq!(world.pay("k-1", "100").await.status, 201);
    assert_eq!(world.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_date_header_changes_nothing() {
    let world = World::new();
    world.send(keyed("/pay").header("date", "Thu, 01 Jan 1970 00:00:00 GMT"), "1").await;
    let second = world.send(post("/pay").header("idempotency-key", "\"k-1\""), "1").await;
    assert!(second.is_replay());
}
