//! The worker runs as a process, is killed in the middle of a payment, and runs again.
#![expect(clippy::unwrap_used, reason = "these are tests: what they did not expect ends them")]

use std::{
    future::pending,
    path::Path,
    process::{Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use axum::{
    Json, Router,
    extract::{Request, State},
    http::{Method, StatusCode},
    middleware::{Next, from_fn_with_state},
    response::Response,
    routing::post,
};
use hapax::{
    Engine, Options, Salt, Timestamp, memory,
    tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment},
};
use serde_json::Value;
use tokio::{net::TcpListener, process::Command, sync::Semaphore};

const ORDERS: [&str; 5] = ["order-1001", "order-1002", "order-1003", "order-1004", "order-1005"];
/// Which payment gets stuck.
const STUCK: usize = 1;

/// Where the payment gets stuck for ever.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stuck {
    BeforeTheCharge,
    AfterTheCharge,
}

/// A payments API behind the layer, and what lies between it and its clients.
#[derive(Clone)]
struct Shop {
    stuck: Stuck,
    requests: Arc<AtomicUsize>,
    is_stuck: Arc<Semaphore>,
    charges: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    async fn open(stuck: Stuck) -> (Self, String) {
        let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
        let engine = Engine::start(store, Options::default());
        let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
        let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
        let shop = Self {
            stuck,
            requests: Arc::default(),
            is_stuck: Arc::new(Semaphore::new(0)),
            charges: Arc::default(),
        };
        let app = Router::new().route("/payments", post(charge)).with_state(shop.clone());
        let app = app.layer(layer).layer(from_fn_with_state(shop.clone(), pass));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        (shop, url)
    }

    fn charges(&self) -> Vec<String> {
        self.charges.lock().unwrap().clone()
    }
}

/// Charges whatever it is asked for. Nothing here knows about retries.
async fn charge(State(shop): State<Shop>, Json(order): Json<Value>) -> StatusCode {
    shop.charges.lock().unwrap().push(order["reference"].as_str().unwrap().to_owned());
    StatusCode::CREATED
}

async fn pass(State(shop): State<Shop>, request: Request, next: Next) -> Response {
    let is_payment = request.method() == Method::POST;
    let gets_stuck = is_payment && shop.requests.fetch_add(1, Relaxed) == STUCK;
    if gets_stuck && shop.stuck == Stuck::BeforeTheCharge {
        shop.is_stuck.add_permits(1);
        return pending().await;
    }
    let response = next.run(request).await;
    if gets_stuck {
        shop.is_stuck.add_permits(1);
        return pending().await;
    }
    response
}

fn worker(url: &str, journal: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_client-rust"));
    command.arg(url).arg(journal).env("NO_PROXY", "*").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Kills the worker when a payment is stuck, runs it again, and once more.
async fn check(stuck: Stuck) {
    let (shop, url) = Shop::open(stuck).await;
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("client.db");

    let mut killed = worker(&url, &journal).spawn().unwrap();
    shop.is_stuck.acquire().await.unwrap().forget();
    killed.kill().await.unwrap();
    let charged_by_then = if stuck == Stuck::AfterTheCharge { &ORDERS[..2] } else { &ORDERS[..1] };
    assert_eq!(shop.charges(), charged_by_then);

    let second = worker(&url, &journal).output().await.unwrap();
    assert!(second.status.success(), "{}", said(&second));
    assert_eq!(shop.charges(), ORDERS, "{}", said(&second));
    assert!(shop.requests.load(Relaxed) > ORDERS.len(), "the stuck one was asked for again");

    let third = worker(&url, &journal).output().await.unwrap();
    assert_eq!(said(&third).matches("charged before, says the journal").count(), ORDERS.len());
    assert_eq!(shop.charges(), ORDERS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_after_the_charge_and_before_its_answer_charges_once() {
    check(Stuck::AfterTheCharge).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_before_the_charge_makes_it_when_it_runs_again() {
    check(Stuck::BeforeTheCharge).await;
}
