//! Health, metrics and the operations API: the side of a gateway that its operators see.
//!
//! [`router`] makes the whole of it. It belongs on a listener of its own, never on the one clients
//! use. Health and metrics are open to whoever reaches that listener; everything under `/v1` asks
//! for a token.

mod health;
mod metrics;
mod operations;
mod problem;
mod token;

use std::sync::{Arc, atomic::AtomicBool};

use axum::{Router, middleware, routing::get};
use hapax_engine::Engine;

pub use self::{
    metrics::{Meter, Meters, PresenceGuard, RelayFigures, UpstreamExchange},
    operations::documents,
    token::AdminSecret,
};

/// What the admin side looks at.
#[derive(Debug, Clone)]
pub struct AdminState {
    /// The engine of the gateway, and through it the store.
    pub engine: Engine,
    /// The token `/v1` asks for; without one nothing under `/v1` is served.
    pub token: Option<AdminSecret>,
    /// What the workers count.
    pub meters: Meters,
    /// Set when the gateway was told to stop: it is alive, but no longer ready.
    pub draining: Arc<AtomicBool>,
}

/// Everything the admin listener answers.
pub fn router(state: AdminState) -> Router {
    let token = middleware::from_fn_with_state(state.clone(), token::required);
    Router::new()
        .nest("/v1", operations::router().layer(token))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
        .fallback(async || problem::AdminProblem::no_such_page())
        .with_state(state)
}
