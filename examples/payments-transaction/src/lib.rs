//! A payment service whose charge, event and answer are one commit.

pub mod once;

use std::{error::Error, num::NonZeroU32};

use axum::{Json, Router, http::StatusCode, routing::post};
use deadpool_postgres::Pool;
use hapax::{
    Event, Hapax,
    deadpool::Tx,
    tower::{Tenancy, TxError},
};
use serde_json::{Value, json};

/// What the service needs beside the schema of Hapax. Nothing here keeps an order from being paid
/// twice.
pub const TABLES: &str = include_str!("schema.sql");

/// An order, as clients send it.
#[derive(Debug, serde::Deserialize)]
pub struct Order {
    order: String,
    account: String,
    cents: NonZeroU32,
}

/// The service, on the pool it uses for everything else, too.
///
/// # Errors
///
/// If the database cannot be reached, or `hapax migrate` was not run in it.
pub async fn app(pool: Pool) -> Result<Router, Box<dyn Error + Send + Sync>> {
    let layer = Hapax::in_transactions_of(pool).await?.layer(Tenancy::credential());
    Ok(Router::new().route("/payments", post(pay)).layer(layer))
}

async fn pay(mut tx: Tx, Json(order): Json<Order>) -> Result<(StatusCode, Json<Value>), TxError> {
    let Order { order, account, cents } = order;
    let cents = i64::from(cents.get());
    let insert = "INSERT INTO payments (order_id, account, cents) VALUES ($1, $2, $3) RETURNING id";
    let payment: i64 = tx.query_one(insert, &[&order, &account, &cents]).await?.get(0);
    let charge = "UPDATE accounts SET cents = cents - $2 WHERE name = $1 AND cents >= $2";
    if tx.execute(charge, &[&account, &cents]).await? == 0 {
        // This answer is kept, and the payment above is not.
        return Ok((StatusCode::PAYMENT_REQUIRED, Json(json!({ "error": "not enough money" }))));
    }
    let receipt = json!({ "payment": payment, "order": order, "cents": cents });
    tx.emit(Event::new("payment.completed", order, receipt.to_string())?);
    Ok((StatusCode::CREATED, Json(receipt)))
}
