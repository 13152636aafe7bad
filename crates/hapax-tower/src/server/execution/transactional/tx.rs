//! The transaction of a request, for its handler.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use hapax_core::{Attempt, Database};
use hapax_engine::Tx as Lent;
use http::Extensions;

/// The transaction a request runs in: write through it as through a connection of its driver.
///
/// An extractor for axum handlers (feature `axum`); elsewhere it is taken out of the request's
/// extensions with [`Tx::take`]. It goes back to the layer when it is dropped, and the layer commits
/// after the handler has answered.
///
/// ```
/// use hapax_core::Database;
/// use hapax_tower::{Body, Tx, TxError};
/// use http::{Request, Response};
///
/// /// A service without axum; with a driver of its own, `D` is that driver's database.
/// async fn pay<D: Database>(request: Request<Body>) -> Result<Response<Body>, TxError> {
///     let missing = || std::io::Error::other("there is no layer around this service");
///     let tx = Tx::<D>::take(request.extensions()).ok_or_else(missing)?;
///     println!("attempt {}", tx.attempt().fence.get());
///     Ok(Response::new(Body::empty()))
/// }
/// ```
pub struct Tx<D: Database>(Lent<D::Transaction>);

impl<D: Database> Tx<D> {
    /// Takes the transaction out of a request; `None` if it was taken before, or if no layer
    /// of this database ([`SameTransaction`](super::SameTransaction)) is around the service.
    pub fn take(extensions: &Extensions) -> Option<Self> {
        extensions.get::<TransactionSlot<D>>()?.take().map(Self)
    }

    /// The attempt this is: its fence and key may go downstream.
    pub fn attempt(&self) -> Attempt {
        self.0.attempt()
    }
}

impl<D: Database> Deref for Tx<D> {
    type Target = D::Transaction;

    fn deref(&self) -> &D::Transaction {
        &self.0
    }
}

impl<D: Database> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut D::Transaction {
        &mut self.0
    }
}

impl<D: Database> fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tx").field(&self.0).finish()
    }
}

/// Where a request carries its transaction until somebody takes it.
pub(crate) struct TransactionSlot<D: Database>(Arc<Mutex<Option<Lent<D::Transaction>>>>);

impl<D: Database> TransactionSlot<D> {
    pub(crate) fn new(tx: Lent<D::Transaction>) -> Self {
        Self(Arc::new(Mutex::new(Some(tx))))
    }

    pub(crate) fn take(&self) -> Option<Lent<D::Transaction>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<D: Database> Clone for TransactionSlot<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(feature = "axum")]
impl<D: Database, S: Sync> axum_core::extract::FromRequestParts<S> for Tx<D> {
    type Rejection = (http::StatusCode, &'static str);

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _: &S,
    ) -> Result<Self, Self::Rejection> {
        let missing = "this route has no transaction: put a layer of this database \
                       around it, and take its Tx once";
        Self::take(&parts.extensions).ok_or((http::StatusCode::INTERNAL_SERVER_ERROR, missing))
    }
}
