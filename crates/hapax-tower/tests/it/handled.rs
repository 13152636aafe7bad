//! Every response says what was done to have it.

use axum::{body::Body, response::Response};
use hapax_core::{Recovery, ResultPolicy};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Code, Credentials, Handled, IdempotencyLayer, Later, Protection, Routes, Site, StoreDown, Tenancy,
    Treatment, Verdict,
};
use http::{Method, Request};
use tower::ServiceExt;

use crate::world::{Wire, keyed, policy, post, router, service};

fn routes() -> Routes {
    let resend = policy(ResultPolicy::Terminal, Recovery::Resend);
    let risky = Protection {
        policy: resend,
        store_down: StoreDown::RunUnprotected,
        ..Protection::default()
    };
    let usual = Protection {
        respond_async: true,
        credentials: Credentials::Keep,
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
        assert_eq!(handled(&app, request, body).await, Handled { verdict, route });
    };
    check(keyed("/pay"), "100", Verdict::Executed, 2).await;
    check(keyed("/pay"), "100", Verdict::Replayed, 2).await;
    check(keyed("/pay"), "999", Verdict::Mismatch, 2).await;
    check(post("/pay"), "100", Verdict::Refused(Code::KeyMissing), 2).await;
    check(keyed("/panic"), "100", Verdict::Executed, 2).await;
    check(keyed("/panic"), "100", Verdict::InDoubt, 2).await;
    check(keyed("/open/pay"), "100", Verdict::Passed, 0).await;
    check(get("/pay"), "", Verdict::Passed, 2).await;
    check(get("/.well-known/idempotency"), "", Verdict::Page, 2).await;
    check(keyed("/risky/panic"), "100", Verdict::Executed, 1).await;
    check(keyed("/risky/panic"), "100", Verdict::TakenOver, 1).await;
    let queued = || keyed("/slow").header("prefer", "respond-async");
    check(queued(), "100", Verdict::Queued, 2).await;
    check(keyed("/slow"), "100", Verdict::Busy, 2).await;
    store.away(true);
    check(keyed("/other"), "100", Verdict::Undecided, 2).await;
    check(keyed("/risky/other"), "100", Verdict::Unprotected, 1).await;
}

#[test]
fn the_labels_of_routes_are_in_the_order_of_their_numbers() {
    assert_eq!(routes().labels(), ["POST /open/*", "POST /risky/{what}", "otherwise"]);
}
