//! An answer is for whoever it was given to, and nobody else learns that it exists.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering::Relaxed},
};

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::json;

use crate::{
    wire::{TOKEN, World},
    world::{Answer, Raw, ask, until},
};

pub(crate) const SECRET: &str = "a secret of at least thirty-two bytes";

/// A payment with these header lines under this key.
pub(crate) fn pay(lines: &str, key: &str) -> String {
    format!(
        "POST /pay HTTP/1.1\r\nhost: gateway\r\n{lines}idempotency-key: {key}\r\n\
         content-length: 3\r\n\r\nten"
    )
}

/// What a refusal says, without what differs from one moment to the next.
fn told(answer: &Answer) -> (u16, String, Vec<(String, String)>) {
    let mut headers: Vec<_> = answer.headers.clone().into_iter().collect();
    headers.retain(|(name, _)| name != "date");
    headers.sort();
    (answer.status, answer.text().to_owned(), headers)
}

/// Whoever sends one of `strangers` hears 401, and the same whether the key is used or not.
async fn nothing_is_told(world: &World, owner: &str, strangers: &[(&str, String)]) {
    let first = world.ask(pay(owner, "used")).await;
    assert_eq!((first.status, first.is_replay()), (201, false), "{first:?}");
    assert!(world.ask(pay(owner, "used")).await.is_replay());
    let (effects, claims) = (world.upstream.total(), world.claimed().await.len());
    for (name, lines) in strangers {
        let used = world.ask(pay(lines, "used")).await;
        assert_eq!(
            (used.status, used.code().as_deref()),
            (401, Some("credential-missing")),
            "{name}"
        );
        let unused = world.ask(pay(lines, "unused")).await;
        assert_eq!(told(&used), told(&unused), "{name}");
    }
    assert_eq!((world.upstream.total(), world.claimed().await.len()), (effects, claims));
}

/// Somebody else has an execution and an answer of their own.
async fn others_have_their_own(world: &World, owner: &str, others: &[&str]) {
    let first = world.ask(pay(owner, "used")).await;
    for other in others {
        let own = world.ask(pay(other, "used")).await;
        assert!(own.status == 201 && !own.is_replay(), "{other}: {own:?}");
        assert_ne!(own.body, first.body, "{other}");
    }
}

#[tokio::test]
async fn by_credential_a_replay_is_for_the_same_credential_alone() {
    let world = World::start("").await;
    let alice = "authorization: alice\r\n";
    let strangers = [("none", String::new()), ("two", alice.repeat(2))];
    nothing_is_told(&world, alice, &strangers).await;
    let others =
        ["authorization: bob\r\n", "authorization: Alice\r\n", "authorization: alice2\r\n"];
    others_have_their_own(&world, alice, &others).await;
}

#[tokio::test]
async fn by_header_a_replay_is_for_the_same_account_alone() {
    let tenant = |proxy| {
        format!(
            "[tenant]\nfrom = \"header\"\nheader = \"X-Account\"\ntrusted_proxies = [{proxy:?}]"
        )
    };
    let world = World::start(&tenant("127.0.0.1")).await;
    let acme = "x-account: acme\r\nauthorization: alice\r\n";
    let strangers = [
        ("none", "authorization: alice\r\n".to_owned()),
        ("two", format!("{acme}x-account: other\r\n")),
        ("empty", "x-account:\r\n".to_owned()),
    ];
    nothing_is_told(&world, acme, &strangers).await;
    others_have_their_own(&world, acme, &["x-account: other\r\nauthorization: alice\r\n"]).await;
    let wary = World::start(&tenant("10.0.0.0/8")).await;
    let refused = wary.ask(pay(acme, "used")).await;
    assert_eq!((refused.status, wary.upstream.total()), (401, 0), "not from a trusted proxy");
}

pub(crate) fn token(algorithm: Algorithm, secret: &str, subject: &str, expires: u64) -> String {
    let claims = json!({ "sub": subject, "exp": expires });
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::new(algorithm), &claims, &key).unwrap();
    format!("authorization: Bearer {token}\r\n")
}

#[tokio::test]
async fn by_token_a_replay_is_for_the_same_subject_alone() {
    const FAR: u64 = 4_000_000_000;
    let world = World::start(&format!("[tenant]\nfrom = \"jwt\"\nsecret = {SECRET:?}\n")).await;
    let acme = token(Algorithm::HS256, SECRET, "acme", FAR);
    // {"alg":"none"} and the claims of acme, without a signature.
    let unsigned = "authorization: Bearer eyJhbGciOiJub25lIn0.\
                    eyJzdWIiOiJhY21lIiwiZXhwIjo0MDAwMDAwMDAwfQ.\r\n";
    let strangers = [
        ("none", String::new()),
        ("not a token", "authorization: Bearer acme\r\n".to_owned()),
        ("not a bearer", acme.replace("Bearer", "Basic")),
        ("expired", token(Algorithm::HS256, SECRET, "acme", 1_000_000_000)),
        ("other secret", token(Algorithm::HS256, &SECRET.to_uppercase(), "acme", FAR)),
        ("other algorithm", token(Algorithm::HS512, SECRET, "acme", FAR)),
        ("unsigned", unsigned.to_owned()),
        ("nobody", token(Algorithm::HS256, SECRET, "", FAR)),
        ("two", acme.repeat(2)),
    ];
    nothing_is_told(&world, &acme, &strangers).await;
    let later = token(Algorithm::HS256, SECRET, "acme", FAR + 1);
    assert!(world.ask(pay(&later, "used")).await.is_replay(), "another token of the same subject");
    others_have_their_own(&world, &acme, &[&token(Algorithm::HS256, SECRET, "other", FAR)]).await;
}

/// Somebody who says with this status who a caller is: always `acme`.
async fn whoami(status: &Arc<AtomicU16>) -> Raw {
    let status = Arc::clone(status);
    Raw::start(move |_| {
        let status = status.load(Relaxed);
        format!("HTTP/1.1 {status} x\r\nx-account: acme\r\ncontent-length: 0\r\n\r\n").into_bytes()
    })
    .await
}

#[tokio::test]
async fn whoever_lost_the_right_hears_nothing_more_not_even_a_replay() {
    let status = Arc::new(AtomicU16::new(200));
    let callers = whoami(&status).await;
    let world = World::start(&format!(
        "[tenant]\nfrom = \"subrequest\"\nurl = \"http://{}/whoami\"\nheader = \"X-Account\"\n\
         [[route]]\nmatch = \"POST /later\"\nin_flight = \"accept\"\nkeep_credentials = true\n",
        callers.address
    ))
    .await;
    let alice = "authorization: alice\r\n";
    assert_eq!(world.ask(pay(alice, "used")).await.status, 201);
    let later = pay(alice, "used").replace("/pay", "/later");
    let address = world.ask(&later).await.header("location").unwrap().to_owned();
    let look = format!("GET {address} HTTP/1.1\r\nhost: a\r\n{alice}\r\n");
    until("it to be run", async || world.ask(&look).await.status == 201).await;
    let effects = world.upstream.total();
    for (answer, expected, code) in [
        (401, 401, "credential-missing"),
        (403, 403, "caller-refused"),
        (500, 503, "caller-unverifiable"),
        (302, 503, "caller-unverifiable"),
    ] {
        status.store(answer, Relaxed);
        for request in [pay(alice, "used"), pay(alice, "unused"), later.clone(), look.clone()] {
            let said = world.ask(&request).await;
            assert_eq!((said.status, said.code().as_deref()), (expected, Some(code)), "{request}");
        }
    }
    status.store(200, Relaxed);
    assert!(world.ask(pay(alice, "used")).await.is_replay());
    assert_eq!(world.upstream.total(), effects);
}

#[tokio::test]
async fn the_address_of_an_operation_is_there_for_its_caller_alone() {
    let config = "[[route]]\nmatch = \"POST /pay\"\nin_flight = \"accept\"\n\
                  keep_credentials = true\n";
    let world = World::start(config).await;
    let accepted = world.ask(pay("authorization: alice\r\n", "used")).await;
    assert_eq!(accepted.status, 202);
    let address = accepted.header("location").unwrap().to_owned();
    let look = |path: &str, lines: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
    until("it to be run", async || {
        world.ask(look(&address, "authorization: alice\r\n")).await.status == 201
    })
    .await;
    let (prefix, id) = address.rsplit_once('/').unwrap();
    let unknown = format!("{prefix}/{}", "0".repeat(id.len()));
    for (name, lines, status) in [("other", "authorization: bob\r\n", 404), ("none", "", 401)] {
        let there = world.ask(look(&address, lines)).await;
        assert_eq!(there.status, status, "{name}");
        assert_eq!(told(&there), told(&world.ask(look(&unknown, lines)).await), "{name}");
    }
}

#[tokio::test]
async fn the_admin_api_says_nothing_without_its_token() {
    let world = World::start("").await;
    world.ask(pay("authorization: alice\r\n", "very-secret-key")).await;
    let paths =
        ["/v1/operations", "/v1/operations/00000000000000000000000000000000", "/v1/nothing"];
    for lines in ["", "authorization: Bearer wrong\r\n", "authorization: Basic a\r\n"] {
        for path in paths {
            let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
            let answer = ask(world.gateway.admin, head).await.unwrap();
            assert_eq!(answer.status, 401, "{path}: {lines}");
            assert!(!answer.text().contains("very-secret-key"), "{path}: {lines}");
        }
    }
    let head =
        format!("GET /v1/operations HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    let answer = ask(world.gateway.admin, head).await.unwrap();
    assert!(answer.text().contains("very-secret-key"), "{answer:?}");
    let open = ask(world.gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(!open.text().contains("very-secret-key") && !open.text().contains("alice"));
}
