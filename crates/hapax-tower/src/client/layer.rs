//! The layer, and what it shares with every service it makes.

use std::sync::Arc;

use tower_layer::Layer;

use super::{
    key::KeySource,
    options::{InvalidRetry, RetryOptions},
    service::Retry,
};

/// Gives any HTTP client keys, retries, a deadline, a retry budget and a breaker.
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
