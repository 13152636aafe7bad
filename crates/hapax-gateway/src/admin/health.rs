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

use super::{AdminState, relay_pages::NotReady};

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
    let takes_writes = async {
        let refused = |error| NotReady { reason: "store", detail: OneLine::of(&error).to_string() };
        state.engine.takes_writes().await.map_err(refused)?;
        Ok(serving(&state))
    };
    answered_in_time(takes_writes, "the store").await
}

/// Whether a process is ready, as far as `whom` says within a second.
pub(super) async fn answered_in_time(
    readiness: impl Future<Output = Result<Value, NotReady>>,
    whom: &str,
) -> Response {
    match timeout(STORE_ANSWERS_WITHIN, readiness).await {
        Ok(Ok(ready)) => answer(StatusCode::OK, ready),
        Ok(Err(NotReady { reason, detail })) => not_ready(reason, &detail),
        Err(_) => not_ready("store", &format!("{whom} did not answer within a second")),
    }
}

/// A store under quarantine still answers for the keys that are in it: taking every gateway out of
/// service would refuse those, too.
fn serving(state: &AdminState) -> Value {
    match state.engine.quarantine() {
        None => json!({ "ready": true }),
        Some(quarantine) => json!({ "ready": true, "quarantined": quarantine.cause.as_str() }),
    }
}

fn not_ready(reason: &str, detail: &str) -> Response {
    let document = json!({ "ready": false, "reason": reason, "detail": detail });
    answer(StatusCode::SERVICE_UNAVAILABLE, document)
}

fn answer(status: StatusCode, document: Value) -> Response {
    (status, [(CACHE_CONTROL, "no-store")], Json(document)).into_response()
}
