//! The service: attempts, one after the other, until there is an answer or a reason to stop.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::{
    attempt::{AttemptLimits, attempt},
    call::AttemptStart,
    error::RetryError,
    layer::Shared,
    prepare::prepare,
};
use crate::{Body, BoxError, HttpService};

/// An HTTP client that retries. Made by [`RetryLayer`](super::RetryLayer).
#[derive(Debug, Clone)]
pub struct Retry<Inner> {
    inner: Inner,
    shared: Arc<Shared>,
}

/// The attempts of one request; dropping it stops them.
pub type RetryFuture =
    Pin<Box<dyn Future<Output = Result<Response<Body>, RetryError>> + Send + 'static>>;

impl<Inner> Retry<Inner> {
    pub(super) fn new(inner: Inner, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl<Inner, B, R> Service<Request<B>> for Retry<Inner>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = RetryError;
    type Future = RetryFuture;

    /// Always ready: each attempt waits for the client itself, within its time.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RetryError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> RetryFuture {
        Box::pin(pursue(self.inner.clone(), Arc::clone(&self.shared), request))
    }
}

async fn pursue<Inner, B>(
    mut inner: Inner,
    shared: Arc<Shared>,
    request: Request<B>,
) -> Result<Response<Body>, RetryError>
where
    Inner: HttpService,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let options = &shared.options;
    let clock = &options.destinations;
    let destination = options.destinations.of(request.uri());
    let mut call = prepare(&shared, request).await.map_err(RetryError::Invalid)?;
    destination.budget.begin();
    let mut last = None;
    loop {
        let now = clock.now();
        let AttemptStart { request, time, pass } = match call.start(options, &destination, now) {
            Ok(start) => start,
            Err(stop) => {
                let Some(pause) = call.outwait(stop, now) else { return call.end(stop, last) };
                tokio::time::sleep(pause).await;
                continue;
            }
        };
        let response_bytes_max = options.response_bytes_max;
        let limits = AttemptLimits { time, response_bytes_max, streams: call.reads_only };
        let ended = attempt(&mut inner, request, call.key.as_ref(), limits).await;
        let now = clock.now();
        destination.breaker.report(now, pass, ended.answer.result.health());
        match call.follow(&ended, &destination, now) {
            Ok(pause) => {
                last = Some(ended);
                tokio::time::sleep(pause).await;
            }
            Err(stop) => return call.end(stop, Some(ended)),
        }
    }
}
