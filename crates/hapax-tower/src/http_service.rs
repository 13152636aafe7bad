//! What a service must be to be protected or called again, said once for everything that hands it on.

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use crate::body::{Body, BoxError};

/// Any HTTP service of tower that can be run in a task of its own, and again; implemented for all that
/// fit.
///
/// ```
/// use hapax_tower::{Body, HttpService};
/// use tower::service_fn;
///
/// fn serve(_service: impl HttpService) {}
///
/// serve(service_fn(async |_request: http::Request<Body>| {
///     Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
/// }));
/// ```
pub trait HttpService:
    Service<
        Request<Body>,
        Response = Response<<Self as HttpService>::Answer>,
        Error: Into<BoxError> + Send + 'static,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
    /// The body of what it answers.
    type Answer: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;
}

impl<T, R> HttpService for T
where
    T: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    T::Future: Send,
    T::Error: Into<BoxError> + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Answer = R;
}
