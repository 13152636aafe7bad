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

pub use self::{
    meter::{Meter, PresenceGuard, UpstreamExchange},
    meters::Meters,
    relays::RelayFigures,
};
use super::AdminState;

/// Every metric of the process, for Prometheus.
pub(super) async fn show(State(state): State<AdminState>) -> Response {
    let headers = [(CONTENT_TYPE, exposition::CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
    (headers, page::write(&state.engine, &state.meters)).into_response()
}
