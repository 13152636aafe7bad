//! A provider that is away, or that somebody else pretends to be.

use std::time::Duration;

use axum::{body::Body, http::StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    provider::{
        Provider, SigningKey, begun, come_back, session_of, set_up, signed_in, start, world,
    },
    tokens::after,
};
use crate::admin::world::{TOKEN, World};

async fn session(world: &World, cookie: &str) -> Value {
    let request = World::by_page("GET", "/session", cookie).body(Body::empty()).unwrap();
    world.send(request).await.json()
}

/// What the page says while the provider is of no use.
async fn told_away(world: &World, case: &str) {
    let answer = start(world).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{case}: {}", answer.text);
    assert_eq!(answer.header("location"), "/", "{case}");
    assert!(!answer.headers.contains_key("set-cookie"), "{case}");
    assert_eq!(session(world, "").await["provider"]["away"], true, "{case}");
}

#[tokio::test]
async fn while_the_provider_is_away_the_page_says_so_tokens_work_and_sessions_live_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (provider, key, world) = set_up().await;
    let person = session_of(&signed_in(&world, &provider, &key, &json!(["staff"])).await).unwrap();
    let person = person.split(';').next().unwrap();
    assert_eq!(session(&world, "").await["provider"]["away"], false);
    // It goes away when what it said is asked for again.
    provider.script(|script| script.configuration = Some((StatusCode::BAD_GATEWAY, String::new())));
    after(Duration::from_secs(3)).await;
    told_away(&world, "away").await;
    assert_eq!(session(&world, person).await["role"], "read", "the session lives on");
    let by_token = world.sign_in(TOKEN).await;
    assert_eq!(session(&world, &by_token).await["role"], "operate");
    provider.script(|script| script.configuration = None);
    after(Duration::from_secs(2)).await;
    assert!(session_of(&signed_in(&world, &provider, &key, &json!(["staff"])).await).is_some());
    assert_eq!(session(&world, "").await["provider"]["away"], false, "it is back");

    let mut settings = provider.settings();
    settings.issuer = nobody;
    told_away(&self::world(settings), "nobody is there").await;
}

#[tokio::test]
async fn a_provider_that_goes_away_in_between_signs_nobody_in() {
    let (provider, key, world) = set_up().await;
    let login = begun(&world, &provider.issuer).await;
    let token = key.signs(&provider.claims(&login, &json!(["oncall"])));
    provider.script(|script| (script.token, script.gives_tokens) = (token, Some(false)));
    let answer = come_back(&world, &login.back("c"), login.cookie()).await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text);
    assert!(answer.text.contains("sign in by a token"), "{}", answer.text);
    assert_eq!(session_of(&answer), None);
    assert_eq!(session(&world, "").await["provider"]["away"], true);
}

#[tokio::test]
async fn what_nobody_but_the_provider_should_say_is_not_followed() {
    let large = (StatusCode::OK, format!("{{\"issuer\": \"{}\"}}", "a".repeat(300_000)));
    let elsewhere = (StatusCode::FOUND, String::new());
    let nonsense = (StatusCode::OK, "<html>".to_owned());
    let evil = "http://evil.example/token";
    for (case, answered, changed) in [
        ("a redirect", Some(elsewhere), json!({})),
        ("no JSON", Some(nonsense), json!({})),
        ("a large answer", Some(large), json!({})),
        ("another issuer", None, json!({ "issuer": "https://evil.example" })),
        ("a token endpoint in the clear", None, json!({ "token_endpoint": evil })),
        ("keys in the clear", None, json!({ "jwks_uri": evil })),
        ("a login page in the clear", None, json!({ "authorization_endpoint": evil })),
        ("no login page", None, json!({ "authorization_endpoint": null })),
        ("no address", None, json!({ "authorization_endpoint": "javascript:alert(1)" })),
    ] {
        let provider = Provider::start().await;
        provider.script(|script| (script.configuration, script.changed) = (answered, changed));
        told_away(&world(provider.settings()), case).await;
    }
}

#[tokio::test]
async fn what_the_provider_says_instead_of_a_code_is_shown_as_text_and_believed_from_it_alone() {
    let (provider, _, world) = set_up().await;
    let callback = "/session/oidc/callback";
    let login = begun(&world, &provider.issuer).await;
    let state = &login.asked["state"];
    let markup = format!("{callback}?error=%3Cscript%3Ealert(1)%3C/script%3E&state={state}");
    let answer = come_back(&world, &markup, login.cookie()).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text.contains("&lt;script&gt;alert(1)"), "{}", answer.text);
    assert!(!answer.text.contains("<script>"), "{}", answer.text);
    let stranger = format!("{callback}?error=not+yours&state=guess");
    let answer = come_back(&world, &stranger, login.cookie()).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert!(!answer.text.contains("not yours"), "{}", answer.text);
    let (key, login) = (SigningKey::new("one"), begun(&world, &provider.issuer).await);
    provider.script(|script| script.token = key.signs(&json!({})));
    let mixed_up = format!("{}&iss=https%3A%2F%2Fevil.example", login.back("c"));
    let answer = come_back(&world, &mixed_up, login.cookie()).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert!(answer.text.contains("another provider"), "{}", answer.text);
    assert!(provider.script.lock().unwrap().shown.is_empty(), "the code went to nobody");
}
