//! Browsers: sessions, roles, and requests that other pages cause.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use hapax_gateway::admin::{AdminAccess, AdminSecret};
use serde_json::{Value, json};
use tokio::time::advance;

use super::world::{Answer, HOST, READ_TOKEN, TOKEN, World, id};

const OPERATIONS: &str = "/v1/operations";

async fn look(world: &World, cookie: &str) -> Answer {
    world.send(World::by_page("GET", OPERATIONS, cookie).body(Body::empty()).unwrap()).await
}

fn release() -> Value {
    json!({ "fence": 1, "who": "ada", "why": "asked the bank", "even_if_running": true })
}

#[tokio::test(start_paused = true)]
async fn a_session_is_a_cookie_that_no_script_reads_and_no_other_site_sends() {
    let world = World::new();
    let body = json!({ "token": TOKEN }).to_string();
    let request = World::by_page("POST", "/session", "").body(Body::from(body)).unwrap();
    let answer = world.send(request).await;
    assert_eq!(answer.json()["role"], "operate");
    let cookie = answer.header("set-cookie").to_owned();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    let secret = pair.strip_prefix("hapax-session-8081=").unwrap();
    assert_eq!(secret.len(), 64);
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    assert!(!cookie.contains(TOKEN));
    assert_eq!(look(&world, pair).await.status, StatusCode::OK);
    assert_ne!(world.sign_in(TOKEN).await, pair, "each session is another secret");
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_signed_in_is_told_whether_they_could_be() {
    for (world, configured) in [(World::new(), true), (World::with_token(None), false)] {
        let asked = World::by_page("GET", "/session", "").body(Body::empty()).unwrap();
        let answer = world.send(asked).await.json();
        assert_eq!(answer["configured"], configured);
        assert_eq!(answer["role"], Value::Null);
        let body = Body::from(json!({ "token": "" }).to_string());
        let tried = world.send(World::by_page("POST", "/session", "").body(body).unwrap()).await;
        assert_eq!(tried.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_login_is_refused_and_opens_nothing() {
    let world = World::new();
    for (body, status) in [
        ("{\"token\": \"open sesam\"}".to_owned(), StatusCode::UNAUTHORIZED),
        ("{}".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        ("{\"token\": \"a\", \"more\": 1}".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        ("token=open+sesame".to_owned(), StatusCode::UNPROCESSABLE_ENTITY),
        (format!("{{\"token\": \"{}\"}}", "x".repeat(9000)), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let request = World::by_page("POST", "/session", "").body(Body::from(body.clone()));
        let answer = world.send(request.unwrap()).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert!(!answer.headers.contains_key("set-cookie"));
    }
    for made_up in ["hapax-session-8081=0", "hapax-session-8081=", "other=1"] {
        assert_eq!(look(&world, made_up).await.status, StatusCode::UNAUTHORIZED, "{made_up}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_ends_when_somebody_signs_out_and_after_half_a_day() {
    let world = World::new();
    let (one, other) = (world.sign_in(TOKEN).await, world.sign_in(TOKEN).await);
    let out = World::by_page("DELETE", "/session", &one).body(Body::empty()).unwrap();
    let out = world.send(out).await;
    assert_eq!(out.status, StatusCode::NO_CONTENT);
    assert!(out.header("set-cookie").ends_with("Max-Age=0"));
    let over = look(&world, &one).await;
    assert_eq!(over.status, StatusCode::UNAUTHORIZED);
    assert!(over.text.contains("sign in again"), "{}", over.text);
    assert_eq!(look(&world, &other).await.status, StatusCode::OK);
    advance(Duration::from_secs(12 * 60 * 60)).await;
    assert_eq!(look(&world, &other).await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn beyond_sixty_four_sessions_the_oldest_ends() {
    let world = World::new();
    let mut cookies = Vec::new();
    for _ in 0..65 {
        cookies.push(world.sign_in(TOKEN).await);
    }
    assert_eq!(look(&world, &cookies[0]).await.status, StatusCode::UNAUTHORIZED);
    for cookie in [&cookies[1], &cookies[64]] {
        assert_eq!(look(&world, cookie).await.status, StatusCode::OK);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_may_only_look_changes_nothing_by_token_or_by_session() {
    let world = World::new();
    world.leave_in_doubt("k").await;
    let (cookie, path) =
        (world.sign_in(READ_TOKEN).await, format!("{OPERATIONS}/{}/release", id("k")));
    let document = release().to_string();
    let by_token = Request::post(&path).header("authorization", format!("Bearer {READ_TOKEN}"));
    let by_session = World::by_page("POST", &path, &cookie);
    for request in [by_token, by_session] {
        let answer = world.send(request.body(Body::from(document.clone())).unwrap()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert_eq!(answer.json()["code"], "read-only");
        assert_eq!(answer.header("content-type"), "application/problem+json");
    }
    assert_eq!(look(&world, &cookie).await.json()["operations"][0]["state"], "in_doubt");
    let cookie = world.sign_in(TOKEN).await;
    let request = World::by_page("POST", &path, &cookie).body(Body::from(document)).unwrap();
    assert_eq!(world.send(request).await.status, StatusCode::OK);
}

/// What a change by this session meets, if one of its headers is another, or is not there.
async fn forged(header: &str, value: Option<&str>) -> Answer {
    let world = World::new();
    world.leave_in_doubt("k").await;
    let cookie = world.sign_in(TOKEN).await;
    let path = format!("{OPERATIONS}/{}/release", id("k"));
    let mut request = World::by_page("POST", &path, &cookie);
    request.headers_mut().unwrap().remove(header);
    if let Some(value) = value {
        request = request.header(header, value);
    }
    let answer = world.send(request.body(Body::from(release().to_string())).unwrap()).await;
    let state = look(&world, &cookie).await.json()["operations"][0]["state"].clone();
    let is_changed = state == "released";
    assert_eq!(is_changed, answer.status == StatusCode::OK, "{header} {value:?}: {state}");
    answer
}

#[tokio::test(start_paused = true)]
async fn a_change_that_another_page_caused_is_refused_whatever_it_cannot_help_saying() {
    for (header, value, status) in [
        ("hapax-dashboard", None, StatusCode::FORBIDDEN),
        ("origin", Some("http://evil.example"), StatusCode::FORBIDDEN),
        ("origin", Some("http://127.0.0.1:3000"), StatusCode::FORBIDDEN),
        ("origin", Some("null"), StatusCode::FORBIDDEN),
        ("sec-fetch-site", Some("cross-site"), StatusCode::FORBIDDEN),
        ("sec-fetch-site", Some("same-site"), StatusCode::FORBIDDEN),
        ("sec-fetch-site", Some("none"), StatusCode::FORBIDDEN),
        ("host", Some("evil.example:8081"), StatusCode::MISDIRECTED_REQUEST),
        ("host", Some("10.0.0.9:8081"), StatusCode::MISDIRECTED_REQUEST),
        ("sec-fetch-site", None, StatusCode::OK),
        ("origin", None, StatusCode::OK),
    ] {
        assert_eq!(forged(header, value).await.status, status, "{header}: {value:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_by_a_session_through_a_name_that_is_not_ours() {
    let hosts = vec!["hapax.example".to_owned()];
    let address = HOST.parse().unwrap();
    let operate = AdminSecret::new(TOKEN);
    let world =
        World::with_access(AdminAccess { operate, hosts, address, ..AdminAccess::default() });
    let cookie = world.sign_in(TOKEN).await;
    for (host, status) in [
        ("127.0.0.1:8081", StatusCode::OK),
        ("localhost:8081", StatusCode::OK),
        ("[::1]:8081", StatusCode::OK),
        ("hapax.example", StatusCode::OK),
        ("hapax.example:443", StatusCode::OK),
        ("HAPAX.example", StatusCode::OK),
        ("evil.example:8081", StatusCode::MISDIRECTED_REQUEST),
        ("hapax.example.evil.example", StatusCode::MISDIRECTED_REQUEST),
        ("", StatusCode::MISDIRECTED_REQUEST),
    ] {
        let mut request = World::by_page("GET", OPERATIONS, &cookie);
        request.headers_mut().unwrap().insert("host", host.parse().unwrap());
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{host}");
        let told = answer.text.contains("admin_hosts");
        assert_eq!(told, status == StatusCode::MISDIRECTED_REQUEST, "{host}: {}", answer.text);
        let page = Request::get("/").header("host", host).body(Body::empty()).unwrap();
        assert_eq!(world.send(page).await.status, status, "the page by {host}");
    }
    // A program that shows the token may come by any name, as before.
    let request = Request::get(OPERATIONS).header("host", "hapax-admin.internal");
    let request = request.header("authorization", format!("Bearer {TOKEN}"));
    assert_eq!(world.send(request.body(Body::empty()).unwrap()).await.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_not_saved_by_a_right_cookie() {
    let world = World::new();
    let cookie = world.sign_in(TOKEN).await;
    for wrong in ["Bearer nonsense", "Basic nonsense"] {
        let request = World::by_page("GET", OPERATIONS, &cookie).header("authorization", wrong);
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{wrong}");
    }
}
