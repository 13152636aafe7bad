//! The service: what passes, what is answered here, what asks the engine.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_core::{Ended, OperationId, Outcome, Recovery, Store, StoreError};
use hapax_engine::{BeginError, Begun, Permit};
use http::{HeaderValue, Request, Response, request::Parts};
use tokio::sync::oneshot;
use tower_service::Service;
use tracing::Instrument;

use super::{
    answer,
    arrival::{Arrival, arrive},
    async_status,
    drain::Wire,
    headers,
    layer::Shared,
    options::{Dialect, KeyRule, Protection, StoreDown},
    prefer::PREFERENCE_APPLIED,
    problem::{Code, Problem},
    repeatability,
    unit::Unit,
    wellknown,
};
use crate::body::{Body, BoxError};

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
        Box::pin(handle(inner, shared, request.map(Body::new)))
    }
}

async fn handle<Inner, S, R>(
    inner: Inner,
    shared: Arc<Shared<S>>,
    request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    S: Store,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    headers::strip_ours(&mut parts.headers);
    if let Some(page) = wellknown::serve(&shared, &parts).await {
        return Ok(page);
    }
    let protection = shared.routes.protection(&parts).map(Arc::clone);
    let Some(protection) = protection.filter(|protection| applies(protection, &parts)) else {
        return pass(inner, Request::from_parts(parts, body)).await;
    };
    let wire = Wire::of(parts.version, &parts.headers);
    let (mut response, honoured) = match arrive(&shared, &protection, parts, body).await {
        Ok(arrival) => {
            let span = arrival.span.clone();
            (ask(inner, &shared, arrival).instrument(span).await?, true)
        }
        Err((problem, rest)) => {
            let mut response = problem.into_response(&shared.site);
            wire.leave_clean(rest, &mut response).await;
            (response, false)
        }
    };
    if protection.dialect == Dialect::Repeatability {
        repeatability::add_result(&mut response, honoured);
    }
    Ok(response)
}

fn applies(protection: &Protection, parts: &Parts) -> bool {
    match protection.key {
        KeyRule::Required => true,
        KeyRule::Optional => parts.headers.contains_key(protection.key_header()),
    }
}

async fn pass<Inner, R>(
    mut inner: Inner,
    request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: Service<Request<Body>, Response = Response<R>>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
    Ok(inner.call(request).await?.map(Body::new))
}

/// Asks the engine, and does what it says.
async fn ask<Inner, S, R>(
    inner: Inner,
    shared: &Arc<Shared<S>>,
    arrival: Arrival,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    S: Store,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let (site, id) = (&shared.site, arrival.ask.operation.id());
    let begun = match begin(shared, &arrival).await {
        Ok(begun) => begun,
        Err(error) if runs_unprotected(&error, &arrival.protection) => {
            tracing::error!(%error, "the store is away: running without protection");
            let request = Request::from_parts(arrival.parts, Body::from(arrival.body));
            let mut response = pass(inner, request).await?;
            let yes = HeaderValue::from_static("true");
            response.headers_mut().insert(headers::UNPROTECTED, yes);
            return Ok(response);
        }
        Err(error) => {
            arrival.span.record("decision", "undecided");
            return Ok(answer::not_begun(&error).into_response(site));
        }
    };
    arrival.span.record("decision", decision(&begun));
    Ok(match begun {
        Begun::Execute(permit)
        | Begun::TakenOver { permit, recovery: Recovery::Resend | Recovery::Hold } => {
            execute(inner, shared, permit, arrival).await
        }
        Begun::TakenOver { permit, recovery: Recovery::Probe } => {
            // Written by a front end that can probe; this one cannot, so the doubt stays.
            let _ = permit.settle(Ended::NotRecovered { told: Outcome::bare(409) }).await;
            answer::in_doubt(id).into_response(site)
        }
        Begun::Queued(record) => {
            accepted(&arrival, async_status::accepted(site, id, Some(&record)))
        }
        Begun::Replay(record) => answer::replay(site, &record),
        Begun::Busy { .. } if arrival.for_later => {
            accepted(&arrival, async_status::accepted(site, id, None))
        }
        Begun::Busy { lease_left } => answer::in_flight(id, lease_left).into_response(site),
        Begun::InDoubt { .. } => answer::in_doubt(id).into_response(site),
        Begun::Mismatch(difference) => {
            let detail = "Use a new key for a new request.";
            let problem = Problem::new(Code::KeyReused, detail).differs(difference.parts());
            problem.into_response(site)
        }
        Begun::Gone { .. } => answer::gone().into_response(site),
    })
}

/// Says so where 202 is what the client preferred, not only what the route does.
fn accepted(arrival: &Arrival, mut response: Response<Body>) -> Response<Body> {
    if arrival.prefers_async {
        let applied = HeaderValue::from_static("respond-async");
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    response
}

/// Waits while somebody else is at work, as long as the client or the route wants to.
async fn begin<S: Store>(shared: &Shared<S>, arrival: &Arrival) -> Result<Begun<S>, BeginError> {
    if arrival.patience.is_zero() {
        shared.engine.begin(&arrival.ask).await
    } else {
        shared.engine.begin_waiting(&arrival.ask, arrival.patience).await
    }
}

/// Runs the attempt detached, and waits for its answer.
async fn execute<Inner, S, R>(
    inner: Inner,
    shared: &Arc<Shared<S>>,
    permit: Permit<S>,
    arrival: Arrival,
) -> Response<Body>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    S: Store,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    let id: OperationId = permit.attempt().id;
    arrival.span.record("fence", permit.attempt().fence.get());
    let unit = Unit {
        permit,
        request: Request::from_parts(arrival.parts, Body::from(arrival.body)),
        protection: arrival.protection,
        site: shared.site.clone(),
    };
    let (reply, answered) = oneshot::channel();
    tokio::spawn(unit.run(inner, Some(reply)).instrument(arrival.span));
    // Without an answer the task died; its right was given up as interrupted.
    answered.await.unwrap_or_else(|_| answer::in_doubt(id).into_response(&shared.site))
}

fn runs_unprotected(error: &BeginError, protection: &Protection) -> bool {
    let store_is_away = matches!(
        error,
        BeginError::Store(StoreError::Unavailable(_) | StoreError::Unconfirmed(_))
            | BeginError::Overloaded
    );
    store_is_away && protection.store_down == StoreDown::RunUnprotected
}

fn decision<S: Store>(begun: &Begun<S>) -> &'static str {
    match begun {
        Begun::Execute(_) => "execute",
        Begun::TakenOver { .. } => "taken_over",
        Begun::Queued(_) => "queued",
        Begun::Replay(_) => "replay",
        Begun::Busy { .. } => "busy",
        Begun::InDoubt { .. } => "in_doubt",
        Begun::Mismatch(_) => "mismatch",
        Begun::Gone { .. } => "gone",
    }
}
