//! What one language began, the others replay.

use hapax_sdk_tests::{Agent, HttpReply, Sdk};
use serde_json::{Value, json};

use crate::world::{World, kind, once, paid, pay, told, with};

const DRIVERS: [(Sdk, &str); 4] =
    [(Sdk::Python, "psycopg-async"), (Sdk::Node, "pg"), (Sdk::Go, "pgx"), (Sdk::Java, "jdbc")];

#[tokio::test(flavor = "multi_thread")]
async fn what_one_language_began_every_other_one_replays() {
    let world = World::new(Sdk::Python, "psycopg").await;
    let mut agents = Vec::new();
    for (sdk, driver) in DRIVERS {
        if sdk.is_there() {
            agents.push((sdk, Agent::start(sdk, driver, &world.url()).await));
        }
    }
    in_transactions(&world, &mut agents).await;
    let mut services = Vec::new();
    for (sdk, agent) in &mut agents {
        let heard = agent.ask(&json!({ "do": "serve" })).await.unwrap();
        let port = heard["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        services.push((*sdk, port.unwrap_or_else(|| panic!("{sdk} serves: {heard}"))));
    }
    over_http(&world, &services).await;
    failures_over_http(&world, &services).await;
    refusals_over_http(&world, &services).await;
    in_flight_and_in_doubt_over_http(&world, &services).await;
}

async fn in_transactions(world: &World, agents: &mut [(Sdk, Agent)]) {
    for first in 0..agents.len() {
        let key = world.key("across");
        let heard = agents[first].1.ask(&once(&key, &pay(&key))).await.unwrap();
        assert_eq!(heard, told(&paid(), false), "begun in {}", agents[first].0);
        for (sdk, agent) in &mut *agents {
            assert_eq!(
                agent.ask(&once(&key, &pay(&key))).await.unwrap(),
                told(&paid(), true),
                "in {sdk}"
            );
            let other = json!({ "request": "{\"cents\":101}" });
            let heard = agent.ask(&with(once(&key, &pay(&key)), &other)).await.unwrap();
            assert_eq!(kind(&heard), "mismatch", "in {sdk}: {heard}");
        }
        assert_eq!(world.effects(&key).await, 1);
    }
}

const TARGET: &str = "/payments?from=app&n=%2F";
const JSON_TYPE: (&str, &str) = ("Content-Type", "application/json");
const TENANT: (&str, &str) = ("Tenant", "shop");

/// A request under this line of `Idempotency-Key`.
async fn posted(port: u16, target: &str, line: &str, body: &str) -> HttpReply {
    HttpReply::of(port, target, &[JSON_TYPE, TENANT, ("Idempotency-Key", line)], body).await
}

/// Begun with a bare key, and asked again with a quoted one and another spelling of the same body.
async fn over_http(world: &World, services: &[(Sdk, u16)]) {
    for (first, port) in services {
        let key = world.key("over http");
        let (order, quoted) = (world.key("order"), format!("\"{key}\""));
        let body = format!(r#"{{"order":"{order}","cents":100,"sent_at":"1"}}"#);
        let began = posted(*port, TARGET, &key, &body).await;
        assert_eq!((began.status, mark(&began)), (201, None), "{first}: {began:?}");
        assert_eq!(began.json(), json!({ "paid": order, "cents": 100 }), "{first}");
        assert!(began.header("set-cookie").is_some(), "{first}: {began:?}");
        for (sdk, port) in services {
            let text = format!("{first} began, {sdk} replays");
            let spelled = format!(r#"{{ "sent_at": "2", "cents": 1e2, "order": "{order}" }}"#);
            let again = posted(*port, TARGET, &quoted, &spelled).await;
            assert_eq!((again.status, mark(&again)), (201, Some("true")), "{text}: {again:?}");
            assert_eq!(again.body, began.body, "{text}");
            for name in ["content-type", "x-paid", "idempotency-expires"] {
                // Tomcat writes the parameters of a media type without a space, whoever spelled them.
                let value =
                    |heard: &HttpReply| heard.header(name).map(|value| value.replace("; ", ";"));
                assert!(again.header(name).is_some(), "{text}: {name}: {again:?}");
                assert_eq!(value(&again), value(&began), "{text}: {name}");
            }
            assert_eq!(again.header("set-cookie"), None, "{text}: it is of one person");
            let other_body = spelled.replace("1e2", "101");
            for (target, body, differs) in [
                ("/payments?from=shop", &spelled, json!(["query"])),
                (TARGET, &other_body, json!(["body"])),
            ] {
                let heard = posted(*port, target, &quoted, body).await;
                assert_eq!((heard.status, &heard.json()["differs"]), (422, &differs), "{text}");
            }
        }
        assert_eq!(world.effects(&order).await, 1, "begun in {first}");
    }
}

fn mark(heard: &HttpReply) -> Option<&str> {
    heard.header("idempotent-replayed")
}

async fn failures_over_http(world: &World, services: &[(Sdk, u16)]) {
    for (first, port) in services {
        let (key, order) = (world.key("poor"), world.key("order"));
        let body = format!(r#"{{"order":"{order}","cents":0}}"#);
        let began = posted(*port, TARGET, &key, &body).await;
        assert_eq!((began.status, mark(&began)), (402, None), "{first}: {began:?}");
        for (sdk, port) in services {
            let again = posted(*port, TARGET, &key, &body).await;
            assert_eq!((again.status, mark(&again)), (402, Some("true")), "{first}, {sdk}");
            assert_eq!(again.body, began.body, "{first} failed, {sdk} replays");
        }
        assert_eq!(world.effects(&order).await, 0, "{first}");
    }
}

/// What is refused is refused with the same document everywhere, but for the sentence on what happened.
async fn refusals_over_http(world: &World, services: &[(Sdk, u16)]) {
    let long = "k".repeat(256);
    let key = |line| vec![JSON_TYPE, TENANT, ("Idempotency-Key", line)];
    for (code, status, headers) in [
        ("key-missing", 400, vec![JSON_TYPE, TENANT]),
        ("key-empty", 400, key("\"\"")),
        ("key-malformed", 400, key("\"unfinished")),
        ("key-too-long", 400, key(&long)),
        ("key-repeated", 400, [key("k-1"), vec![("Idempotency-Key", "k-2")]].concat()),
        ("credential-missing", 401, vec![JSON_TYPE, ("Idempotency-Key", "k")]),
    ] {
        let body = r#"{"order":"refused","cents":100}"#;
        let mut refusals = Vec::new();
        for (sdk, port) in services {
            refusals.push((*sdk, HttpReply::of(*port, TARGET, &headers, body).await));
        }
        alike(&refusals, status, code);
    }
    assert_eq!(world.effects("refused").await, 0);
}

async fn in_flight_and_in_doubt_over_http(world: &World, services: &[(Sdk, u16)]) {
    let key = world.key("doubt");
    let body = r#"{"order":"doubt","cents":100}"#;
    let spelled = r#"{"cents":1e2,"order":"doubt"}"#;
    world
        .run(&format!(
            "SELECT hapax.begin('shop', 'POST /payments', '{key}', '{spelled}', 'POST', '/payments', 'from=app&n=%2F')"
        ))
        .await;
    for (code, later) in [("key-in-flight", 0), ("outcome-in-doubt", 120)] {
        world.step_clock(later).await;
        let asked = services.iter().map(|(sdk, port)| {
            let (sdk, port, key) = (*sdk, *port, key.clone());
            tokio::spawn(async move { (sdk, posted(port, TARGET, &key, body).await) })
        });
        let mut refusals = Vec::new();
        for asked in asked.collect::<Vec<_>>() {
            refusals.push(asked.await.unwrap());
        }
        alike(&refusals, 409, code);
        for (sdk, heard) in &refusals {
            assert_eq!(heard.header("retry-after").is_some(), later == 0, "{sdk}: {heard:?}");
        }
    }
    assert_eq!(world.effects("doubt").await, 0);
}

fn alike(refusals: &[(Sdk, HttpReply)], status: u16, code: &str) {
    let names = ["content-type", "content-language", "cache-control", "hapax-refusal", "link"];
    let document = |heard: &HttpReply| {
        let mut document = heard.json();
        let detail = document.as_object_mut().and_then(|members| members.remove("detail"));
        assert!(detail.is_some_and(|detail| detail.is_string()), "{heard:?}");
        document
    };
    let told = |heard: &HttpReply| -> (u16, Vec<Option<String>>, Value) {
        let headers = names.iter().map(|name| heard.header(name).map(str::to_owned)).collect();
        (heard.status, headers, document(heard))
    };
    for (sdk, heard) in refusals {
        assert_eq!(told(heard), told(&refusals[0].1), "{code}: {sdk} as {}", refusals[0].0);
        assert_eq!(
            (heard.status, &heard.json()["code"]),
            (status, &json!(code)),
            "{sdk}: {heard:?}"
        );
    }
}
