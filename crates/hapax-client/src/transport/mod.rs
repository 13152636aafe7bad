//! How requests leave: any tower service, and a ready one over reqwest.

mod over_reqwest;
mod tls;

use bytes::Bytes;
use hapax_tower::{Body, BoxError};
use http::{Request, Response};
use tower_service::Service;

pub use self::over_reqwest::{Exchange, Proxies, Reqwest, ReqwestOptions, TransportError};

/// Any HTTP client that is a tower service; implemented for all that fit.
///
/// Its errors mean that the request may have been carried out, unless a [`NothingSent`](hapax_tower::NothingSent) is among
/// their sources.
pub trait Transport:
    Service<
        Request<Body>,
        Response = Response<Self::Answered>,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
    /// The body of its answers.
    type Answered: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> Transport for S
where
    S: Service<
            Request<Body>,
            Response = Response<B>,
            Error: Into<BoxError>,
            Future: Send + 'static,
        > + Clone
        + Send
        + Sync
        + 'static,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Answered = B;
}
