//! Units that are run again from the start, and units that are not run at all.

use std::num::NonZeroU32;

use axum::{
    Extension,
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use hapax::{
    postgres::transaction::{Isolation, deadpool::Database},
    tower::{Protection, RateLimit, Tx, TxError},
    transactional::TryAgain,
};

use crate::{
    postgres::{Found, NOTHING, ONE, Postgres},
    shop::{Shop, Tally, client, protected, request, send, serve, write},
};

/// A shop whose handler is told so many times, after it has written, that another was in its way.
async fn obstructed(times: usize, protection: Protection) -> (Tally, Shop) {
    let runs = Tally::default();
    let counted = runs.clone();
    let handler = async move |mut tx: Tx<Database>| -> Result<Response, TxError> {
        write(&mut tx).await?;
        Ok(if counted.count() < times {
            (StatusCode::CONFLICT, Extension(TryAgain)).into_response()
        } else {
            StatusCode::CREATED.into_response()
        })
    };
    (runs, Shop::with(protection, post(handler)).await)
}

fn limited() -> Protection {
    let one = NonZeroU32::MIN;
    Protection { limit: Some(RateLimit::per_tenant(one, one)), ..Protection::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_says_try_again_is_run_again_and_only_its_last_run_counts() {
    let (runs, shop) = obstructed(2, Protection::default()).await;
    assert_eq!(shop.pay("k", "").await.status, 201);
    assert_eq!(runs.get(), 3);
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_always_says_try_again_is_given_up_after_six_runs() {
    let (runs, shop) = obstructed(usize::MAX, Protection::default()).await;
    shop.pay("k", "").await.check_for_now(503, "transaction-rolled-back");
    assert_eq!(runs.get(), 6);
    assert_eq!(shop.postgres.found().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_that_the_handler_passes_on_is_tried_again() {
    let runs = Tally::default();
    let counted = runs.clone();
    let handler = async move |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        if counted.count() == 0 {
            let deadlock = "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$";
            tx.batch_execute(deadlock).await?;
        }
        Ok(StatusCode::CREATED)
    };
    let shop = Shop::with(Protection::default(), post(handler)).await;
    assert_eq!(shop.pay("k", "").await.status, 201);
    assert_eq!(runs.get(), 2);
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn serializable_payments_are_made_as_if_one_after_the_other() {
    const PAYMENTS: i64 = 8;
    let postgres = Postgres::new().await;
    let database = Database::new(postgres.pool()).isolation(Isolation::Serializable);
    // Each sees how many there were: without SERIALIZABLE two of them would see the same.
    let handler = async |mut tx: Tx<Database>| -> Result<String, TxError> {
        let seen: i64 = tx.query_one("SELECT count(*) FROM payments", &[]).await?.get(0);
        write(&mut tx).await?;
        Ok(seen.to_string())
    };
    let url = serve(protected(database, Protection::default(), post(handler)).await).await;
    let pay = |number: i64| {
        let (url, key) = (url.clone(), format!("k-{number}"));
        tokio::spawn(async move {
            loop {
                let answer = send(&client(), request(&url, &key), "").await.unwrap();
                match answer.status {
                    200 => return String::from_utf8(answer.body.to_vec()).unwrap(),
                    _ => answer.check_for_now(503, "transaction-rolled-back"),
                }
            }
        })
    };
    let mut seen = Vec::new();
    for paying in (0..PAYMENTS).map(pay).collect::<Vec<_>>() {
        seen.push(paying.await.unwrap().parse::<i64>().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..PAYMENTS).collect::<Vec<_>>());
    let all = Found { payments: PAYMENTS, events: PAYMENTS, records: PAYMENTS };
    assert_eq!(postgres.found().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_the_rate_leaves_no_trace_and_replays_are_free() {
    let (runs, shop) = obstructed(0, limited()).await;
    assert_eq!(shop.pay("k-1", "").await.status, 201);
    shop.pay("k-2", "").await.check_for_now(429, "rate-limited");
    assert_eq!(shop.postgres.found().await, ONE);
    assert!(shop.pay("k-1", "").await.is_replay());
    assert_eq!(runs.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn being_run_again_is_no_new_operation_to_the_rate_limit() {
    let (runs, shop) = obstructed(2, limited()).await;
    assert_eq!(shop.pay("k", "").await.status, 201);
    assert_eq!(runs.get(), 3);
}
