//! Who may hear what is stored: whoever was told the address, and still may.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::response::IntoResponse;
use bytes::Bytes;
use hapax_core::{Key, Operation, Salt, Scope};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    IdempotencyLayer, InFlight, Protection, Revalidated, Revalidator, Routes, Scoping, Tenancy,
    TenantKind, Treatment,
};
use http::{Method, Request, Response, request::Builder};

use crate::world::{Answer, Wire, World, keyed, router, send, service};

const HOME: &str = "/.well-known/idempotency/operations";

/// The operation of [`anonymous`] requests, whose parts anybody can guess.
fn guessed() -> Operation {
    let tenant = TenantKind::Single.tenant("everybody").unwrap();
    let scope = Scope::parse("POST /slow").unwrap();
    Operation::new(tenant, scope, Key::parse("order-17").unwrap())
}

fn anonymous() -> Builder {
    Request::post("/slow").header("idempotency-key", "order-17")
}

#[tokio::test(start_paused = true)]
async fn nothing_is_found_at_an_address_that_nobody_was_told() {
    let tenancy = Tenancy::single("everybody").unwrap();
    let world = World::build(Protection::default(), tenancy, || "made".into_response());
    let first = world.start(anonymous(), "100");
    world.begun(1).await;
    let busy = world.send(anonymous(), "100").await;
    busy.check(409, "key-in-flight");
    let told = busy.json()["operation"].as_str().unwrap().to_owned();
    world.service.go.add_permits(1);
    let first = first.await.unwrap();

    let stored = world.store.all().await;
    let id = guessed().id();
    assert_eq!(stored[0].operation.id(), id, "the guess is right");
    let tag = Salt::from_bytes([0; 32]).signed(id).to_string();
    for made_up in [id.to_string(), format!("{id}-{id}"), tag, format!("{id}-")] {
        let answer = world.send(Request::get(format!("{HOME}/{made_up}")), "").await;
        answer.check(404, "operation-unknown");
    }
    let told = world.send(Request::get(told), "").await;
    assert_eq!((told.status, told.body), (first.status, first.body));
}

/// Somebody who says with this status whether a caller still may; 0 for nobody.
fn says(status: &Arc<AtomicU16>) -> Revalidator {
    let status = Arc::clone(status);
    Revalidator::from_fn(move |caller| {
        let status = status.load(Relaxed);
        async move {
            assert_eq!(caller.headers["authorization"], "Bearer alice");
            match status {
                0 => Revalidated::CannotAsk,
                1 => std::future::pending().await,
                200 => Revalidated::May,
                status => {
                    let told = Response::builder().status(status).header("connection", "x-hop");
                    let told = told.header("x-hop", "1").header("www-authenticate", "Bearer");
                    Revalidated::Refused(told.body(Bytes::from("who are you?")).unwrap())
                }
            }
        }
    })
}

fn asking(status: &Arc<AtomicU16>) -> Protection {
    Protection { revalidate: Some(says(status)), ..Protection::default() }
}

/// Nothing of what is stored is told, whatever the reason.
async fn hears_nothing(status: &AtomicU16, ask: impl AsyncFn() -> Answer) {
    for (said, expected) in [(401, 401), (403, 403), (0, 503), (1, 503)] {
        status.store(said, Relaxed);
        let answer = ask().await;
        assert_eq!((answer.status, answer.is_replay()), (expected, false), "{said}");
        assert_eq!(answer.header("idempotency-expires"), None, "{said}");
        if expected == 503 {
            answer.check(503, "caller-unverifiable");
        } else {
            assert_eq!(answer.body, "who are you?");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert_eq!((answer.header("x-hop"), answer.header("connection")), (None, None));
        }
    }
    status.store(200, Relaxed);
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_its_right_hears_no_replay() {
    let status = Arc::new(AtomicU16::new(401));
    let world = World::with(asking(&status));
    let first = world.pay("k-1", "100").await;
    assert_eq!(first.status, 201, "the service itself says who may run something");
    hears_nothing(&status, async || world.pay("k-1", "100").await).await;
    hears_nothing(&status, async || world.pay("k-1", "another").await).await;
    let replay = world.pay("k-1", "100").await;
    assert!(replay.is_replay());
    assert_eq!((replay.status, replay.body), (first.status, first.body));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_its_right_while_it_waited_hears_no_replay() {
    let status = Arc::new(AtomicU16::new(200));
    let in_flight = InFlight::Wait(Duration::from_secs(20));
    let world = World::with(Protection { in_flight, ..asking(&status) });
    let first = world.start(keyed("/slow"), "100");
    world.begun(1).await;
    let second = world.start(keyed("/slow"), "100");
    tokio::time::sleep(Duration::from_secs(1)).await;
    status.store(403, Relaxed);
    world.service.go.add_permits(1);
    assert_eq!(first.await.unwrap().status, 201, "it was run for this caller");
    let second = second.await.unwrap();
    assert_eq!((second.status, second.is_replay()), (403, false));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_its_right_hears_nothing_at_the_address_of_an_operation() {
    let status = Arc::new(AtomicU16::new(200));
    let scope = Scoping::Named(Scope::parse("named").unwrap());
    let named = Protection { scope, ..asking(&status) };
    for protection in [asking(&status), named] {
        let world = World::with(protection);
        let first = world.start(keyed("/slow"), "100");
        world.begun(1).await;
        let busy = world.send(keyed("/slow"), "100").await.json();
        let address = busy["operation"].as_str().unwrap();
        let look = || Request::get(address).header("authorization", "Bearer alice");
        hears_nothing(&status, async || world.send(look(), "").await).await;
        world.service.go.add_permits(1);
        first.await.unwrap();
        hears_nothing(&status, async || world.send(look(), "").await).await;
        assert!(world.send(look(), "").await.is_replay());
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_of_an_operation_asks_whom_its_own_route_asks() {
    let (ours, theirs) = (Arc::new(AtomicU16::new(200)), Arc::new(AtomicU16::new(403)));
    let routes = Routes::new(Treatment::Protect(asking(&theirs)))
        .unwrap()
        .route(Method::POST, "/slow", Treatment::Protect(asking(&ours)))
        .unwrap()
        .route(Method::POST, "/*", Treatment::Protect(asking(&theirs)))
        .unwrap();
    let engine = Engine::start(Wire::new(), Options::default());
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let service = service(|| unreachable!());
    let app = router(&service).layer(layer);
    let first = {
        let app = app.clone();
        tokio::spawn(async move { send(&app, keyed("/slow"), "100").await })
    };
    while service.runs.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let busy = send(&app, keyed("/slow"), "100").await.json();
    let address = busy["operation"].as_str().unwrap();
    let look = || Request::get(address).header("authorization", "Bearer alice");
    service.go.add_permits(1);
    first.await.unwrap();
    assert!(send(&app, look(), "").await.is_replay());
    ours.store(403, Relaxed);
    assert_eq!(send(&app, look(), "").await.status, 403);
    assert_eq!(send(&app, keyed("/pay"), "100").await.status, 201, "nothing was stored before");
    assert_eq!(send(&app, keyed("/pay"), "100").await.status, 403);
}
