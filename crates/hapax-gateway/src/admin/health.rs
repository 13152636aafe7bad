//! Is the process alive, and can it serve.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header::CACHE_CONTROL},
    response::{IntoResponse, Response},
};
use hapax_core::OneLine;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::AdminState;

/// How long the store may take before the gateway is not ready.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// 200 as long as the process can answer at all.
pub(super) async fn alive() -> Response {
    answer(StatusCode::OK, json!({ "alive": true }))
}

/// 200 when new requests can be served: the store takes writes, and nobody said to stop.
pub(super) async fn ready(State(state): State<AdminState>) -> Response {
    if state.draining.load(Relaxed) {
        return not_ready("draining", "the gateway was told to stop");
    }
    match timeout(STORE_ANSWERS_WITHIN, state.engine.takes_writes()).await {
        Ok(Ok(())) => answer(StatusCode::OK, json!({ "ready": true })),
        Ok(Err(error)) => not_ready("store", &OneLine::of(&error).to_string()),
        Err(_) => not_ready("store", "the store did not answer within a second"),
    }
}

fn not_ready(reason: &str, detail: &str) -> Response {
    let document = json!({ "ready": false, "reason": reason, "detail": detail });
    answer(StatusCode::SERVICE_UNAVAILABLE, document)
}

fn answer(status: StatusCode, document: Value) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], Json(document)).into_response()
}
