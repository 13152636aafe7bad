//! How a service says that nothing of a request left.

use std::{error::Error, iter::successors};

use crate::body::BoxError;

/// Nothing of the request was sent, so nothing can have happened: the key stays free.
///
/// A service returns it from `call`, alone or anywhere in the chain of an error's sources. Every
/// other error means that the request may have been carried out.
///
/// ```
/// use hapax_tower::{Body, BoxError, NothingSent};
/// use http::{Request, Response};
///
/// async fn forward(_request: Request<Body>) -> Result<Response<Body>, BoxError> {
///     // From here on nobody knows, so every other error is passed on as it is.
///     let _upstream = std::net::TcpStream::connect("127.0.0.1:1").map_err(NothingSent::new)?;
///     Ok(Response::new(Body::empty()))
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("nothing of the request was sent")]
pub struct NothingSent(#[source] BoxError);

impl NothingSent {
    /// Says so, and why.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        Self(cause.into())
    }

    pub(crate) fn is_in(error: &(dyn Error + 'static)) -> bool {
        successors(Some(error), |error| (**error).source()).any(|error| error.is::<Self>())
    }
}
