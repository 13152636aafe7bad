//! Services that call the SQL functions in their own transactions.

use std::env;

use hapax::{
    Admission, AttemptEnd, BeginRequest, Body, Engine, Header, Key, Operation, Options, Outcome,
    Policy, RequestParts, RunMode, Scope, Tenant, postgres,
};
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use super::{Language, installed::Installed};
use crate::{
    hapax, text,
    world::{Database, ask, post},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_python_service_that_is_killed_pays_every_order_once() {
    pays_every_order_once(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_service_that_is_killed_pays_every_order_once() {
    pays_every_order_once(Language::Node).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_and_rust_replay_each_others_answers() {
    replay_each_others_answers(Language::Python).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn node_and_rust_replay_each_others_answers() {
    replay_each_others_answers(Language::Node).await;
}

/// The kills of a usual run, in each language.
const KILLS: u32 = 40;
const SEED: u32 = 17;

/// The example's own tests look at it as clients do; what they left is counted here once more.
#[expect(clippy::print_stdout, reason = "how many kills it was is told")]
async fn pays_every_order_once(language: Language) {
    let Some(example) = Installed::new(language) else { return };
    let shop = Shop::open(&example).await;
    let kills = number("HAPAX_CHAOS_KILLS").unwrap_or(KILLS);
    let seed = number("HAPAX_CHAOS_SEED").unwrap_or(SEED);
    let said = example.test(&shop.url, kills, seed).await;
    println!("{language:?}: {said}");
    let row = shop.client.query_one(LEDGER, &[]).await.unwrap();
    let counts: Vec<i64> = (0..row.len()).map(|at| row.get(at)).collect();
    assert!(counts[0] >= i64::from(kills), "{counts:?}");
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

/// Payments, orders, events, completed keys, and all of them that tell of each other.
const LEDGER: &str = "
    SELECT (SELECT count(*) FROM payments), (SELECT count(DISTINCT order_id) FROM payments),
        (SELECT count(*) FROM hapax.outbox),
        (SELECT count(*) FROM hapax.operations_readable WHERE state = 'completed'),
        (SELECT count(*) FROM hapax.operations_readable AS o
         JOIN payments AS p ON p.id = (o.body_json ->> 'payment')::bigint AND p.order_id = o.key
         JOIN hapax.outbox AS e ON e.key = o.key AND hapax.as_json(e.payload) = o.body_json
         WHERE o.state = 'completed')";

async fn replay_each_others_answers(language: Language) {
    let Some(example) = Installed::new(language) else { return };
    let shop = Shop::open(&example).await;
    let api = example.start(&shop.url).await;
    let config: postgres::Address = shop.url.parse().unwrap();
    let store = postgres::Store::connect(&config, postgres::Options::default()).await.unwrap();
    let engine = Engine::start(store, Options::default());
    let pay = |key: &str, paid: &str| post("/payments?via=app", key, &order(paid));

    let theirs = ask(api.address, pay("theirs", "theirs")).await.unwrap();
    assert_eq!(theirs.status, 201, "{}", theirs.text());
    let Admission::Replay(record) =
        engine.begin(&asked(&engine, "theirs", "theirs")).await.unwrap()
    else {
        unreachable!("it was answered")
    };
    let outcome = record.outcome().unwrap();
    assert_eq!(outcome.status(), 201);
    assert_eq!(*outcome.body(), Body::Kept(theirs.body.clone().into()));
    assert_eq!(outcome.headers()[0].name, "content-type");
    let other = engine.begin(&asked(&engine, "theirs", "another order")).await.unwrap();
    assert!(matches!(other, Admission::Mismatch(_)), "{other:?}");
    let shown = shop.show("theirs");
    assert_eq!(shown["record"]["state"], "completed");
    assert_eq!(shown["record"]["outcome"]["body"], theirs.text());

    let Admission::Execute(permit) = engine.begin(&asked(&engine, "ours", "ours")).await.unwrap()
    else {
        unreachable!("it is new")
    };
    let busy = ask(api.address, pay("ours", "ours")).await.unwrap();
    assert_eq!(busy.status, 409, "{}", busy.text());
    assert!(busy.header("retry-after").unwrap().parse::<u32>().unwrap() > 1);
    let (headers, body) = (vec![header("x-made-by", "rust")], b"\x00paid\xff".to_vec());
    let outcome = Outcome::new(202, headers, Body::Kept(body.clone().into())).unwrap();
    permit.settle(AttemptEnd::completed(outcome)).await.unwrap();
    let ours = ask(api.address, pay("ours", "ours")).await.unwrap();
    assert_eq!((ours.status, ours.header("x-made-by")), (202, Some("rust")));
    assert!(ours.is_replay());
    assert_eq!(ours.body, body);
    let other = ask(api.address, pay("ours", "another order")).await.unwrap();
    assert_eq!(other.status, 422);
    let payments = shop.client.query("SELECT order_id FROM payments", &[]).await.unwrap();
    let payments: Vec<String> = payments.iter().map(|row| row.get(0)).collect();
    assert_eq!(payments, ["theirs"]);
}

/// A database with the tables of Hapax and those of the example.
struct Shop {
    url: String,
    client: Client,
}

impl Shop {
    async fn open(example: &Installed) -> Self {
        let url = Database::create().await.url;
        let config: postgres::Address = url.parse().unwrap();
        postgres::Store::connect(&config, postgres::Options::default()).await.unwrap();
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&example.schema()).await.unwrap();
        Self { url, client }
    }

    /// A key as an operator sees it.
    fn show(&self, key: &str) -> Value {
        let name = ["--tenant", TENANT, "--scope", SCOPE, "--key", key];
        let args = [&["keys", "show", "--body", "--json", "--store", &self.url], &name[..]];
        let output = hapax(&args.concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// The operation as the examples name it.
const TENANT: &str = "shop";
const SCOPE: &str = "POST /payments";

fn asked(engine: &Engine, key: &str, paid: &str) -> BeginRequest<'static> {
    let (tenant, scope) = (Tenant::parse(TENANT).unwrap(), Scope::parse(SCOPE).unwrap());
    let operation = Operation::new(tenant, scope, Key::parse(key).unwrap());
    let body = order(paid);
    let parts = RequestParts {
        method: b"POST",
        path: b"/payments",
        query: b"via=app",
        body: body.as_bytes(),
        ..RequestParts::default()
    };
    let fingerprint = engine.salt().tenant_key(operation.tenant()).fingerprint(&parts);
    let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
    BeginRequest { operation, request: fingerprint.into(), mode, policy }
}

fn order(name: &str) -> String {
    format!(r#"{{"order": "{name}", "account": "ada", "cents": 500}}"#)
}

fn header(name: &str, value: &str) -> Header {
    Header { name: name.to_owned(), value: value.as_bytes().to_vec().into() }
}

fn number(variable: &str) -> Option<u32> {
    env::var(variable).ok()?.parse().ok()
}
