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
use hapax_core::Store;
use hapax_engine::Engine;

pub use self::{
    metrics::{Exchange, Meter, Meters, Present, RelayMeter},
    operations::documents,
    token::Secret,
};

/// What the admin side looks at.
#[derive(Debug)]
pub struct AdminState<S: Store> {
    /// The engine of the gateway, and through it the store.
    pub engine: Engine<S>,
    /// The token `/v1` asks for; without one nothing under `/v1` is served.
    pub token: Option<Secret>,
    /// What the workers count.
    pub meters: Meters,
    /// Set when the gateway was told to stop: it is alive, but no longer ready.
    pub draining: Arc<AtomicBool>,
}

impl<S: Store> Clone for AdminState<S> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            token: self.token.clone(),
            meters: self.meters.clone(),
            draining: Arc::clone(&self.draining),
        }
    }
}

/// Everything the admin listener answers.
pub fn router<S: Store>(state: AdminState<S>) -> Router {
    let token = middleware::from_fn_with_state(state.clone(), token::required::<S>);
    Router::new()
        .nest("/v1", operations::router().layer(token))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready::<S>))
        .route("/metrics", get(metrics::show::<S>))
        .fallback(async || problem::Problem::no_such_page())
        .with_state(state)
}
