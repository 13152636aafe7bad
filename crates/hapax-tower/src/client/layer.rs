//! The layer, and what it shares with every service it makes.

use std::sync::Arc;

use tower_layer::Layer;

use super::{
    key::KeySource,
    options::{InvalidRetry, RetryOptions},
    service::Retry,
};

/// Gives any HTTP client keys, retries, a deadline, a retry budget and a breaker.
///
/// ```
/// use hapax_tower::{
///     Body, NothingSent,
///     client::{RetryLayer, RetryOptions, Tried},
/// };
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # let calls = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
/// // A client whose first connection is refused.
/// let client = service_fn(move |_request: http::Request<Body>| {
///     let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///     async move {
///         if call == 0 {
///             return Err(NothingSent::new("connection refused"));
///         }
///         Ok(http::Response::new(Body::empty()))
///     }
/// });
/// let client = RetryLayer::new(RetryOptions::default())?.layer(client);
/// let request = http::Request::post("https://api.example.com/charges").body(Body::empty())?;
/// let answer = client.oneshot(request).await?;
/// assert_eq!(answer.extensions().get::<Tried>().map(|tried| tried.attempts), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RetryLayer(Arc<Shared>);

/// What all clones of a service share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: RetryOptions,
    pub(super) keys: KeySource,
}

impl RetryLayer {
    /// A layer with these options.
    pub fn new(options: RetryOptions) -> Result<Self, InvalidRetry> {
        options.check()?;
        Ok(Self(Arc::new(Shared { options, keys: KeySource::new() })))
    }
}

impl<Inner> Layer<Inner> for RetryLayer {
    type Service = Retry<Inner>;

    fn layer(&self, inner: Inner) -> Retry<Inner> {
        Retry::new(inner, Arc::clone(&self.0))
    }
}
