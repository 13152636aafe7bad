//! The caller's side: retries that are safe, bounded, and honest about what they came to.
//!
//! Put [`RetryLayer`] around any HTTP client that is a tower service. Requests that change something
//! get one key for all their attempts; what cannot be repeated without harm is sent exactly once.
//!
//! ```
//! use hapax_tower::{
//!     Body,
//!     client::{RetryLayer, RetryOptions, Tried},
//! };
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let bare = service_fn(async |request: http::Request<Body>| {
//!     assert!(request.headers().contains_key("idempotency-key"));
//!     Ok::<_, std::convert::Infallible>(http::Response::new(Body::empty()))
//! });
//! let client = RetryLayer::new(RetryOptions::default())?.layer(bare);
//!
//! let request = http::Request::post("https://api.example.com/charges").body(Body::empty())?;
//! let response = client.oneshot(request).await?;
//! let tried = response.extensions().get::<Tried>();
//! assert_eq!(tried.map(|tried| tried.attempts), Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! - [`RetryOptions`] say how often, how long and how large; [`Destinations`] hold what all calls to
//!   one place share: its retry budget and its breaker;
//! - [`Tried`] comes with every response and every [`RetryError`]: the key, the attempts, and the
//!   [`Conclusion`](hapax_core::retry::Conclusion);
//! - [`Pursuit`] goes with a request that is to be pursued otherwise, or [`Watch`]ed;
//! - [`KeySource`] makes keys.
//!
//! Nothing outlives the future of a call: dropping it stops everything. All time is tokio's, so a wall
//! clock that is set changes no deadline.

mod answer;
mod attempt;
mod attempt_result;
mod buffered_body;
mod call;
mod destination;
mod error;
mod key;
mod layer;
mod options;
mod prepare;
mod retry_after;
mod service;
mod try_report;
mod watch;

pub(crate) use self::attempt_result::of_refusal;
pub use self::{
    destination::{Destinations, InvalidDestinations},
    error::{InvalidRequest, RetryError},
    key::KeySource,
    layer::RetryLayer,
    options::{InvalidRetry, Keys, Patience, Pursuit, RetryOptions},
    service::{Retry, RetryFuture},
    try_report::{StopReason, Tried},
    watch::{PursuitEvent, Watch},
};
