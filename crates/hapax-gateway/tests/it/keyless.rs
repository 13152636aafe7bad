//! Clients that send no key, through a gateway that listens, in front of an API that counts.
#![expect(clippy::unwrap_used, reason = "these are tests: what they did not expect ends them")]

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::any};
use hapax_core::{Salt, Timestamp, memory};
use hapax_gateway::{
    Config, Gateway,
    config::{Overrides, describe},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};

/// What the API was sent: the key of each request, if it had one, and how long its body was.
type Ledger = Arc<Mutex<Vec<(Option<String>, usize)>>>;

struct World {
    gateway: Gateway,
    ledger: Ledger,
}

impl World {
    /// A gateway with this in its file.
    async fn new(settings: &str) -> Self {
        let ledger = Ledger::default();
        let upstream = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = upstream.local_addr().unwrap();
        let api = Router::new().fallback(any(receive)).with_state(Arc::clone(&ledger));
        tokio::spawn(async move { axum::serve(upstream, api).await });
        let text = format!(
            "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nstore = \"memory:\"\nworkers = 1\n\
             [upstream]\nurl = \"http://{address}\"\n{settings}"
        );
        let config = Config::parse(Path::new("gateway.toml"), &text, &Overrides::default());
        let config = config.unwrap_or_else(|error| unreachable!("{error}"));
        let began = Instant::now();
        let clock = move || Timestamp::from_micros(1_800_000_000_000_000).plus(began.elapsed());
        let store = memory::Store::new(Salt::from_bytes([7; 32]), clock);
        Self { gateway: Gateway::start(config, store).await.unwrap(), ledger }
    }

    /// What a client hears that sends these lines and this body.
    async fn order(&self, lines: &str, body: &str) -> Heard {
        let length = body.len();
        let head =
            format!("POST /orders HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n{lines}");
        ask(self.gateway.address(), &format!("{head}connection: close\r\n\r\n{body}")).await
    }

    fn sent_on(&self) -> Vec<(Option<String>, usize)> {
        self.ledger.lock().unwrap().clone()
    }

    async fn metrics(&self) -> String {
        let head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        ask(self.gateway.admin_address().unwrap(), head).await.0
    }
}

async fn receive(State(ledger): State<Ledger>, headers: HeaderMap, body: Bytes) -> String {
    let key = headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned());
    let mut ledger = ledger.lock().unwrap();
    ledger.push((key, body.len()));
    format!("order {}", ledger.len())
}

/// The whole answer.
struct Heard(String);

impl Heard {
    fn status(&self) -> &str {
        self.0.split(' ').nth(1).unwrap()
    }

    fn is_replay(&self) -> bool {
        self.0.contains("idempotent-replayed: true")
    }
}

async fn ask(to: SocketAddr, request: &str) -> Heard {
    let mut connection = TcpStream::connect(to).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    connection.read_to_end(&mut heard).await.unwrap();
    Heard(String::from_utf8(heard).unwrap())
}

const JSON: &str = "authorization: alice\r\ncontent-type: application/json\r\n";

#[tokio::test]
async fn an_order_that_is_repeated_without_a_key_is_placed_once() {
    let key = "key = { from = [\"header X-Shop\", \"body /order_id\"] }";
    let world = World::new(&format!("[[route]]\nmatch = \"POST /orders\"\n{key}")).await;
    let shop = |name: &str| format!("{JSON}x-shop: {name}\r\n");
    let body = r#"{"order_id": 17, "cents": 100}"#;
    let first = world.order(&shop("north"), body).await;
    assert_eq!((first.status(), first.is_replay()), ("200", false), "{}", first.0);
    let again = world.order(&shop("north"), r#"{"cents": 100.0, "order_id": 17}"#).await;
    assert!(again.is_replay() && again.0.ends_with("order 1"), "{}", again.0);
    let reused = world.order(&shop("north"), r#"{"order_id": 17, "cents": 101}"#).await;
    assert_eq!(reused.status(), "422", "{}", reused.0);
    assert!(!world.order(&shop("south"), body).await.is_replay());
    let missing = world.order(JSON, body).await;
    assert!(missing.status() == "400" && missing.0.contains("key-underivable"), "{}", missing.0);
    let keys: Vec<_> = world.sent_on().into_iter().map(|(key, _)| key.unwrap()).collect();
    let key = |shop| format!("\"header/x-shop={shop}&body/order_id:=17\"");
    assert_eq!(keys, [key("north"), key("south")]);
    let metrics = world.metrics().await;
    assert!(metrics.contains("hapax_refusals_total{code=\"key-underivable\"} 1"), "{metrics}");
}

#[tokio::test]
async fn what_no_key_can_be_made_of_passes_whole_and_is_counted_where_the_route_says_so() {
    let key = "key = { from = \"body\", pointer = \"/order_id\", if_missing = \"pass\" }";
    let route = format!("[[route]]\nmatch = \"POST /orders\"\n{key}\nrequest_max = \"64KiB\"");
    let world = World::new(&route).await;
    let large = "x".repeat(300 << 10);
    for body in ["{}", "order_id=17", "", large.as_str()] {
        let heard = world.order(JSON, body).await;
        assert_eq!((heard.status(), heard.is_replay()), ("200", false), "{}", heard.0);
        assert_eq!(world.sent_on().last(), Some(&(None, body.len())));
    }
    for replayed in [false, true] {
        let heard = world.order(JSON, r#"{"order_id": "17"}"#).await;
        assert_eq!(heard.is_replay(), replayed);
    }
    let chunked = format!(
        "POST /orders HTTP/1.1\r\nhost: a\r\n{JSON}transfer-encoding: chunked\r\nconnection: close\r\n\
         \r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    assert_eq!(ask(world.gateway.address(), &chunked).await.status(), "200");
    assert_eq!(world.sent_on().last(), Some(&(None, large.len())));
    let metrics = world.metrics().await;
    let counted = metrics.lines().find(|line| line.contains("\"passed_keyless\""));
    assert!(counted.is_some_and(|line| line.ends_with(" 5")), "{counted:?}");
}

#[tokio::test]
async fn equal_orders_are_one_within_their_time_and_the_operator_is_told_what_that_means() {
    let key = "key = { from = \"fingerprint\", within = \"1h\" }";
    let route = format!("[[route]]\nmatch = \"POST /orders\"\n{key}");
    let world = World::new(&route).await;
    for replayed in [false, true] {
        assert_eq!(world.order(JSON, r#"{"cents": 100}"#).await.is_replay(), replayed);
    }
    assert!(!world.order(JSON, r#"{"cents": 200}"#).await.is_replay());
    assert!(world.sent_on()[0].0.as_ref().unwrap().starts_with("\"fingerprint="));
    let text = format!("[upstream]\nurl = \"http://127.0.0.1:3000\"\n{route}");
    let config = Config::parse(Path::new("gateway.toml"), &text, &Overrides::default()).unwrap();
    let told = describe(&config);
    assert!(told.contains("equal within 1h (best effort)"), "{told}");
    assert!(told.contains("two that were meant are done once"), "{told}");
    let home = "GET /.well-known/idempotency HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let policy = ask(world.gateway.address(), home).await.0;
    assert!(policy.contains("best effort: equal requests within 3600 seconds"), "{policy}");
}

#[tokio::test]
async fn callers_are_told_apart_by_a_secret_of_theirs_that_is_not_kept() {
    for (tenant, line) in [
        ("from = \"header\"\nname = \"X-API-Key\"", "x-api-key: "),
        ("from = \"cookie\"\nname = \"session\"", "cookie: theme=dark; session="),
    ] {
        let route =
            "[[route]]\nmatch = \"POST /orders\"\nkey = { from = \"body\", pointer = \"/id\" }";
        let world = World::new(&format!("[tenant]\n{tenant}\n{route}")).await;
        let of = |secret: &str| format!("{line}{secret}\r\n");
        for (secret, replayed) in [("alice", false), ("alice", true), ("bob", false)] {
            let heard = world.order(&of(secret), r#"{"id": 1}"#).await;
            assert_eq!((heard.status(), heard.is_replay()), ("200", replayed), "{}", heard.0);
        }
        let twice = [of("alice"), of("alice")].concat();
        for nobody in ["", "authorization: alice\r\n", &twice, &of("")] {
            let heard = world.order(nobody, r#"{"id": 1}"#).await;
            assert_eq!(heard.status(), "401", "{nobody} {}", heard.0);
            assert!(heard.0.contains("credential-missing"), "{}", heard.0);
        }
    }
}
