//! Tokens that an attacker would have believed.

use axum::http::StatusCode;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{advance, pause, resume};

use super::provider::{
    CLIENT, Login, Provider, SECRET, SigningKey, begun, come_back, now, session_of, set_up,
    signed_in,
};
use crate::admin::world::World;

/// What a browser meets that brings this token back.
async fn refused(world: &World, provider: &Provider, login: &Login, token: String, why: &str) {
    provider.script(|script| script.token = token);
    let answer = come_back(world, &login.back("c"), login.cookie()).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{why}: {}", answer.text);
    assert!(answer.text.contains("is not believed"), "{why}: {}", answer.text);
    assert!(answer.text.contains(why), "{why}: {}", answer.text);
    assert_eq!(session_of(&answer), None, "{why}");
}

#[tokio::test]
async fn a_token_with_a_claim_that_is_not_right_signs_nobody_in() {
    let (provider, key, world) = set_up().await;
    let now = now();
    const LIBRARY: &str = "one of its claims is not right";
    for (changed, why) in [
        (json!({ "nonce": "of another sign-in" }), "another sign-in"),
        (json!({ "nonce": null }), "another sign-in"),
        (json!({ "aud": "another client" }), LIBRARY),
        (json!({ "aud": null }), LIBRARY),
        (json!({ "aud": [CLIENT, "another client"] }), "somebody else"),
        (json!({ "aud": [CLIENT, "another client"], "azp": "another client" }), "somebody else"),
        (json!({ "azp": "another client" }), "somebody else"),
        (json!({ "iss": "https://evil.example" }), LIBRARY),
        (json!({ "iss": null }), LIBRARY),
        (json!({ "exp": now - 120 }), LIBRARY),
        (json!({ "exp": null }), LIBRARY),
        (json!({ "nbf": now + 3600 }), LIBRARY),
        (json!({ "iat": now + 3600 }), "another time"),
        (json!({ "iat": now - 3600 }), "another time"),
        (json!({ "iat": null }), "when it was made"),
        (json!({ "sub": null }), LIBRARY),
    ] {
        let login = begun(&world, &provider.issuer).await;
        let mut claims = provider.claims(&login, &json!(["oncall"]));
        claims.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        refused(&world, &provider, &login, key.signs(&claims), why).await;
    }
    let answer = signed_in(&world, &provider, &key, &json!(["oncall"])).await;
    assert!(session_of(&answer).is_some(), "an honest one does: {}", answer.text);
}

/// A token that names any algorithm, signed by anything.
fn forged(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let parts =
        [header.to_string().into_bytes(), claims.to_string().into_bytes(), signature.to_vec()];
    parts.map(|part| BASE64_URL_SAFE_NO_PAD.encode(part)).join(".")
}

/// A token signed by a secret instead of a key.
fn by_secret(secret: &[u8], id: &str, claims: &Value) -> String {
    let header = Header { kid: Some(id.to_owned()), ..Header::new(Algorithm::HS256) };
    encode(&header, claims, &EncodingKey::from_secret(secret)).unwrap()
}

#[tokio::test]
async fn a_token_that_the_providers_key_did_not_sign_signs_nobody_in() {
    let (provider, key, world) = set_up().await;
    let (public_pem, raw) = (key.pair.public_key_pem(), key.pair.public_key_raw().to_vec());
    let secret =
        json!({ "kty": "oct", "kid": "oct", "k": BASE64_URL_SAFE_NO_PAD.encode("published") });
    let encrypting = SigningKey::new("encrypting");
    let mut published = encrypting.published();
    published["use"] = json!("enc");
    provider.script(|script| script.keys.extend([secret, published, json!({ "kty": "new kind" })]));
    let stranger = SigningKey::new("one");
    for (forge, why) in [
        ("none", "not right"),
        ("none with a signature", "not right"),
        ("the public key as a secret", "by a secret"),
        ("the raw public key as a secret", "by a secret"),
        ("the client's secret", "by a secret"),
        ("a published secret", "by a secret"),
        ("another key of the same name", "not right"),
        ("a key that is not published", "does not publish"),
        ("a key for encryption", "does not publish"),
        ("another claim", "not right"),
        ("an extension", "extensions"),
        ("no token", "not right"),
    ] {
        let login = begun(&world, &provider.issuer).await;
        let claims = provider.claims(&login, &json!(["oncall"]));
        let honest = key.signs(&claims);
        let (_, signature) = honest.rsplit_once('.').unwrap();
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).unwrap();
        let token = match forge {
            "none" => forged(&json!({ "alg": "none", "kid": "one" }), &claims, b""),
            "none with a signature" => forged(&json!({ "alg": "none" }), &claims, &signature),
            "the public key as a secret" => by_secret(public_pem.as_bytes(), "one", &claims),
            "the raw public key as a secret" => by_secret(&raw, "one", &claims),
            "the client's secret" => by_secret(SECRET.as_bytes(), "one", &claims),
            "a published secret" => by_secret(b"published", "oct", &claims),
            "another key of the same name" => stranger.signs(&claims),
            "a key that is not published" => SigningKey::new("two").signs(&claims),
            "a key for encryption" => encrypting.signs(&claims),
            "another claim" => {
                let richer = provider.claims(&login, &json!(["oncall", "admin"]));
                forged(&json!({ "alg": "ES256", "kid": "one" }), &richer, &signature)
            }
            "an extension" => forged(
                &json!({ "alg": "ES256", "crit": ["b64"], "b64": false }),
                &claims,
                &signature,
            ),
            _ => "nonsense".to_owned(),
        };
        refused(&world, &provider, &login, token, why).await;
    }
}

#[tokio::test]
async fn a_key_that_came_after_the_last_look_is_asked_for_and_one_that_is_gone_counts_no_more() {
    let (provider, old, world) = set_up().await;
    let groups = json!(["oncall"]);
    assert!(session_of(&signed_in(&world, &provider, &old, &groups).await).is_some());
    assert!(session_of(&signed_in(&world, &provider, &old, &groups).await).is_some());
    assert_eq!(provider.keys_asked.load(Relaxed), 1, "keys are remembered");
    let new = SigningKey::new("two");
    provider.script(|script| script.keys = vec![new.published()]);
    after(Duration::from_secs(2)).await;
    assert!(session_of(&signed_in(&world, &provider, &new, &groups).await).is_some());
    assert_eq!(provider.keys_asked.load(Relaxed), 2);
    let answer = signed_in(&world, &provider, &old, &groups).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(session_of(&answer), None);
}

#[tokio::test]
async fn keys_of_every_public_kind_are_believed_by_their_algorithm_alone() {
    let (provider, _, world) = set_up().await;
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let signer = EncodingKey::from_ed_pem(pair.serialize_pem().as_bytes()).unwrap();
    let x = BASE64_URL_SAFE_NO_PAD.encode(pair.public_key_raw());
    for (alg, is_believed) in [("EdDSA", true), ("ES256", false)] {
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "alg": alg });
        provider.script(|script| script.keys = vec![jwk]);
        after(Duration::from_secs(11 * 60)).await;
        let login = begun(&world, &provider.issuer).await;
        let claims = provider.claims(&login, &json!("staff"));
        // Without a name, since there is one key alone.
        let token = encode(&Header::new(Algorithm::EdDSA), &claims, &signer).unwrap();
        provider.script(|script| script.token = token);
        let answer = come_back(&world, &login.back("c"), login.cookie()).await;
        assert_eq!(session_of(&answer).is_some(), is_believed, "{alg}: {}", answer.text);
    }
}

/// Lets this time pass for the gateway.
pub(super) async fn after(span: Duration) {
    pause();
    advance(span).await;
    resume();
}
