//! Who is let in as what, and what is kept of them.

use axum::{body::Body, http::StatusCode};
use serde_json::{Value, json};

use super::provider::{begun, come_back, session_of, set_up, signed_in, world};
use crate::admin::world::{Answer, TOKEN, World, id};

fn cookie(answer: &Answer) -> String {
    let session = session_of(answer).unwrap_or_else(|| panic!("no session: {}", answer.text));
    session.split(';').next().unwrap().to_owned()
}

async fn role(world: &World, cookie: &str) -> Value {
    let request = World::by_page("GET", "/session", cookie).body(Body::empty()).unwrap();
    world.send(request).await.json()["role"].clone()
}

#[tokio::test]
async fn groups_say_what_somebody_may_do_and_whoever_has_none_is_told_why_they_are_not_let_in() {
    let (provider, key, world) = set_up().await;
    for (groups, expected) in [
        (json!(["oncall"]), Some("operate")),
        (json!(["staff", "oncall"]), Some("operate")),
        (json!(["others", "staff"]), Some("read")),
        (json!("staff"), Some("read")),
        (json!(["others"]), None),
        (json!(["Oncall", "oncall "]), None),
        (json!([["oncall"]]), None),
        (json!({ "oncall": true }), None),
        (json!("oncall staff"), None),
        (json!([]), None),
        (Value::Null, None),
    ] {
        let answer = signed_in(&world, &provider, &key, &groups).await;
        if let Some(expected) = expected {
            assert_eq!(role(&world, &cookie(&answer)).await, expected, "{groups}");
            continue;
        }
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{groups}");
        assert_eq!(session_of(&answer), None, "{groups}");
        for told in ["You are ada@example.com", "in no group", "the claim groups"] {
            assert!(answer.text.contains(told), "{groups}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn whoever_the_provider_does_not_vouch_for_has_no_name_and_is_not_let_in() {
    let (provider, key, world) = set_up().await;
    for changed in [
        json!({ "email": null }),
        json!({ "email": 7 }),
        json!({ "email": " " }),
        json!({ "email": "ada\nbo" }),
        json!({ "email": "a".repeat(300) }),
        json!({ "email_verified": false }),
        json!({ "email_verified": "false" }),
    ] {
        let login = begun(&world, &provider.issuer).await;
        let mut claims = provider.claims(&login, &json!(["oncall"]));
        claims.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        provider.script(|script| script.token = key.signs(&claims));
        let answer = come_back(&world, &login.back("c"), login.cookie()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{changed}");
        assert!(answer.text.contains("does not say who you are"), "{changed}: {}", answer.text);
        assert_eq!(session_of(&answer), None, "{changed}");
    }
    let mut settings = provider.settings();
    settings.person = "sub".to_owned();
    let by_number = self::world(settings);
    let answer = signed_in(&by_number, &provider, &key, &json!(["staff"])).await;
    let request = World::by_page("GET", "/session", &cookie(&answer)).body(Body::empty()).unwrap();
    assert_eq!(by_number.send(request).await.json()["person"], "7");
}

async fn release(world: &World, cookie: &str, document: &Value) -> Answer {
    let path = format!("/v1/operations/{}/release", id("k"));
    let request = World::by_page("POST", &path, cookie).body(Body::from(document.to_string()));
    world.send(request.unwrap()).await
}

#[tokio::test]
async fn what_a_person_changes_is_kept_with_their_name_which_they_cannot_choose() {
    let (provider, key, world) = set_up().await;
    world.leave_in_doubt("k").await;
    let looking = cookie(&signed_in(&world, &provider, &key, &json!(["staff"])).await);
    let order = json!({ "fence": 1, "why": "asked the bank", "even_if_running": true });
    assert_eq!(release(&world, &looking, &order).await.status, StatusCode::FORBIDDEN);
    let session = cookie(&signed_in(&world, &provider, &key, &json!(["oncall"])).await);
    let mut pretending = order.clone();
    pretending["who"] = json!("bo@example.com");
    let refused = release(&world, &session, &pretending).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("you are signed in as ada@example.com"), "{}", refused.text);
    let answer = release(&world, &session, &order).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    let shown = world.look(&format!("/v1/operations/{}", id("k"))).await.json();
    let notes = shown["notes"].as_array().unwrap();
    assert!(!notes.is_empty());
    assert!(notes.iter().all(|note| note["who"] == "ada@example.com"), "{notes:?}");

    // By a token nobody is known, so they have to say it.
    world.leave_in_doubt("k").await;
    let by_token = world.sign_in(TOKEN).await;
    let anonymous = json!({ "fence": 2, "why": "asked the bank", "even_if_running": true });
    let refused = release(&world, &by_token, &anonymous).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("who is empty"), "{}", refused.text);
}

#[tokio::test]
async fn a_person_does_not_choose_a_name_for_what_becomes_of_events_either() {
    let (provider, key, world) = set_up().await;
    let session = cookie(&signed_in(&world, &provider, &key, &json!(["oncall"])).await);
    for deed in ["replay", "pause", "resume"] {
        let path = format!("/v1/outbox/billing/{deed}");
        for (who, status) in [
            (json!("bo"), StatusCode::UNPROCESSABLE_ENTITY),
            (json!("ada@example.com"), StatusCode::NOT_FOUND),
            (json!(""), StatusCode::NOT_FOUND),
        ] {
            let mut order = json!({ "who": who, "why": "billing is mended" });
            if deed == "replay" {
                order["all"] = json!(true);
            }
            let request = World::by_page("POST", &path, &session);
            let answer = world.send(request.body(Body::from(order.to_string())).unwrap()).await;
            assert_eq!(answer.status, status, "{deed} {who}: {}", answer.text);
        }
    }
}
