//! No tenant sees, blocks or probes another tenant's keys.

use hapax_core::Tenant;
use hapax_tower::{Protection, Tenancy};
use http::Request;

use crate::world::{World, keyed};

fn as_caller(credential: &str) -> http::request::Builder {
    Request::post("/pay").header("idempotency-key", "k-1").header("authorization", credential)
}

#[tokio::test(start_paused = true)]
async fn another_credential_gets_its_own_execution_and_never_the_first_answer() {
    let world = World::new();
    let alice = world.send(as_caller("Bearer alice"), "100").await;
    let bob = world.send(as_caller("Bearer bob"), "100").await;
    assert!(!bob.is_replay());
    assert_ne!(alice.body, bob.body);
    assert_eq!(world.send(as_caller("Bearer bob"), "999").await.status, 422);
    assert_eq!(world.send(as_caller("Bearer alice"), "100").await.body, alice.body);
    assert_eq!(world.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_credential_nothing_is_told_whether_the_key_exists_or_not() {
    let world = World::new();
    world.send(as_caller("Bearer alice"), "100").await;
    let known = Request::post("/pay").header("idempotency-key", "k-1");
    let unknown = Request::post("/pay").header("idempotency-key", "k-2");
    let (known, unknown) = (world.send(known, "100").await, world.send(unknown, "100").await);
    known.check(401, "credential-missing");
    assert_eq!(known, unknown);
    let two = as_caller("Bearer alice").header("authorization", "Bearer bob");
    world.send(two, "100").await.check(401, "credential-missing");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_credential_is_stored_as_a_keyed_hash_alone() {
    let world = World::new();
    world.send(as_caller("Bearer alice"), "100").await;
    let stored = world.store.all().await;
    let tenant = stored[0].operation.tenant().as_str();
    assert!(tenant.starts_with("credential-") && !tenant.contains("alice"));
}

#[tokio::test(start_paused = true)]
async fn the_application_may_say_who_asks() {
    let tenancy = Tenancy::from_fn(|parts| Tenant::parse(parts.headers.get("x-account")?).ok());
    let world = World::build(Protection::default(), tenancy, || {
        axum::response::IntoResponse::into_response("")
    });
    let of = |account: &str| keyed("/pay").header("x-account", account);
    world.send(of("a"), "100").await;
    assert!(!world.send(of("b"), "100").await.is_replay());
    assert!(world.send(of("a"), "100").await.is_replay());
    world.send(keyed("/pay"), "100").await.check(401, "credential-missing");
}

#[tokio::test(start_paused = true)]
async fn one_tenant_for_everybody_is_a_choice() {
    let tenancy = Tenancy::single("shop").unwrap();
    let world = World::build(Protection::default(), tenancy, || {
        axum::response::IntoResponse::into_response("")
    });
    let request = || Request::post("/pay").header("idempotency-key", "k-1");
    world.send(request(), "100").await;
    assert!(world.send(request(), "100").await.is_replay());
}

#[tokio::test(start_paused = true)]
async fn one_tenant_in_flight_does_not_block_another() {
    let world = World::new();
    let alice = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let bob =
        Request::post("/slow").header("idempotency-key", "k-1").header("authorization", "bob");
    let bob = world.start(bob, "100");
    world.begun(2).await;
    world.service.go.add_permits(2);
    assert_eq!((alice.await.unwrap().status, bob.await.unwrap().status), (201, 201));
}
