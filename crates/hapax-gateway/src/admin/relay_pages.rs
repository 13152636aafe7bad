//! Health and metrics of relays that run without a gateway.

use std::{fmt, pin::Pin, sync::Arc};

use axum::{
    Router,
    extract::State,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;

use super::{
    health,
    metrics::{self, MetricFamily, RelayFigures},
    problem::AdminProblem,
};

/// What operators see of relays that run without a gateway: `/healthz`, `/readyz` and `/metrics`.
#[derive(Clone)]
pub struct RelayPages {
    figures: Arc<dyn Fn() -> Vec<RelayFigures> + Send + Sync>,
    readiness: Arc<dyn Fn() -> ReadinessFuture + Send + Sync>,
}

type ReadinessFuture = Pin<Box<dyn Future<Output = Result<(), NotReady>> + Send>>;

/// Why a process is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// In a word, for programs.
    pub reason: &'static str,
    /// In a sentence, for people.
    pub detail: String,
}

impl RelayPages {
    /// Shows these figures, and asks `readiness` whenever somebody wants to know; an answer that takes more
    /// than a second is none.
    pub fn new<F>(
        figures: impl Fn() -> Vec<RelayFigures> + Send + Sync + 'static,
        readiness: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), NotReady>> + Send + 'static,
    {
        Self { figures: Arc::new(figures), readiness: Arc::new(move || Box::pin(readiness())) }
    }

    /// Every metric, as `/metrics` shows it now.
    pub fn families(&self) -> Vec<MetricFamily> {
        metrics::relay_families(&(self.figures)())
    }

    pub(crate) fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(health::alive))
            .route("/readyz", get(ready))
            .route("/metrics", get(show))
            .fallback(async || AdminProblem::no_such_page())
            .with_state(self)
    }
}

async fn ready(State(pages): State<RelayPages>) -> Response {
    let readiness = async { (pages.readiness)().await.map(|()| json!({ "ready": true })) };
    health::answered_in_time(readiness, "the outbox").await
}

async fn show(State(pages): State<RelayPages>) -> Response {
    let headers = [(CONTENT_TYPE, metrics::CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
    (headers, metrics::text(&pages.families())).into_response()
}

impl fmt::Debug for RelayPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelayPages").finish_non_exhaustive()
    }
}
