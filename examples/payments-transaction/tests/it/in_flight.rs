//! Requests with the same key at the same time.

use std::{sync::Arc, time::Duration};

use axum::{
    http::StatusCode,
    routing::{MethodRouter, post},
};
use hapax::{
    postgres::transaction::deadpool::Database,
    tower::{InFlight, Protection, Tx, TxError},
};
use tokio::sync::Semaphore;

use crate::{
    postgres::ONE,
    shop::{Shop, client, order, request, send, serve, write},
};

#[tokio::test(flavor = "multi_thread")]
async fn of_many_duplicates_on_two_servers_one_pays_and_all_hear_the_same() {
    let shop = Shop::open().await;
    let other = serve(payments_transaction::app(shop.postgres.pool()).await.unwrap()).await;
    let mut paying = Vec::new();
    for number in 0..32 {
        let url = if number % 2 == 0 { &shop.url } else { &other };
        let request = request(url, "k").header("prefer", "wait=30");
        paying.push(tokio::spawn(async move { send(&client(), request, &order(500)).await }));
    }
    let mut answers = Vec::new();
    for answer in paying {
        answers.push(answer.await.unwrap().unwrap());
    }
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_hears_busy_when_its_wait_is_over() {
    let (gate, shop) = gated(Duration::from_millis(50)).await;
    let shop = Arc::new(shop);
    let first = tokio::spawn({
        let shop = Arc::clone(&shop);
        async move { shop.pay("k", "").await }
    });
    gate.begun().await;
    shop.pay("k", "").await.check_for_now(409, "key-in-flight");
    gate.open();
    assert_eq!(first.await.unwrap().status, 201);
    assert!(shop.pay("k", "").await.is_replay());
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_prefers_to_wait_is_answered_with_what_the_first_stored() {
    let (gate, shop) = gated(Duration::from_millis(1)).await;
    let shop = Arc::new(shop);
    let asking = |prefer: Option<&'static str>| {
        let shop = Arc::clone(&shop);
        tokio::spawn(async move {
            let mut request = request(&shop.url, "k");
            if let Some(wait) = prefer {
                request = request.header("prefer", wait);
            }
            shop.send(request, "").await
        })
    };
    let first = asking(None);
    gate.begun().await;
    let second = asking(Some("wait=25"));
    shop.postgres.until_waiting(1).await;
    gate.open();
    assert!(!first.await.unwrap().is_replay());
    let second = second.await.unwrap();
    assert_eq!((second.status, second.is_replay()), (201, true));
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_whose_time_is_over_finds_the_answer_under_its_key() {
    let (gate, shop) = gated(Duration::from_millis(50)).await;
    let told = shop.send(request(&shop.url, "k").header("hapax-deadline", "500"), "").await;
    told.check_for_now(504, "execution-timed-out");
    gate.begun().await;
    gate.open();
    let again = shop.send(request(&shop.url, "k").header("prefer", "wait=25"), "").await;
    assert_eq!((again.status, again.is_replay()), (201, true));
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_without_time_begins_no_transaction() {
    let shop = Shop::open().await;
    let late = request(&shop.url, "k").header("hapax-deadline", "0");
    shop.send(late, &order(500)).await.check(504, "deadline-passed");
    let malformed = request(&shop.url, "k").header("hapax-deadline", "soon");
    assert_eq!(shop.send(malformed, &order(500)).await.status, 400);
    assert!(!shop.pay("k", &order(500)).await.is_replay());
}

/// A handler that writes, says so, and waits to be let through.
#[derive(Clone)]
struct Gate {
    begun: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl Gate {
    async fn begun(&self) {
        self.begun.acquire().await.unwrap().forget();
    }

    fn open(&self) {
        self.open.add_permits(1);
    }

    fn handler(&self) -> MethodRouter {
        let gate = self.clone();
        post(async move |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
            write(&mut tx).await?;
            gate.begun.add_permits(1);
            gate.open.acquire().await?.forget();
            Ok(StatusCode::CREATED)
        })
    }
}

/// A shop with a gate, whose duplicates wait this long.
async fn gated(wait: Duration) -> (Gate, Shop) {
    let gate = Gate { begun: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) };
    let protection = Protection { in_flight: InFlight::Wait(wait), ..Protection::default() };
    let shop = Shop::with(protection, gate.handler()).await;
    (gate, shop)
}
