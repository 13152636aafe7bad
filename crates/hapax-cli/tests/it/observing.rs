//! Watching first: an upstream that was never protected is watched, the report says what would have been done,
//! and the same file enforces it.

use std::fs;

use serde_json::{Value, json};

use crate::{
    hapax, text,
    world::{Answer, Behaviour, Gateway, Setup, Upstream, ask, until},
};

const TOKEN: &str = "watching-token";

const ROUTE: &str = r#"
[[route]]
match = "POST /payments"
mode = "observe"
amount = "/amount"
amount_decimals = 2
currency = "EUR"
"#;

/// A request of `alice`, with these headers and this body.
fn pay(headers: &str, body: &str) -> String {
    written("/payments", &format!("authorization: alice\r\n{headers}"), body)
}

fn written(path: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n\
         content-length: {len}\r\n{headers}\r\n{body}"
    )
}

async fn watching(upstream: &Upstream) -> Gateway {
    Setup::new(upstream.address).config(ROUTE).token(TOKEN).start().await
}

/// Sends it, and expects the upstream's own answer.
async fn passes(gateway: &Gateway, request: &str) {
    let answer = ask(gateway.address, request).await.unwrap();
    assert_eq!(answer.status, 201, "{request}: {}", answer.text());
    let ours = ["idempotency-expires", "idempotent-replayed", "hapax-refusal"];
    assert!(ours.iter().all(|name| answer.header(name).is_none()), "{answer:?}");
}

async fn observed(gateway: &Gateway) -> Value {
    let head = format!("host: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    let answer = ask(gateway.admin, format!("GET /v1/observations HTTP/1.1\r\n{head}")).await;
    serde_json::from_slice(&answer.unwrap().body).unwrap()
}

fn report(gateway: &Gateway, args: &[&str]) -> String {
    let admin = format!("http://{}", gateway.admin);
    let output = hapax(&[&["report", "--admin", &admin, "--token", TOKEN], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// What a legacy client does on a bad day.
async fn bad_day(gateway: &Gateway, upstream: &Upstream) {
    let first = pay("idempotency-key: k-1\r\n", r#"{"amount": 1250, "to": "ada"}"#);
    passes(gateway, &first).await;
    passes(gateway, &first).await;
    passes(gateway, &pay("idempotency-key: k-1\r\n", r#"{"amount": 900, "to": "ada"}"#)).await;
    let keyless = pay("", r#"{"amount":500}"#);
    passes(gateway, &keyless).await;
    passes(gateway, &keyless).await;
    passes(gateway, &pay("idempotency-key: a, b\r\n", r#"{"amount":1}"#)).await;
    passes(gateway, &written("/payments", "idempotency-key: k-2\r\n", r#"{"amount":1}"#)).await;
    upstream.silence(true);
    let slow = pay("idempotency-key: k-3\r\n", r#"{"amount":700}"#);
    let (one, other) = (ask(gateway.address, slow.clone()), ask(gateway.address, slow));
    let (one, other, ()) = tokio::join!(one, other, async {
        until("both to be under way", async || {
            observed(gateway).await["routes"][0]["what"]["busy"] == 1
        })
        .await;
        upstream.silence(false);
    });
    assert_eq!((one.unwrap().status, other.unwrap().status), (201, 201));
}

#[tokio::test]
async fn a_watched_upstream_gets_everything_and_the_report_says_what_would_have_been_done() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = watching(&upstream).await;
    bad_day(&gateway, &upstream).await;
    assert_eq!((upstream.effects("k-1"), upstream.effects("k-3"), upstream.total()), (3, 2, 9));
    let seen = observed(&gateway).await;
    let route = &seen["routes"][0];
    let what = json!({
        "executed": 2, "replayed": 1, "mismatch": 1, "busy": 1, "key_missing": 1,
        "key_missing_again": 1, "key_malformed": 1, "tenant_unknown": 1,
    });
    assert_eq!((&route["route"], &route["what"]), (&json!("POST /payments"), &what));
    assert_eq!(route["refusals"], json!({ "key-malformed": 1 }));
    let amounts = json!({
        "replayed": { "EUR": 12.5 }, "busy": { "EUR": 7.0 }, "key_missing_again": { "EUR": 5.0 },
    });
    assert_eq!(route["amounts"], amounts);
    let clients: Vec<_> = seen["clients"].as_array().unwrap().iter().collect();
    assert_eq!((&clients[0]["repeated"], &clients[0]["requests"]), (&json!(3), &json!(8)));
    assert_eq!(clients[1]["client"], "address:loopback", "nobody knows more about it");
    assert_eq!(seen["keys_forgotten"], 0);
    let metrics = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    for line in [
        "hapax_observed_total{route=\"POST /payments\",what=\"replayed\"} 1",
        "hapax_observed_amount_total{route=\"POST /payments\",what=\"busy\",currency=\"EUR\"} 7",
        "hapax_requests_total{route=\"POST /payments\",verdict=\"passed\"} 9",
    ] {
        assert!(metrics.text().lines().any(|shown| shown == line), "{line}");
    }
    check_report(&gateway, &seen);
}

/// What people are told of the bad day.
fn check_report(gateway: &Gateway, seen: &Value) {
    let told = report(gateway, &[]);
    for sentence in [
        "9 requests watched from",
        "3 requests were sent to the API a second time",
        "Enforced, 2 of them would not have been.",
        "Would have been charged twice, for certain: 12.50 EUR.",
        "POST /payments: 2 requests came without a key, 1 of which look like retries",
        "POST /payments: to enforce it, write `mode = \"enforce\"` in its `[[route]]`.",
    ] {
        assert!(told.contains(sentence), "{sentence}: {told}");
    }
    let json: Value = serde_json::from_str(&report(gateway, &["--json"])).unwrap();
    assert_eq!(json["routes"], seen["routes"]);
    let page = gateway.path("report.html");
    report(gateway, &["--html", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("12.50 EUR"), "{page}");
    assert!(page.contains("What to do next") && !page.contains("<script"), "{page}");
}

#[tokio::test]
async fn what_is_watched_passes_byte_for_byte_as_what_is_not_protected_does() {
    let requests = [
        pay("idempotency-key: k-1\r\nX-Own: 1\r\n", "{\"amount\" : 1,\r\n \"to\":\"\\u0061da\"}"),
        written("/%70ayments?a=%2f", "idempotency-key:   \"k-2\"\r\n", "not json"),
        written("/payments/../payments", "idempotency-key: a, b\r\nx_own: 2\r\n", ""),
        "POST /payments HTTP/1.1\r\nhost: gateway\r\nupgrade: h2c\r\nidempotency-key: k-4\r\n\
         transfer-encoding: chunked\r\n\r\n3\r\npay\r\n4\r\n 100\r\n0\r\n\r\n"
            .to_owned(),
    ];
    let seen_by = async |toml: &str, args: &[&'static str]| {
        let upstream = Upstream::start(Behaviour::default()).await;
        let gateway = Setup::new(upstream.address).config(toml).args(args).start().await;
        let mut answers: Vec<Answer> = Vec::new();
        for request in &requests {
            let mut answer = ask(gateway.address, request).await.unwrap();
            answer.headers.remove("date");
            answers.push(answer);
        }
        // Each gateway sends to an upstream of its own.
        let own = upstream.address.to_string();
        let heads: Vec<_> =
            upstream.heads().iter().map(|head| head.replace(&own, "upstream")).collect();
        (heads, answers)
    };
    let unprotected = seen_by("otherwise = \"pass\"\n", &[]).await;
    assert_eq!(unprotected.1.len(), requests.len());
    let watched = seen_by(ROUTE, &["--observe"]).await;
    assert_eq!(watched, unprotected);
}

#[tokio::test]
async fn the_same_file_protects_once_it_is_enforced() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).config(ROUTE).args(&["--enforce"]).start().await;
    let first = pay("idempotency-key: k-1\r\n", r#"{"amount": 1250}"#);
    let answers = [
        (first.clone(), 201),
        (first, 201),
        (pay("idempotency-key: k-1\r\n", r#"{"amount": 900}"#), 422),
        (pay("", r#"{"amount": 500}"#), 400),
        (written("/payments", "idempotency-key: k-2\r\n", "{}"), 401),
    ];
    for (at, (request, status)) in answers.iter().enumerate() {
        let answer = ask(gateway.address, request).await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (*status, at == 1), "{request}");
    }
    assert_eq!(upstream.total(), 1, "once");
    assert!(!gateway.log().contains("watched alone"), "{}", gateway.log());
}

/// An order as clients send it that know no keys.
fn order(id: &str, amount: u32) -> String {
    pay("", &format!(r#"{{"order_id": "{id}", "amount": {amount}}}"#))
}

#[tokio::test]
async fn an_api_whose_clients_send_no_keys_is_watched_and_then_protected_as_the_report_says() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let watching = Setup::new(upstream.address).token(TOKEN).args(&["--observe"]).start().await;
    for request in [order("A-1", 500), order("A-1", 500), order("A-2", 700)] {
        passes(&watching, &request).await;
    }
    let told = report(&watching, &[]);
    assert!(told.contains("3 requests came without a key, 1 of which look like retries"), "{told}");
    let made = r#"key = { from = "body", pointer = "/order_id" }"#;
    assert!(told.contains(made), "{told}");
    drop(watching);

    let route = format!("[[route]]\nmatch = \"POST /payments\"\n{made}\n");
    let sure = Setup::new(upstream.address).config(&route).token(TOKEN).args(&["--observe"]);
    let sure = sure.start().await;
    for request in [order("B-1", 500), order("B-1", 500)] {
        passes(&sure, &request).await;
    }
    let what = observed(&sure).await["routes"][0]["what"].clone();
    assert_eq!(what, json!({ "executed": 1, "replayed": 1 }), "made keys are watched, too");
    drop(sure);

    let before = upstream.total();
    let gateway = Setup::new(upstream.address).config(&route).start().await;
    for (at, (request, status)) in [
        (order("C-1", 500), 201),
        (order("C-1", 500), 201),
        (order("C-1", 900), 422),
        (order("C-2", 500), 201),
        (pay("", r#"{"amount": 500}"#), 400),
    ]
    .iter()
    .enumerate()
    {
        let answer = ask(gateway.address, request).await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (*status, at == 1), "{request}");
    }
    assert_eq!(upstream.total() - before, 2, "C-1 and C-2, once each");
}

#[tokio::test]
async fn whoever_watches_without_a_token_is_told_at_once_that_nobody_may_ask() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let told = "nobody may ask what is watched, and a restart forgets it";
    let mute = Setup::new(upstream.address).args(&["--observe"]).start().await;
    assert!(mute.log().contains(told), "{}", mute.log());
    let asked = Setup::new(upstream.address).token(TOKEN).args(&["--observe"]).start().await;
    assert!(!asked.log().contains(told), "{}", asked.log());
}

#[test]
fn check_config_says_the_mode_of_each_route() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let toml = format!(
        "[upstream]\nurl = \"http://127.0.0.1:3000\"\n[[route]]\nmatch = \"POST /refunds\"\n{ROUTE}"
    );
    fs::write(&file, toml).unwrap();
    let output = hapax(&["check-config", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let begins = |line: &str| told.lines().any(|told| told.starts_with(line));
    assert!(begins("POST /refunds: mode enforce, key required"), "{told}");
    assert!(begins("POST /payments: mode observe, enforced it would be: key required"), "{told}");
    assert!(begins("note: watched alone: POST /payments;"), "{told}");
}

#[tokio::test]
async fn a_gateway_that_watches_nothing_says_how_and_one_that_is_away_is_named() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).token(TOKEN).start().await;
    assert!(report(&gateway, &[]).contains("start with `hapax serve --observe`"));
    let away = hapax(&["report", "--admin", "http://127.0.0.1:1", "--token", TOKEN]);
    assert_eq!(away.status.code(), Some(1));
    assert!(text(&away.stderr).contains("does not answer"), "{}", text(&away.stderr));
    let both = hapax(&["serve", "--upstream", "http://a", "--observe", "--enforce"]);
    assert_eq!(both.status.code(), Some(2));
}
