//! What is answered, and what of it is kept.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use axum::{http::StatusCode, routing::post};
use bytes::Bytes;
use hapax::{
    postgres::transaction::deadpool::Database,
    tower::{Protection, Revalidated, Revalidator, Tx, TxError},
};
use http::Response;

use crate::{
    postgres::{Found, NOTHING, ONE},
    shop::{Shop, Tally, order, unkeyed, write},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_payment_is_made_once_and_answered_alike() {
    let shop = Shop::open().await;
    let first = shop.pay("k", &order(500)).await;
    assert_eq!((first.status, first.is_replay()), (201, false));
    let retry = shop.pay("k", &order(500)).await;
    assert!(retry.is_replay());
    assert_eq!((first.status, &first.body), (retry.status, &retry.body));
    for kept in ["content-type", "idempotency-expires"] {
        assert_eq!(first.headers[kept], retry.headers[kept]);
    }
    assert_eq!(shop.postgres.found().await, ONE);
    let left = shop.postgres.number("SELECT cents FROM accounts WHERE name = 'ada'").await;
    assert_eq!(left, 100_000_000 - 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_lost_its_right_hears_nothing_of_a_payment_that_was_made() {
    let revoked = Arc::new(AtomicBool::new(false));
    let revalidator = Revalidator::from_fn({
        let revoked = Arc::clone(&revoked);
        move |_| {
            let revoked = revoked.load(Relaxed);
            async move {
                let no = Response::builder().status(401).body(Bytes::from("revoked")).unwrap();
                if revoked { Revalidated::Refused(no) } else { Revalidated::May }
            }
        }
    });
    let protection = Protection { revalidate: Some(revalidator), ..Protection::default() };
    let handler = async |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        Ok(StatusCode::CREATED)
    };
    let shop = Shop::with(protection, post(handler)).await;
    assert_eq!(shop.pay("k", "").await.status, 201);
    assert!(shop.pay("k", "").await.is_replay());
    revoked.store(true, Relaxed);
    for body in ["", "another request"] {
        let refused = shop.pay("k", body).await;
        assert_eq!((refused.status, refused.is_replay()), (401, false));
        assert_eq!(refused.body, "revoked");
    }
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_payment_is_kept_as_refused_and_without_its_row() {
    let shop = Shop::open().await;
    let too_much = r#"{"order":"order-18","account":"eve","cents":101}"#;
    let first = shop.pay("k", too_much).await;
    assert_eq!((first.status, first.is_replay()), (402, false));
    assert_eq!(shop.postgres.found().await, Found { records: 1, ..NOTHING });

    let rich = "WITH made AS (UPDATE accounts SET cents = 500 WHERE name = 'eve' RETURNING 1) \
                SELECT count(*) FROM made";
    assert_eq!(shop.postgres.number(rich).await, 1);
    let retry = shop.pay("k", too_much).await;
    assert!(retry.is_replay());
    assert_eq!((first.status, first.body), (retry.status, retry.body));
    assert_eq!(shop.pay("another", too_much).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sum_under_the_same_key_is_refused() {
    let shop = Shop::open().await;
    shop.pay("k", &order(500)).await;
    shop.pay("k", &order(501)).await.check(422, "key-reused");
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_without_a_key_is_refused_before_anything_is_done() {
    let shop = Shop::open().await;
    shop.send(unkeyed(&shop.url), &order(500)).await.check(400, "key-missing");
    assert_eq!(shop.postgres.found().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_no_transaction_is_answered_for_all_the_same() {
    let runs = Tally::default();
    let counted = runs.clone();
    let handler = post(async move || counted.count().to_string());
    let shop = Shop::with(Protection::default(), handler).await;
    assert_eq!(shop.pay("k", "").await.body, "0");
    let retry = shop.pay("k", "").await;
    assert_eq!((retry.is_replay(), &retry.body[..]), (true, &b"0"[..]));
    assert_eq!(runs.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_takes_its_transaction_twice_fails_and_nothing_is_kept() {
    let handler = async |_: Tx<Database>, _: Tx<Database>| "both";
    let shop = Shop::with(Protection::default(), post(handler)).await;
    let answer = shop.pay("k", "").await;
    assert_eq!(answer.status, 500);
    assert!(answer.body.starts_with(b"this route has no transaction"), "{answer:?}");
    assert_eq!(shop.postgres.found().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_over_the_cap_is_given_once_and_then_known_to_have_been() {
    let protection = Protection { response_bytes_max: 1000, ..Protection::default() };
    let handler = async |mut tx: Tx<Database>| -> Result<String, TxError> {
        write(&mut tx).await?;
        Ok("x".repeat(1001))
    };
    let shop = Shop::with(protection, post(handler)).await;
    let first = shop.pay("k", "").await;
    assert_eq!((first.status, first.body.len()), (200, 1001));
    let retry = shop.pay("k", "").await;
    retry.check(409, "response-not-retained");
    assert!(retry.is_replay());
    assert_eq!(shop.postgres.found().await, ONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_cannot_be_held_until_the_commit_rolls_everything_back() {
    let handler = async |mut tx: Tx<Database>| -> Result<String, TxError> {
        write(&mut tx).await?;
        Ok("x".repeat((16 << 20) + 1))
    };
    let shop = Shop::with(Protection::default(), post(handler)).await;
    shop.pay("k", "").await.check_for_now(503, "transaction-rolled-back");
    assert_eq!(shop.postgres.found().await, NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_the_database_refused_can_be_answered_with_a_refusal_that_is_kept() {
    let handler = async |mut tx: Tx<Database>| -> Result<StatusCode, TxError> {
        write(&mut tx).await?;
        let taken = tx.execute("INSERT INTO accounts VALUES ('ada', 1)", &[]).await;
        Ok(if taken.is_err() { StatusCode::CONFLICT } else { StatusCode::CREATED })
    };
    let shop = Shop::with(Protection::default(), post(handler)).await;
    assert_eq!(shop.pay("k", "").await.status, 409);
    let retry = shop.pay("k", "").await;
    assert_eq!((retry.status, retry.is_replay()), (409, true));
    assert_eq!(shop.postgres.found().await, Found { records: 1, ..NOTHING });
}
