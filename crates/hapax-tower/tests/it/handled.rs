//! Every response says what was done to have it.

use axum::{body::Body, response::Response};
use hapax_core::{Recovery, Scope};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Code, Currency, Handled, IdempotencyLayer, KeptCredentials, Later, Money, Protection,
    RepeatedWorth, Routes, Scoping, Site, StoreDown, Tenancy, Treatment, Verdict, WorthCurrency,
    WorthRule,
};
use http::{Method, Request};
use tower::ServiceExt;

use crate::world::{Wire, keyed, policy, post, router, service};

fn routes() -> Routes {
    let resend = policy(Recovery::Resend);
    let risky = Protection {
        policy: resend,
        store_down: StoreDown::RunUnprotected,
        ..Protection::default()
    };
    let usual = Protection {
        respond_async: true,
        credentials: KeptCredentials::Keep,
        ..Protection::default()
    };
    Routes::new(Treatment::Protect(usual))
        .unwrap()
        .route(Method::POST, "/open/*", Treatment::PassThrough)
        .unwrap()
        .route(Method::POST, "/risky/{what}", Treatment::Protect(risky))
        .unwrap()
}

async fn handled(
    app: &axum::Router,
    request: http::request::Builder,
    body: &'static str,
) -> Handled {
    let request = request.body(Body::from(body)).unwrap();
    let response: Response = app.clone().oneshot(request).await.unwrap();
    *response.extensions().get().unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_response_tells_the_verdict_and_the_route() {
    let later = Later::new(routes(), Site::default());
    let store = Wire::new();
    let options = Options { finisher: Some(later.finisher()), ..Options::default() };
    let layer = IdempotencyLayer::with_later(
        Engine::start(store.clone(), options),
        Tenancy::credential(),
        &later,
    );
    let app = router(&service(|| unreachable!())).layer(layer);
    let get = |path| Request::get(path);
    let check = async |request, body, verdict, route| {
        let told = handled(&app, request, body).await;
        assert_eq!((told.verdict, told.route), (verdict, route));
    };
    check(keyed("/pay"), "100", Verdict::Executed, 2).await;
    check(keyed("/pay"), "100", Verdict::Replayed, 2).await;
    check(keyed("/pay"), "999", Verdict::Mismatch, 2).await;
    check(post("/pay"), "100", Verdict::Refused(Code::KeyMissing), 2).await;
    let panicked = Verdict::Unanswered(Code::ExecutionPanicked);
    check(keyed("/panic"), "100", panicked, 2).await;
    check(keyed("/panic"), "100", Verdict::InDoubt, 2).await;
    check(keyed("/open/pay"), "100", Verdict::Passed, 0).await;
    check(get("/pay"), "", Verdict::Passed, 2).await;
    check(get("/.well-known/idempotency"), "", Verdict::Page, 2).await;
    check(keyed("/risky/panic"), "100", panicked, 1).await;
    check(keyed("/risky/panic"), "100", panicked, 1).await;
    let queued = || keyed("/slow").header("prefer", "respond-async");
    check(queued(), "100", Verdict::Queued, 2).await;
    check(keyed("/slow"), "100", Verdict::Busy, 2).await;
    store.away(true);
    check(keyed("/other"), "100", Verdict::Undecided, 2).await;
    check(keyed("/risky/other"), "100", Verdict::Unprotected, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_stored_success_was_asked_for_once_more_is_told_in_money() {
    let cents = WorthRule {
        amount: "/cents".to_owned(),
        decimals: 2,
        currency: Currency::parse("EUR").map(WorthCurrency::Always),
    };
    let paid = Protection { worth: Some(cents), ..Protection::default() };
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let routes = routes.route(Method::POST, "/pay", Treatment::Protect(paid)).unwrap();
    let engine = Engine::start(Wire::new(), Options::default());
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let app = router(&service(|| unreachable!())).layer(layer);
    let repeated = async |request, body| handled(&app, request, body).await.repeated;
    let euro = Money { millionths: 12_500_000, currency: Currency::parse("EUR") };
    assert_eq!(repeated(keyed("/pay"), r#"{"cents":1250}"#).await, None, "it was done");
    assert_eq!(repeated(keyed("/pay"), r#"{"cents":1250}"#).await, Some(RepeatedWorth::Told(euro)));
    assert_eq!(repeated(keyed("/pay"), r#"{"cents":999}"#).await, None, "it was another request");
    assert_eq!(repeated(keyed("/other"), r#"{"cents":1250}"#).await, None);
    assert_eq!(
        repeated(keyed("/other"), r#"{"cents":1250}"#).await,
        None,
        "its route names no amount"
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_takes_too_long_is_not_counted_as_one_that_answered() {
    let engine = Engine::start(Wire::new(), Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let layer = IdempotencyLayer::new(engine.clone(), Tenancy::credential(), routes).unwrap();
    let app = router(&service(|| unreachable!())).layer(layer);
    let Handled { verdict, .. } = handled(&app, keyed("/slow"), "100").await;
    assert_eq!(verdict, Verdict::Unanswered(Code::ExecutionTimedOut));
    assert_eq!(handled(&app, keyed("/slow"), "100").await.verdict, Verdict::InDoubt);
    let stats = engine.stats();
    assert_eq!((stats.executions, stats.left_in_doubt, stats.in_doubt), (1, 1, 1));
}

#[test]
fn the_scope_of_a_record_tells_the_route_it_came_by() {
    let named = Protection {
        scope: Scoping::Named(Scope::parse("refunds").unwrap()),
        label: "the refunds".into(),
        ..Protection::default()
    };
    let routes = routes().route(Method::POST, "/refunds/*", Treatment::Protect(named)).unwrap();
    for (scope, label) in [
        ("POST /risky/pay", Some("POST /risky/{what}")),
        ("POST /elsewhere", Some("otherwise")),
        ("PUT /risky/pay", Some("otherwise")),
        ("refunds", Some("the refunds")),
        ("an outbox", None),
    ] {
        assert_eq!(routes.label_of(&Scope::parse(scope).unwrap()), label, "{scope}");
    }
    assert_eq!(routes.labels()[2..], ["the refunds", "otherwise"]);
}

#[test]
fn the_labels_of_routes_are_in_the_order_of_their_numbers() {
    assert_eq!(routes().labels(), ["POST /open/*", "POST /risky/{what}", "otherwise"]);
}
