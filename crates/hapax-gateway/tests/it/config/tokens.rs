//! A signed token names the tenant, and nothing else about it is believed.
//!
//! The keys beside this file are for these tests alone.

use http::{StatusCode, request::Builder};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::{
    routes,
    world::{World, keyed},
};

const SECRET: &str = "a secret that is long enough to be one";
/// In the year 2100, and in 2001.
const LATE: u64 = 4_102_444_800;
const EARLY: u64 = 1_000_000_000;

fn world(settings: &str) -> World {
    let key =
        if settings.contains("_file") { String::new() } else { format!("secret = {SECRET:?}") };
    World::new(routes(&format!("[tenant]\nfrom = \"jwt\"\n{key}\n{settings}")))
}

fn signed(claims: &Value) -> String {
    encode(&Header::default(), claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
}

fn bearing(token: &str) -> Builder {
    keyed().header("authorization", format!("Bearer {token}"))
}

/// What a request with this token hears.
async fn check(world: &World, token: &str, status: StatusCode) {
    assert_eq!(world.send("10.0.0.1", bearing(token)).await.0, status, "{token}");
}

#[tokio::test]
async fn a_good_token_names_the_tenant_whatever_else_changes_in_it() {
    let world = world("");
    let first = signed(&json!({ "sub": "acme", "exp": LATE }));
    let renewed = signed(&json!({ "sub": "acme", "exp": LATE + 1, "jti": "2" }));
    let other = signed(&json!({ "sub": "beta", "exp": LATE }));
    assert_eq!(world.send("10.0.0.1", bearing(&first)).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.0.0.1", bearing(&renewed)).await, (StatusCode::OK, true));
    assert_eq!(world.send("10.0.0.1", bearing(&other)).await, (StatusCode::OK, false));
}

#[tokio::test]
async fn a_token_out_of_its_time_or_without_a_tenant_is_refused() {
    let world = world("");
    for claims in [
        json!({ "sub": "acme", "exp": EARLY }),
        json!({ "sub": "acme" }),
        json!({ "sub": "acme", "exp": "never" }),
        json!({ "sub": "acme", "exp": LATE, "nbf": LATE }),
        json!({ "exp": LATE }),
        json!({ "sub": ["acme"], "exp": LATE }),
        json!({ "sub": "", "exp": LATE }),
        json!({ "sub": "acme", "exp": LATE, "aud": "somebody else" }),
    ] {
        check(&world, &signed(&claims), StatusCode::UNAUTHORIZED).await;
    }
}

#[tokio::test]
async fn a_token_that_somebody_else_signed_is_refused() {
    let world = world("");
    let claims = json!({ "sub": "acme", "exp": LATE });
    let stranger = EncodingKey::from_secret(b"another secret that is long enough too");
    let forged = encode(&Header::default(), &claims, &stranger).unwrap();
    let good = signed(&claims);
    let (body, _) = good.rsplit_once('.').unwrap();
    for token in [forged.as_str(), &format!("{body}."), body, "", "x", "a.b.c"] {
        check(&world, token, StatusCode::UNAUTHORIZED).await;
    }
}

#[tokio::test]
async fn a_token_that_says_it_is_not_signed_is_refused() {
    // The header is {"alg":"none","typ":"JWT"}.
    let (none, good) =
        ("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0", signed(&json!({ "sub": "acme", "exp": LATE })));
    let mut parts = good.split('.');
    let claims = parts.nth(1).unwrap();
    for token in [format!("{none}.{claims}."), format!("{none}.{claims}.{}", parts.next().unwrap())]
    {
        check(&world(""), &token, StatusCode::UNAUTHORIZED).await;
    }
}

#[tokio::test]
async fn only_one_bearer_credential_is_taken() {
    let (world, token) = (world(""), signed(&json!({ "sub": "acme", "exp": LATE })));
    let twice = bearing(&token).header("authorization", "Bearer x");
    let basic = keyed().header("authorization", format!("Basic {token}"));
    for request in [twice, basic, keyed().header("authorization", token.as_str()), keyed()] {
        assert_eq!(world.send("10.0.0.1", request).await.0, StatusCode::UNAUTHORIZED);
    }
    let small = keyed().header("authorization", format!("bearer {token}"));
    assert_eq!(world.send("10.0.0.1", small).await.0, StatusCode::OK);
}

#[tokio::test]
async fn issuers_and_audiences_are_demanded_where_they_are_named() {
    let world = world("issuer = [\"https://a\", \"https://b\"]\naudience = \"pay\"");
    let claims =
        |iss: &str, aud: Value| json!({ "sub": "acme", "exp": LATE, "iss": iss, "aud": aud });
    let (a, b) = (
        signed(&claims("https://a", "pay".into())),
        signed(&claims("https://b", json!(["x", "pay"]))),
    );
    assert_eq!(world.send("10.0.0.1", bearing(&a)).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.0.0.1", bearing(&b)).await, (StatusCode::OK, false), "another acme");
    assert_eq!(world.send("10.0.0.1", bearing(&a)).await, (StatusCode::OK, true));
    for token in [
        signed(&claims("https://c", "pay".into())),
        signed(&claims("https://a", "other".into())),
        signed(&json!({ "sub": "acme", "exp": LATE, "aud": "pay" })),
        signed(&json!({ "sub": "acme", "exp": LATE, "iss": "https://a" })),
    ] {
        check(&world, &token, StatusCode::UNAUTHORIZED).await;
    }
}

#[tokio::test]
async fn a_public_key_verifies_what_its_private_key_signed() {
    let claims = json!({ "account": 7, "exp": LATE });
    let keys = format!("{}/tests/it/config/keys", env!("CARGO_MANIFEST_DIR"));
    let pem = |name: &str| std::fs::read(format!("{keys}/{name}.pem")).unwrap();
    for (name, algorithm, private) in [
        ("rsa", Algorithm::RS256, EncodingKey::from_rsa_pem(&pem("rsa"))),
        ("p256", Algorithm::ES256, EncodingKey::from_ec_pem(&pem("p256"))),
        ("ed25519", Algorithm::EdDSA, EncodingKey::from_ed_pem(&pem("ed25519"))),
    ] {
        let path = format!("{keys}/{name}.pub.pem");
        let world = world(&format!("public_key_file = {path:?}\nclaim = \"account\""));
        let token = encode(&Header::new(algorithm), &claims, &private.unwrap()).unwrap();
        check(&world, &token, StatusCode::OK).await;
        // The public key is no secret: whoever signs with it as if it were must not be believed.
        let public = EncodingKey::from_secret(&pem(&format!("{name}.pub")));
        let confused = encode(&Header::new(Algorithm::HS256), &claims, &public).unwrap();
        check(&world, &confused, StatusCode::UNAUTHORIZED).await;
    }
}
