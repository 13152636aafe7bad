//! What the gateway counts, and the page that shows it.

mod doubts;
mod exposition;
mod family;
mod meter;
mod meters;
mod page;
mod relays;
mod repeated;
mod verdicts;

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};

use hapax_engine::Engine;

pub(super) use self::exposition::{CONTENT_TYPE, text};
pub(super) use self::{
    exposition::Exposition,
    meters::MeterTotals,
    repeated::RepeatedSums,
    verdicts::{COLUMNS, WORDS, column},
};
pub use self::{
    family::{MetricFamily, MetricKind, MetricSample, SampleValue},
    meter::{Meter, PresenceGuard, UpstreamExchange},
    meters::Meters,
    relays::RelayFigures,
};
use super::AdminState;

/// Every metric of the process, for Prometheus.
pub(super) async fn show(State(state): State<AdminState>) -> Response {
    let headers = [(header::CONTENT_TYPE, CONTENT_TYPE), (header::CACHE_CONTROL, "no-store")];
    (headers, text(&page::families(&state.engine, &state.meters))).into_response()
}

/// Every metric of relays that run without a gateway.
pub(super) fn relay_families(relays: &[RelayFigures]) -> Vec<MetricFamily> {
    let mut page = Exposition::default();
    page::build_info(&mut page);
    relays::write(&mut page, relays);
    page.into_families()
}

impl Meters {
    /// Every metric of the gateway with this engine, as `/metrics` shows it now.
    pub fn families(&self, engine: &Engine) -> Vec<MetricFamily> {
        page::families(engine, self)
    }
}
