//! What the gateway counts, and the page that shows it.

mod doubts;
mod exposition;
mod meter;
mod meters;
mod page;
mod relays;
mod verdicts;

use axum::{
    extract::State,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use hapax_core::Store;

pub use self::{
    meter::{Exchange, Meter, Present},
    meters::Meters,
    relays::RelayMeter,
};
use super::AdminState;

/// Every metric of the process, for Prometheus.
pub(super) async fn show<S: Store>(State(state): State<AdminState<S>>) -> Response {
    let headers = [(CONTENT_TYPE, exposition::CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
    (headers, page::write(&state.engine, &state.meters)).into_response()
}
