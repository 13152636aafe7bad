//! Health, metrics, the admin API and the dashboard: the side of a gateway that its operators see.
//!
//! [`router`] makes the whole of it. It belongs on a listener of its own, never on the one clients
//! use. Health and metrics are open to whoever reaches that listener; everything under `/v1` asks
//! for a token, or for the session of somebody who signed in to the dashboard.

mod access;
mod change_order;
mod consumers;
mod dashboard;
mod figures;
mod health;
mod metrics;
mod observations;
mod operations;
mod outbox;
mod problem;
mod quarantine;
mod relay_pages;

use std::sync::{Arc, atomic::AtomicBool};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::{
    Json, Router,
    http::header::CACHE_CONTROL,
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use hapax_core::{inbox::InboxAdmin, outbox::OutboxAdmin};
use hapax_engine::Engine;
use serde::Serialize;

pub use self::{
    access::{AdminAccess, AdminSecret},
    metrics::{
        Meter, Meters, MetricFamily, MetricKind, MetricSample, PresenceGuard, RelayFigures,
        SampleValue, UpstreamExchange,
    },
    relay_pages::{NotReady, RelayPages},
};
use self::{
    access::{OidcSignIn, SessionRegistry},
    consumers::DynInbox,
    figures::FigureFeed,
    outbox::DynOutbox,
};

/// The JSON documents of the admin API, for whoever answers with them and whoever reads them.
///
/// - [`ListingDocument`](documents::ListingDocument), [`ShownDocument`](documents::ShownDocument) and
///   [`ExplanationDocument`](documents::ExplanationDocument) are what is told about operations;
/// - [`ReleaseDocument`](documents::ReleaseDocument) and [`Resolve`](documents::Resolve) are what a
///   person sends to have one changed, [`ChangedDocument`](documents::ChangedDocument) says what was
///   done, [`ForeseenDocument`](documents::ForeseenDocument) what would have been;
/// - [`OverviewDocument`](documents::OverviewDocument) and
///   [`HousekeepingDocument`](documents::HousekeepingDocument) are about the gateway as a whole,
///   [`ObservationsDocument`](documents::ObservationsDocument) about routes that are watched alone;
/// - [`DestinationsDocument`](documents::DestinationsDocument) and
///   [`ParkedEvents`](documents::ParkedEvents) are about its outbox,
///   [`ConsumersDocument`](documents::ConsumersDocument) and
///   [`LettersDocument`](documents::LettersDocument) about its inbox,
///   [`PastDocument`](documents::PastDocument) about what the store may have forgotten.
///
/// Instants are the store's, written as RFC 3339 in UTC, unless said otherwise.
pub mod documents {
    pub use super::{
        consumers::documents::*, figures::documents::*, observations::documents::*,
        operations::documents::*, outbox::documents::*, quarantine::documents::*,
    };
}

/// What the admin side looks at. Clones share it.
#[derive(Debug, Clone)]
pub struct AdminState {
    engine: Engine,
    access: Arc<AdminAccess>,
    meters: Meters,
    /// Set when the gateway was told to stop: it is alive, but no longer ready.
    draining: Arc<AtomicBool>,
    sessions: SessionRegistry,
    sign_in: Option<Arc<OidcSignIn>>,
    feed: FigureFeed,
    configuration: Arc<ArcSwap<String>>,
    outbox: Arc<ArcSwapOption<DynOutbox>>,
    inbox: Arc<ArcSwapOption<DynInbox>>,
}

impl AdminState {
    /// The admin side of a gateway with this engine, whose workers count with these meters, and
    /// which is told to stop by `draining`.
    pub fn new(
        engine: Engine,
        access: AdminAccess,
        meters: Meters,
        draining: Arc<AtomicBool>,
    ) -> Self {
        let access = access.with_dashboard_host();
        let sign_in = access.oidc.clone().map(OidcSignIn::new).map(Arc::new);
        Self {
            engine,
            access: Arc::new(access),
            meters,
            draining,
            sessions: SessionRegistry::default(),
            sign_in,
            feed: FigureFeed::default(),
            configuration: Arc::default(),
            outbox: Arc::default(),
            inbox: Arc::default(),
        }
    }

    /// Shows what is in force, in place of what was shown before: a line for each thing that
    /// matters, without anything secret.
    pub fn show_configuration(&self, described: String) {
        self.configuration.store(Arc::new(described));
    }

    /// Lets people look after this outbox.
    pub fn show_outbox(&self, outbox: impl OutboxAdmin + 'static) {
        self.outbox.store(Some(Arc::new(DynOutbox::new(outbox))));
    }

    /// Lets people look after the consumers of this inbox.
    pub fn show_inbox(&self, inbox: impl InboxAdmin + 'static) {
        self.inbox.store(Some(Arc::new(DynInbox::new(inbox))));
    }

    /// Keeps the figures of the last hour, and tells them to whoever listens, until the gateway is
    /// told to stop.
    pub async fn keep_figures(self) {
        self.feed.clone().run(self).await;
    }
}

/// Everything the admin listener answers.
pub fn router(state: AdminState) -> Router {
    let required = middleware::from_fn_with_state(state.clone(), access::required);
    let api = operations::router()
        .merge(figures::routes())
        .merge(observations::routes())
        .merge(outbox::routes())
        .merge(consumers::routes())
        .merge(quarantine::routes());
    let api = api
        .fallback(async || problem::AdminProblem::no_such_page())
        .method_not_allowed_fallback(async || problem::AdminProblem::no_such_method())
        .layer(required);
    Router::new()
        .nest("/v1", api)
        .merge(access::routes(&state))
        .merge(dashboard::routes(&state))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::show))
        .fallback(async || problem::AdminProblem::no_such_page())
        .with_state(state)
}

/// A document that nobody keeps: it is outdated when it is read.
fn answer(document: &impl Serialize) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(document)).into_response()
}
