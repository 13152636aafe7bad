//! A payment service that charges once, however often it is asked.

use std::{
    error::Error,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use hapax::{Hapax, tower::Tenancy};
use serde_json::{Value, json};

/// The service, remembering its keys in this file.
///
/// # Errors
///
/// If the file cannot be opened.
pub async fn app(keys: &Path, bank: Bank) -> Result<Router, Box<dyn Error>> {
    let hapax = Hapax::open(&format!("sqlite:{}", keys.display())).await?;
    let once = hapax.layer(Tenancy::credential()).compare(hapax::Json.ignoring("/sent_at"));
    let payments = post(pay).get(list);
    Ok(Router::new().route("/payments", payments).with_state(bank).layer(once))
}

/// Where the money is: every charge it was ever asked for.
#[derive(Debug, Clone, Default)]
pub struct Bank(Arc<Mutex<Vec<u64>>>);

impl Bank {
    /// The charges so far, in cents.
    pub fn charges(&self) -> Vec<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the money, each time it is called. Nothing here knows about retries.
    fn charge(&self, cents: u64) -> usize {
        let mut charges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        charges.push(cents);
        charges.len()
    }
}

async fn pay(State(bank): State<Bank>, Json(order): Json<Value>) -> (StatusCode, Json<Value>) {
    let Some(cents) = order["cents"].as_u64().filter(|cents| *cents > 0) else {
        let refused = json!({ "error": "`cents` must be a whole number above zero" });
        return (StatusCode::UNPROCESSABLE_ENTITY, Json(refused));
    };
    let number = bank.charge(cents);
    (StatusCode::CREATED, Json(json!({ "payment": number, "cents": cents })))
}

async fn list(State(bank): State<Bank>) -> Json<Value> {
    Json(json!({ "charges": bank.charges() }))
}
