//! The layer, and what it shares with every service it makes.

use std::{fmt, sync::Arc};

use hapax_core::{Database, TransactionError};
use hapax_engine::{TransactionOptions, Transactional};
use tower_layer::Layer;

use super::service::TransactionalService;
use crate::server::{
    cors::Cors,
    front::Front,
    layer::Site,
    room::Room,
    route::{InvalidRoute, Routes},
    tenancy::Tenancy,
};

/// Protects a service whose effect is in a database: one execution per key, committed together with
/// the answer that every later request gets.
///
/// The handler takes its transaction with [`Tx`](super::Tx), writes through it and answers; the
/// commit is the layer's. A 4xx is kept without the handler's writes; a 5xx, a panic or the timeout
/// rolls everything back, and the key is free.
pub struct TransactionalLayer<D> {
    shared: Arc<Shared<D>>,
}

impl<D: Database> TransactionalLayer<D> {
    /// Asks the database for its salt, so that a schema that is missing or too old is told at once.
    ///
    /// A route may neither accept requests for later nor use the dialect of repeatable requests: a
    /// transaction has no later.
    pub async fn connect(
        database: D,
        tenancy: Tenancy,
        routes: Routes,
    ) -> Result<Self, ConnectError> {
        routes.check_for_transactions()?;
        let transactional = Transactional::new(database, TransactionOptions::default());
        let salt = transactional.salt().await?;
        let front = Front::new(salt, tenancy, Arc::new(routes), Arc::default());
        Ok(Self { shared: Arc::new(Shared { transactional, front }) })
    }

    /// The same layer with its pages elsewhere.
    #[must_use]
    pub fn site(self, site: Site) -> Self {
        self.with(|front| front.answer_at(Arc::new(site)))
    }

    /// The same layer, keeping at most this many bytes of protected requests in memory at once.
    #[must_use]
    pub fn buffer_at_most(self, bytes: usize) -> Self {
        self.with(|front| front.room = Some(Room::of(bytes)))
    }

    /// The same layer, telling browsers which pages of other origins may use protected routes and read
    /// what they answer.
    #[must_use]
    pub fn cors(self, cors: Cors) -> Self {
        self.with(|front| front.cors = Some(Arc::new(cors)))
    }

    fn with(self, change: impl FnOnce(&mut Front)) -> Self {
        let transactional = self.shared.transactional.clone();
        let mut front = self.shared.front.clone();
        change(&mut front);
        Self { shared: Arc::new(Shared { transactional, front }) }
    }
}

/// What every request needs to know.
pub(crate) struct Shared<D> {
    pub(crate) transactional: Transactional<D>,
    pub(crate) front: Front,
}

/// Why a layer could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A route cannot be run in a transaction.
    #[error(transparent)]
    Route(#[from] InvalidRoute),
    /// The database cannot be used.
    #[error("the database cannot be used")]
    Database(#[from] TransactionError),
}

impl<D: Database, Inner> Layer<Inner> for TransactionalLayer<D> {
    type Service = TransactionalService<Inner, D>;

    fn layer(&self, inner: Inner) -> Self::Service {
        TransactionalService::new(inner, Arc::clone(&self.shared))
    }
}

impl<D> Clone for TransactionalLayer<D> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<D> fmt::Debug for TransactionalLayer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layer = f.debug_struct("TransactionalLayer");
        layer.field("tenancy", &self.shared.front.tenancy);
        layer.field("routes", &self.shared.front.routes).finish_non_exhaustive()
    }
}
