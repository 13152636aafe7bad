//! No tenant sees, blocks or probes another tenant's keys.

use hapax_core::{Scope, Tenant};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    CredentialPlace, IdempotencyLayer, Identified, InFlight, KeptCredentials, Later, Protection,
    Routes, Scoping, Site, Tenancy, TenantKind, Treatment,
};
use http::{HeaderName, HeaderValue, Method, Request};

use crate::world::{Wire, World, keyed, router, send, service};

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
    assert!(tenant.starts_with("credential:") && !tenant.contains("alice"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_any_header_or_cookie_is_a_caller_and_kept_as_a_hash_alone() {
    let places = [
        (CredentialPlace::Header(HeaderName::from_static("x-caller")), "x-caller", "alice"),
        (CredentialPlace::Cookie("sid".to_owned()), "cookie", "a=1; sid=alice"),
    ];
    for (place, header, value) in places {
        let accept = Protection { in_flight: InFlight::Accept, ..Protection::default() };
        let routes = Routes::new(Treatment::Protect(accept)).unwrap();
        let later = Later::new(routes, Site::default());
        let store = Wire::new();
        let options = Options { finisher: Some(later.finisher()), ..Options::default() };
        let engine = Engine::start(store.clone(), options);
        let tenancy = Tenancy::credential_in(place.clone());
        let layer = IdempotencyLayer::with_later(engine, tenancy, &later);
        let app = router(&service(|| unreachable!())).layer(layer);
        let request = || Request::post("/pay").header("idempotency-key", "k-1");
        // What would be run later would be run without it, since it is not kept.
        let kept = send(&app, request().header(header, value), "100").await;
        kept.check(400, "credentials-not-kept");
        let missing = send(&app, request(), "100").await;
        missing.check(401, "credential-missing");
        assert!(missing.json()["detail"].as_str().unwrap().contains(&place.to_string()));
        assert_ne!(missing.header("www-authenticate"), Some("Bearer"));
        let world = World::build(Protection::default(), Tenancy::credential_in(place), || {
            axum::response::IntoResponse::into_response("")
        });
        world.send(request().header(header, value), "100").await;
        let stored = world.store.all().await;
        let tenant = stored[0].operation.tenant().as_str();
        assert!(tenant.starts_with("credential:") && !tenant.contains("alice"), "{tenant}");
    }
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
async fn the_same_name_found_in_another_way_is_another_tenant() {
    let mut routes = Routes::new(Treatment::PassThrough).unwrap();
    for kind in TenantKind::ALL {
        let everybody = Tenancy::from_fn(|_| Tenant::parse("everybody").ok()).of_kind(kind);
        let scope = Scoping::Named(Scope::parse("shared").unwrap());
        let tenancy = Some(everybody);
        let protection = Protection { tenancy, scope, ..Protection::default() };
        let path = format!("/{}", kind.as_str());
        routes = routes.route(Method::POST, &path, Treatment::Protect(protection)).unwrap();
    }
    let (store, single) = (Wire::new(), Tenancy::single("everybody").unwrap());
    let engine = Engine::start(store.clone(), Options::default());
    let layer = IdempotencyLayer::new(engine, single, routes).unwrap();
    let service = service(|| unreachable!());
    let app = router(&service).layer(layer);
    let mut names = Vec::new();
    for kind in TenantKind::ALL {
        let answer = send(&app, keyed(&format!("/{}", kind.as_str())), "100").await;
        assert_eq!((answer.status, answer.is_replay()), (201, false), "{kind:?}");
        names.push(format!("{}:everybody", kind.as_str()));
    }
    names.sort();
    let mut stored: Vec<_> = store.all().await;
    stored.sort_by(|a, b| a.operation.tenant().cmp(b.operation.tenant()));
    let stored: Vec<_> = stored.iter().map(|stored| stored.operation.tenant().as_str()).collect();
    assert_eq!(stored, names);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_too_long_with_its_kind_is_nobodys() {
    let tenancy = Tenancy::from_fn(|parts| Tenant::parse(parts.headers.get("x-account")?).ok());
    let world = World::build(Protection::default(), tenancy, || {
        axum::response::IntoResponse::into_response("")
    });
    let longest = 255 - "app:".len();
    let of = |len| keyed("/pay").header("x-account", "a".repeat(len));
    assert_eq!(world.send(of(longest), "100").await.status, 201);
    world.send(of(longest + 1), "100").await.check(401, "credential-missing");
    assert_eq!(world.runs(), 1);
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

/// Knows whoever has a token, as somebody far away would.
fn by_token() -> Tenancy {
    Tenancy::from_async_fn(|caller| async move {
        match caller.headers.get("x-token").map(HeaderValue::as_bytes) {
            Some(b"blocked") => Identified::Refused,
            Some(b"broken") => Identified::CannotAsk,
            Some(b"silent") => std::future::pending().await,
            Some(name) => Tenant::parse(name).map_or(Identified::Unknown, Identified::As),
            None => Identified::Unknown,
        }
    })
}

#[tokio::test(start_paused = true)]
async fn somebody_else_may_be_asked_who_it_is() {
    let tenancy = by_token().challenging(HeaderValue::from_static("Token realm=\"shop\""));
    let world = World::build(Protection::default(), tenancy, || {
        axum::response::IntoResponse::into_response("")
    });
    let of = |token: &str| keyed("/pay").header("x-token", token);
    world.send(of("a"), "100").await;
    assert!(world.send(of("a"), "100").await.is_replay());
    assert!(!world.send(of("b"), "100").await.is_replay());
    let unknown = world.send(keyed("/pay"), "100").await;
    unknown.check(401, "credential-missing");
    assert_eq!(unknown.header("www-authenticate"), Some("Token realm=\"shop\""));
    let blocked = world.send(of("blocked"), "100").await;
    blocked.check(403, "caller-refused");
    assert_eq!(blocked.header("www-authenticate"), None);
    let broken = world.send(of("broken"), "100").await;
    broken.check(503, "caller-unverifiable");
    assert_eq!(broken.header("retry-after"), Some("1"));
    world.send(of("silent"), "100").await.check(503, "caller-unverifiable");
    assert_eq!((world.runs(), world.store.all().await.len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn without_a_challenge_of_its_own_a_refusal_asks_for_a_bearer_token() {
    let request = Request::post("/pay").header("idempotency-key", "k-1");
    let refused = World::new().send(request, "100").await;
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
}

#[tokio::test(start_paused = true)]
async fn a_route_may_know_its_callers_otherwise_and_each_finds_its_own_operations() {
    let accept = || Protection {
        in_flight: InFlight::Accept,
        credentials: KeptCredentials::Keep,
        ..Protection::default()
    };
    let partner = Protection { tenancy: Some(by_token()), ..accept() };
    let routes = Routes::new(Treatment::Protect(accept()))
        .unwrap()
        .route(Method::POST, "/partner/*", Treatment::Protect(partner))
        .unwrap();
    let later = Later::new(routes, Site::default());
    let engine = Engine::start(Wire::new(), Options::default());
    let layer = IdempotencyLayer::with_later(engine, Tenancy::credential(), &later);
    let app = router(&service(|| unreachable!())).layer(layer);
    let by_token = |request: http::request::Builder, token| request.header("x-token", token);

    send(&app, keyed("/partner/pay"), "").await.check(401, "credential-missing");
    let theirs = Request::post("/partner/pay").header("idempotency-key", "k-1");
    let theirs = send(&app, by_token(theirs, "p"), "").await;
    let ours = send(&app, keyed("/pay"), "").await;
    let look = |answer: &crate::world::Answer| Request::get(answer.header("location").unwrap());
    let alice = |request: http::request::Builder| request.header("authorization", "Bearer alice");
    assert_eq!(send(&app, by_token(look(&theirs), "p"), "").await.status, 200);
    assert_eq!(send(&app, alice(look(&ours)), "").await.status, 200);
    send(&app, alice(look(&theirs)), "").await.check(404, "operation-unknown");
    send(&app, by_token(look(&ours), "p"), "").await.check(404, "operation-unknown");
    send(&app, by_token(look(&ours), "broken"), "").await.check(503, "caller-unverifiable");
    let either = alice(by_token(look(&theirs), "broken"));
    send(&app, either, "").await.check(503, "caller-unverifiable");
    send(&app, look(&ours), "").await.check(401, "credential-missing");
}
