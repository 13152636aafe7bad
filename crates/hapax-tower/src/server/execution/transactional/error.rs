//! A handler's errors, kept whole on their way through its response.

use std::{error::Error, fmt, sync::Arc};

use http::Extensions;

use crate::body::BoxError;

/// An error of a handler in a transaction: everything is rolled back, and the handler is run again
/// if another transaction was in the way.
///
/// Any error becomes one with `?`. As a response of an axum handler (feature `axum`) it takes its
/// cause to the layer, which tells the client 503 `transaction-rolled-back` and writes the cause to
/// the log.
///
/// ```
/// use hapax_tower::TxError;
///
/// async fn pay(cents: String) -> Result<String, TxError> {
///     // The error of a driver goes the same way.
///     let cents: u32 = cents.parse()?;
///     Ok(format!("charged {cents}"))
/// }
/// ```
pub struct TxError(Arc<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for TxError {
    fn from(error: E) -> Self {
        Self(Arc::new(error))
    }
}

impl fmt::Debug for TxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TxError").field(&self.0).finish()
    }
}

/// The error that a response stands for, if it does.
pub(crate) fn raised(extensions: &mut Extensions) -> Option<BoxError> {
    extensions.remove::<Raised>().map(Into::into)
}

/// An error as an extension, which must be cloneable.
#[derive(Debug, Clone)]
struct Raised(Arc<dyn Error + Send + Sync>);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the handler failed: {}", self.0)
    }
}

impl Error for Raised {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The error itself, not the `Arc` around it: the database must recognise its own.
        Some(&*self.0)
    }
}

#[cfg(feature = "axum")]
impl axum_core::response::IntoResponse for TxError {
    fn into_response(self) -> axum_core::response::Response {
        let mut response = http::StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(Raised(self.0));
        response
    }
}
