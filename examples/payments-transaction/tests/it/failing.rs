//! Whatever fails leaves nothing behind, and the key is free.

use std::{sync::Arc, time::Duration};

use axum::{http::StatusCode, routing::post};
use hapax::{
    postgres::transaction::deadpool::Database,
    tower::{Protection, Tx, TxError},
};
use tokio::sync::Semaphore;

use crate::{
    postgres::{NOTHING, ONE},
    shop::{Answer, Shop, Tally, write},
};

/// How a handler fails the first time, after it has written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Failure {
    Answers500,
    Answers429,
    RaisesAnError,
    Panics,
    NeverAnswers,
    AnswersOverABrokenTransaction,
}

/// The first payment fails like this, and the second is made.
async fn check(failure: Failure) -> Answer {
    let runs = Tally::default();
    let handler = async move |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        if runs.count() > 0 {
            return Ok(StatusCode::CREATED);
        }
        match failure {
            Failure::Answers500 => return Ok(StatusCode::INTERNAL_SERVER_ERROR),
            Failure::Answers429 => return Ok(StatusCode::TOO_MANY_REQUESTS),
            Failure::RaisesAnError => return Err(std::io::Error::other("no paper").into()),
            Failure::Panics => panic!("no paper"),
            Failure::NeverAnswers => std::future::pending::<()>().await,
            Failure::AnswersOverABrokenTransaction => {
                assert!(tx.execute("SELECT 1 / 0", &[]).await.is_err());
            }
        }
        Ok(StatusCode::CREATED)
    };
    let mut protection = Protection::default();
    if failure == Failure::NeverAnswers {
        protection.timeout = Duration::from_secs(2);
    }
    let shop = Shop::with(protection, post(handler)).await;
    let failed = shop.pay("k", "").await;
    assert_eq!(shop.postgres.found().await, NOTHING, "{failure:?}");
    let retry = shop.pay("k", "").await;
    assert_eq!((retry.status, retry.is_replay()), (201, false), "{failure:?}");
    assert_eq!(shop.postgres.found().await, ONE, "{failure:?}");
    assert!(!failed.headers.contains_key("idempotency-expires"), "{failed:?}");
    failed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_500_is_passed_on_and_nothing_is_kept() {
    assert_eq!(check(Failure::Answers500).await.status, 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_429_is_passed_on_and_nothing_is_kept() {
    assert_eq!(check(Failure::Answers429).await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_handler_is_told_as_rolled_back() {
    let told = check(Failure::RaisesAnError).await;
    told.check_for_now(503, "transaction-rolled-back");
    assert!(!String::from_utf8_lossy(&told.body).contains("no paper"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_told_as_rolled_back() {
    check(Failure::Panics).await.check_for_now(503, "transaction-rolled-back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_too_long_is_rolled_back() {
    check(Failure::NeverAnswers).await.check_for_now(503, "transaction-rolled-back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_over_a_transaction_that_the_database_aborted_is_not_believed() {
    let told = check(Failure::AnswersOverABrokenTransaction).await;
    told.check_for_now(503, "transaction-rolled-back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_outlives_its_handler_is_not_committed() {
    let (runs, end) = (Tally::default(), Arc::new(Semaphore::new(0)));
    let until = Arc::clone(&end);
    let handler = async move |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        if runs.count() == 0 {
            let until = Arc::clone(&until);
            tokio::spawn(async move {
                until.acquire().await.unwrap().forget();
                drop(tx);
            });
        }
        Ok(StatusCode::CREATED)
    };
    let shop = Shop::with(Protection::default(), post(handler)).await;
    shop.pay("k", "").await.check_for_now(503, "transaction-rolled-back");
    assert_eq!(shop.postgres.found().await, NOTHING);
    end.add_permits(1);
    assert_eq!(shop.pay("k", "").await.status, 201);
    assert_eq!(shop.postgres.found().await, ONE);
}
