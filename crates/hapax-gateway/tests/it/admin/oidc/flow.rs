//! The way to the provider and back, and others who try to walk it.

use std::time::Duration;

use axum::{
    body::Body,
    http::{Request, StatusCode},
};
use base64::{Engine as _, prelude::*};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    provider::{
        CLIENT, Provider, START, SigningKey, begun, come_back, session_of, set_up, signed_in,
        start, world,
    },
    tokens::after,
};
use crate::admin::world::{HOST, World};

async fn who(world: &World, cookie: &str) -> Value {
    let request = World::by_page("GET", "/session", cookie).body(Body::empty()).unwrap();
    world.send(request).await.json()
}

#[tokio::test]
async fn a_person_is_signed_in_by_a_code_that_only_this_browser_and_this_gateway_can_use() {
    let (provider, key, world) = set_up().await;
    let login = begun(&world, &provider.issuer).await;
    let asked = |name: &str| login.asked[name].as_str();
    assert_eq!((asked("response_type"), asked("client_id")), ("code", CLIENT));
    assert_eq!((asked("scope"), asked("code_challenge_method")), ("openid email", "S256"));
    assert_eq!(asked("redirect_uri"), format!("http://{HOST}/session/oidc/callback"));
    let (_, attributes) = login.set_cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Lax; Path=/session/oidc; Max-Age=600");
    for secret in ["state", "nonce", "code_challenge"] {
        assert!(asked(secret).len() >= 43, "{secret} can be guessed");
        assert!(!login.cookie().contains(asked(secret)), "{secret} is in the cookie");
    }

    let token = key.signs(&provider.claims(&login, &json!(["oncall", "staff"])));
    provider.script(|script| script.token = token);
    let answer = come_back(&world, &login.back("c"), login.cookie()).await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "/"));
    assert_eq!(answer.header("cache-control"), "no-store");
    let session = session_of(&answer).unwrap();
    let (session, attributes) = session.split_once("; ").unwrap();
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    let mut cookies = answer.headers.get_all("set-cookie").iter();
    assert!(
        cookies.next_back().unwrap().to_str().unwrap().contains("Path=/session/oidc; Max-Age=0")
    );

    let shown = provider.script.lock().unwrap().shown.pop().unwrap();
    let (header, form) = shown;
    let basic = BASE64_STANDARD.encode("hapax:a%20secret%20%26%20more");
    assert_eq!(header.unwrap(), format!("Basic {basic}"));
    let challenge = Sha256::digest(&form["code_verifier"]);
    assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(challenge), asked("code_challenge"));
    assert_eq!(form["redirect_uri"], asked("redirect_uri"));
    assert_eq!(form["grant_type"], "authorization_code");
    assert!(!form.contains_key("client_secret") && !form.contains_key("client_id"));

    let who = who(&world, session).await;
    assert_eq!((&who["role"], &who["person"]), (&json!("operate"), &json!("ada@example.com")));
    assert_eq!(who["provider"], json!({ "called": "Example", "away": false }));
}

#[tokio::test]
async fn a_gateway_shows_its_secret_as_the_provider_takes_it_or_has_none() {
    let post = json!({ "token_endpoint_auth_methods_supported": ["client_secret_post"] });
    for (changed, secret, shown) in [(post, Some("s"), Some("s")), (json!({}), None, None)] {
        let (provider, key) = (Provider::start().await, SigningKey::new("one"));
        provider.script(|script| (script.keys, script.changed) = (vec![key.published()], changed));
        let mut settings = provider.settings();
        settings.client_secret = secret.map(|secret| secret.to_owned().into());
        let world = world(settings);
        let answer = signed_in(&world, &provider, &key, &json!(["staff"])).await;
        assert!(session_of(&answer).is_some(), "{}", answer.text);
        let (header, form) = provider.script.lock().unwrap().shown.pop().unwrap();
        assert_eq!((header, form["client_id"].as_str()), (None, CLIENT));
        assert_eq!(form.get("client_secret").map(String::as_str), shown);
    }
}

/// What somebody who comes back is told, and that it opened nothing.
async fn not_begun(world: &World, path: &str, cookie: &str, case: &str) {
    let answer = come_back(world, path, cookie).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{case}: {}", answer.text);
    assert!(answer.text.contains("began no sign-in"), "{case}: {}", answer.text);
    assert!(answer.header("content-type").starts_with("text/html"), "{case}");
    assert!(answer.header("content-security-policy").contains("script-src 'self'"), "{case}");
    assert_eq!(session_of(&answer), None, "{case}");
}

#[tokio::test]
async fn whoever_comes_back_without_having_begun_is_not_signed_in() {
    let (provider, key, world) = set_up().await;
    let mine = begun(&world, &provider.issuer).await;
    let attackers = begun(&world, &provider.issuer).await;
    let token = key.signs(&provider.claims(&attackers, &json!(["oncall"])));
    provider.script(|script| script.token = token);
    let callback = "/session/oidc/callback";
    // Somebody is led to the end of the attacker's sign-in, with no cookie or with their own.
    not_begun(&world, &attackers.back("c"), "", "no cookie").await;
    let attackers = begun(&world, &provider.issuer).await;
    not_begun(&world, &attackers.back("c"), mine.cookie(), "another browser's state").await;
    not_begun(&world, &format!("{callback}?code=c&state=guess"), mine.cookie(), "a guess").await;
    not_begun(&world, &format!("{callback}?code=c"), mine.cookie(), "no state").await;
    not_begun(&world, callback, mine.cookie(), "nothing").await;
    let twice = format!("{}&state=two", mine.back("c"));
    not_begun(&world, &twice, mine.cookie(), "two states").await;
    assert!(provider.script.lock().unwrap().shown.is_empty(), "no code was shown to the provider");
    // The sign-in that was begun here is not disturbed by any of it.
    let token = key.signs(&provider.claims(&mine, &json!(["oncall"])));
    provider.script(|script| script.token = token);
    let answer = come_back(&world, &mine.back("c"), mine.cookie()).await;
    assert!(session_of(&answer).is_some(), "{}", answer.text);
    not_begun(&world, &mine.back("c"), mine.cookie(), "the same address again").await;
}

#[tokio::test]
async fn a_code_of_another_sign_in_is_not_taken() {
    let (provider, _, world) = set_up().await;
    let login = begun(&world, &provider.issuer).await;
    let answer = come_back(&world, &login.back("stolen"), login.cookie()).await;
    assert_eq!(answer.status, StatusCode::BAD_GATEWAY);
    assert!(answer.text.contains("invalid_grant"), "{}", answer.text);
    assert_eq!(session_of(&answer), None);
    not_begun(&world, &login.back("c"), login.cookie(), "a second try").await;
}

#[tokio::test]
async fn a_sign_in_ends_after_ten_minutes_and_the_oldest_beyond_two_hundred_and_fifty_six() {
    let (provider, key, world) = set_up().await;
    let slow = begun(&world, &provider.issuer).await;
    after(Duration::from_secs(601)).await;
    not_begun(&world, &slow.back("c"), slow.cookie(), "after ten minutes").await;
    let oldest = begun(&world, &provider.issuer).await;
    let next = begun(&world, &provider.issuer).await;
    for _ in 0..255 {
        begun(&world, &provider.issuer).await;
    }
    not_begun(&world, &oldest.back("c"), oldest.cookie(), "the oldest").await;
    let token = key.signs(&provider.claims(&next, &json!(["staff"])));
    provider.script(|script| script.token = token);
    let answer = come_back(&world, &next.back("c"), next.cookie()).await;
    assert!(session_of(&answer).is_some(), "{}", answer.text);
}

#[tokio::test]
async fn no_other_page_begins_a_sign_in_and_none_is_begun_by_a_name_that_is_not_ours() {
    let (_, _, world) = set_up().await;
    for (header, value, status) in [
        ("sec-fetch-site", "cross-site", StatusCode::FORBIDDEN),
        ("sec-fetch-site", "same-site", StatusCode::FORBIDDEN),
        ("host", "evil.example", StatusCode::MISDIRECTED_REQUEST),
        ("sec-fetch-site", "none", StatusCode::SEE_OTHER),
    ] {
        let mut request = World::by_page("GET", START, "");
        request.headers_mut().unwrap().insert(header, value.parse().unwrap());
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, status, "{header}: {value}");
        let is_begun = answer.headers.contains_key("set-cookie");
        assert_eq!(is_begun, status == StatusCode::SEE_OTHER, "{header}: {value}");
    }
    let request = Request::get("/session/oidc/callback?code=c&state=s");
    let request = request.header("host", "evil.example").body(Body::empty()).unwrap();
    assert_eq!(world.send(request).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn behind_a_proxy_people_are_sent_back_to_the_dashboards_own_address_and_cookies_are_secure()
{
    let (provider, key, _) = set_up().await;
    let mut settings = provider.settings();
    settings.dashboard = Some("https://hapax.example.com/".parse().unwrap());
    let world = world(settings);
    let elsewhere = start(&world).await;
    assert_eq!(elsewhere.status, StatusCode::MISDIRECTED_REQUEST);
    assert!(elsewhere.text.contains("https://hapax.example.com/"), "{}", elsewhere.text);
    let mut request = World::by_page("GET", START, "");
    request.headers_mut().unwrap().insert("host", "hapax.example.com".parse().unwrap());
    let answer = world.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let page = answer.header("location");
    let callback = "redirect_uri=https%3A%2F%2Fhapax.example.com%2Fsession%2Foidc%2Fcallback";
    assert!(page.contains(callback), "{page}");
    let cookie = answer.header("set-cookie").to_owned();
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    let part = |name: &str| {
        let value = page.split(['?', '&']).find_map(|pair| pair.strip_prefix(name));
        value.unwrap().to_owned()
    };
    let mut login = begun(&self::world(provider.settings()), &provider.issuer).await;
    login.nonce = part("nonce=");
    let token = key.signs(&provider.claims(&login, &json!(["staff"])));
    provider.script(|script| script.token = token);
    let back = format!("/session/oidc/callback?code=c&state={}", part("state="));
    let request = Request::get(back).header("host", "hapax.example.com");
    let request = request.header("cookie", cookie.split(';').next().unwrap());
    let answer = world.send(request.body(Body::empty()).unwrap()).await;
    let session = session_of(&answer).unwrap();
    assert!(session.ends_with("; Secure"), "{session}");
}

#[tokio::test]
async fn without_a_provider_there_is_nothing_to_begin() {
    let world = World::new();
    assert_eq!(start(&world).await.status, StatusCode::NOT_FOUND);
    let answer = come_back(&world, "/session/oidc/callback?code=c&state=s", "").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(who(&world, "").await["provider"], Value::Null);
}
