use axum::{
    body::Body,
    http::{Request, StatusCode},
};

use super::world::{Answer, TOKEN, World};

async fn offer(world: &World, authorization: Option<&str>) -> Answer {
    let mut request = Request::get("/v1/operations");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    world.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn the_token_opens_the_api_however_its_scheme_is_written() {
    let world = World::new();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let answer = offer(&world, Some(&format!("{scheme} {TOKEN}"))).await;
        assert_eq!(answer.status, StatusCode::OK, "{scheme}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_shows_no_token_is_asked_for_one() {
    let world = World::new();
    for offered in [None, Some("Basic b3BlbjpzZXNhbWU="), Some("Bearer"), Some(TOKEN)] {
        let answer = offer(&world, offered).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{offered:?}");
        assert_eq!(answer.header("www-authenticate"), "Bearer realm=\"hapax\"");
        assert_eq!(answer.header("content-type"), "application/problem+json");
        assert_eq!(answer.json()["code"], "unauthorized");
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_almost_right_is_wrong() {
    let world = World::new();
    for wrong in ["", "open sesam", "open sesame!", "Open sesame", "open sesamf"] {
        let answer = offer(&world, Some(&format!("Bearer {wrong}"))).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{wrong:?}");
        assert!(answer.header("www-authenticate").ends_with("error=\"invalid_token\""));
        assert!(!answer.text.contains(TOKEN));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_configured_token_nobody_gets_in_and_all_are_told_how_to_set_one() {
    for blank in [None, Some(""), Some("  ")] {
        let world = World::with_token(blank);
        for offered in ["Bearer ", "Bearer x", "Bearer   "] {
            let answer = offer(&world, Some(offered)).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
            assert!(answer.text.contains("admin_token"), "{}", answer.text);
        }
        assert_eq!(world.get("/metrics").await.status, StatusCode::OK);
        assert_eq!(world.get("/healthz").await.status, StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_under_v1_says_without_a_token_whether_it_is_there() {
    let world = World::new();
    for path in ["/v1/operations/x/release", "/v1/openapi.json", "/v1/nothing", "/v1"] {
        assert_eq!(world.get(path).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
}
