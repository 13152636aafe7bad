//! The service: what passes, what is answered here, what asks the engine.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_core::{Operation, Store};
use http::{Request, Response, request::Parts};
use tower_service::Service;
use tracing::Instrument;

use super::{
    answer,
    arrival::{self, Arrival, arrive},
    ask::ask,
    cors,
    dispatch::{Dispatch, Protected, Routed, Rule, marked},
    drain::{Rest, Wire},
    handled::{Handled, Verdict},
    layer::Shared,
    options::{Dialect, Protection},
    problem::Problem,
    receive::Refused,
    repeatability,
    revalidate::ReplayListener,
    said::Said,
    wellknown,
};
use crate::{
    body::{Body, BoxError},
    http_service::HttpService,
};

/// A protected service. Made by [`IdempotencyLayer`](crate::IdempotencyLayer).
pub struct Idempotency<Inner, S: Store> {
    inner: Inner,
    shared: Arc<Shared<S>>,
}

impl<Inner, S: Store> Idempotency<Inner, S> {
    pub(crate) fn new(inner: Inner, shared: Arc<Shared<S>>) -> Self {
        Self { inner, shared }
    }
}

impl<Inner: HttpService, S: Store> Idempotency<Inner, S> {
    /// Answers a request as [`Service::call`] does, and says what was done beside the response
    /// instead of in its extensions: for servers that count.
    pub fn handle(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<(Response<Body>, Handled), Inner::Error>> + Send + use<Inner, S>
    {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        async move {
            match shared.front.dispatch(request) {
                // Boxed, so that what passes does not pay for its size.
                Dispatch::Protect(routed) => Box::pin(protect(inner, &shared, routed)).await,
                Dispatch::Otherwise(routed) => otherwise(inner, &shared, routed).await,
            }
        }
    }
}

impl<Inner: Clone, S: Store> Clone for Idempotency<Inner, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<Inner: fmt::Debug, S: Store> fmt::Debug for Idempotency<Inner, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<Inner, S, B, R> Service<Request<B>> for Idempotency<Inner, S>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    S: Store,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Inner::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Inner::Error>> + Send>>;

    /// Always ready: a replay must not wait for a service that is busy or limited.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Inner::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        match shared.front.dispatch(request.map(Body::new)) {
            Dispatch::Protect(routed) => {
                Box::pin(async move { Ok(marked(protect(inner, &shared, routed).await?)) })
            }
            Dispatch::Otherwise(routed) => {
                Box::pin(async move { Ok(marked(otherwise(inner, &shared, routed).await?)) })
            }
        }
    }
}

/// A response, and what was done to have it.
pub(crate) type Judged = (Response<Body>, Verdict);

/// Answers a request that asks for nothing protected.
async fn otherwise<Inner, S>(
    inner: Inner,
    shared: &Shared<S>,
    routed: Routed<Rule>,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    S: Store,
{
    let page = wellknown::serve(shared, &routed.request.0).await;
    shared.front.otherwise(inner, routed, page).await
}

async fn protect<Inner, S>(
    inner: Inner,
    shared: &Arc<Shared<S>>,
    routed: Protected,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    S: Store,
{
    let Routed { request, route, rule: (protection, said), reader, .. } = routed;
    let wire = Wire::of(request.0.version, &request.0.headers);
    let arrived = arrived(shared, &protection, said, request).await;
    let (mut response, verdict) = match arrived {
        Ok(arrival) => {
            let (span, listener) = (arrival.span.clone(), ReplayListener::of(&arrival));
            let usual_time = shared.front.routes.usual_time(route);
            let judged = ask(inner, shared, usual_time, arrival).instrument(span).await?;
            match listener {
                // Boxed, so that only routes that ask pay for its size.
                Some(listener) => Box::pin(listener.hear(judged, &shared.front.site)).await,
                None => judged,
            }
        }
        Err((problem, rest)) => {
            let verdict = Verdict::Refused(problem.code);
            let mut response = problem.into_response(&shared.front.site);
            wire.leave_clean(rest, &mut response).await;
            (response, verdict)
        }
    };
    if protection.dialect == Dialect::Repeatability {
        repeatability::add_result(&mut response, verdict);
    }
    cors::let_read(reader.as_ref(), &mut response);
    Ok((response, Handled { verdict, route }))
}

/// Reads what the engine must know, or refuses the request.
async fn arrived<S: Store>(
    shared: &Shared<S>,
    protection: &Arc<Protection>,
    said: Said,
    (parts, body): (Parts, Body),
) -> Result<Arrival, Refused> {
    let named = match arrival::name(&shared.front, protection, &parts).await {
        Ok(operation) => remembered(shared, protection, &parts, operation).await,
        Err(problem) => Err(problem),
    };
    match named {
        Ok(operation) => {
            let request = (parts, body);
            arrive(&shared.front, shared.has_later, protection, said, operation, request).await
        }
        Err(problem) => Err((problem, Rest::Unread(body))),
    }
}

/// The operation, unless it may have been done and forgotten since it was first asked for.
async fn remembered<S: Store>(
    shared: &Shared<S>,
    protection: &Protection,
    parts: &Parts,
    operation: Operation,
) -> Result<Operation, Problem> {
    if let Dialect::Header(_) = protection.dialect {
        return Ok(operation);
    }
    let first_sent = repeatability::first_sent(&parts.headers)?;
    let retention = protection.policy.retention();
    let checked = repeatability::check(&shared.engine, operation.id(), first_sent, retention).await;
    match checked {
        Ok(None) => Ok(operation),
        Ok(Some(problem)) => Err(problem),
        Err(error) => Err(answer::store_failed(&error)),
    }
}

/// Hands a request to the service as it is, with what its caller says.
pub(crate) async fn pass<Inner>(
    mut inner: Inner,
    said: Said,
    mut request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: HttpService,
{
    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
    said.tell(&mut request);
    Ok(inner.call(request).await?.map(Body::new))
}
