//! The service: what passes, what is answered here, what runs in a transaction.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use hapax_core::{
    Body as StoredBody, Database, OperationId, Outcome, StoreError, limits::OUTCOME_BODY_BYTES_MAX,
    transaction::Answer,
};
use hapax_engine::{
    Answered, Fate, OnceError, TransactionOptions, Tx as Lent, transactional::TryAgain,
};
use http::{Method, Request, Response, request::Parts, response};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use tower_service::Service;
use tracing::Instrument;

use super::{error::raised, layer::Shared, tx::Slot};
use crate::{
    body::{Body, BoxError},
    http_service::HttpService,
    server::{
        answer::{self, TRY_AGAIN},
        arrival::{self, Arrival, arrive},
        capture::Captured,
        code::Code,
        cors,
        dispatch::{Dispatch, Protected, Routed, marked},
        drain::{Rest, Wire},
        failed::Failed,
        handled::{Handled, Verdict},
        headers,
        options::Protection,
        problem::Problem,
        produce::call,
        revalidate::ReplayListener,
        room::RequestRoom,
        said::{Said, too_late},
        service::Judged,
        unit::outcome,
        usual_time::{UnderWay, UsualTime},
        wellknown,
    },
};

/// A service that runs in transactions. Made by
/// [`TransactionalLayer`](crate::TransactionalLayer).
pub struct TransactionalService<Inner, D> {
    inner: Inner,
    shared: Arc<Shared<D>>,
}

impl<Inner, D> TransactionalService<Inner, D> {
    pub(crate) fn new(inner: Inner, shared: Arc<Shared<D>>) -> Self {
        Self { inner, shared }
    }
}

impl<Inner: Clone, D> Clone for TransactionalService<Inner, D> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<Inner: fmt::Debug, D> fmt::Debug for TransactionalService<Inner, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionalService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<Inner, D, B, R> Service<Request<B>> for TransactionalService<Inner, D>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    D: Database,
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

async fn handle<Inner, D>(
    inner: Inner,
    shared: Arc<Shared<D>>,
    request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: HttpService,
    D: Database,
{
    let answered = match shared.front.dispatch(request) {
        Dispatch::Protect(routed) => Box::pin(protect(inner, &shared, routed)).await,
        Dispatch::Otherwise(routed) => {
            let page = page(&shared, &routed.request.0);
            shared.front.otherwise(inner, routed, page).await?
        }
    };
    Ok(marked(answered))
}

fn page<D>(shared: &Shared<D>, parts: &Parts) -> Option<Response<Body>> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return None;
    }
    let page = parts.uri.path().strip_prefix(&shared.front.site.home)?;
    wellknown::written(&shared.front, page)
}

async fn protect<Inner, D>(
    inner: Inner,
    shared: &Arc<Shared<D>>,
    routed: Protected,
) -> (Response<Body>, Handled)
where
    Inner: HttpService,
    D: Database,
{
    let Routed { request: (parts, body), route, rule: (protection, said), reader, .. } = routed;
    let (wire, front) = (Wire::of(parts.version, &parts.headers), &shared.front);
    let arrived = match arrival::name(front, &protection, &parts).await {
        Ok(operation) => arrive(front, false, &protection, said, operation, (parts, body)).await,
        Err(problem) => Err((problem, Rest::Unread(body))),
    };
    let (mut response, verdict) = match arrived {
        Ok(arrival) => {
            let (span, listener) = (arrival.span.clone(), ReplayListener::of(&arrival));
            let usual_time = front.routes.usual_time(route);
            let judged = run(inner, shared, usual_time, arrival).instrument(span.clone()).await;
            span.record("decision", judged.1.as_str());
            match listener {
                Some(listener) => Box::pin(listener.hear(judged, &front.site)).await,
                None => judged,
            }
        }
        Err((problem, rest)) => {
            let verdict = Verdict::Refused(problem.code);
            let mut response = problem.into_response(&front.site);
            wire.leave_clean(rest, &mut response).await;
            (response, verdict)
        }
    };
    cors::let_read(reader.as_ref(), &mut response);
    (response, Handled { verdict, route })
}

/// Runs the request in a transaction, and says what came of it.
async fn run<Inner, D>(
    inner: Inner,
    shared: &Shared<D>,
    usual_time: &UsualTime,
    arrival: Arrival,
) -> Judged
where
    Inner: HttpService,
    D: Database,
{
    let Arrival { ask, parts, body, room, protection, said, patience, .. } = arrival;
    let (site, id, policy) = (&shared.front.site, ask.operation.id(), ask.policy);
    let usual = *shared.transactional.options();
    let wait = if patience.is_zero() { said.cut(usual.wait) } else { patience };
    let options = TransactionOptions { policy, wait, timeout: protection.timeout, ..usual };
    let (first, began) = (Arc::new(First::default()), Instant::now());
    let work = Work {
        inner,
        request: Request::from_parts(parts, body),
        operation: ask.operation.clone(),
        protection: Arc::clone(&protection),
        said,
        first: Arc::clone(&first),
        counted: Arc::default(),
        _room: Arc::new(room),
    };
    let work = move |tx: Lent<D::Transaction>| work.clone().run::<D>(tx);
    let running = shared.transactional.run(ask.operation, ask.fingerprint, options, work);
    let answered = match said.until() {
        None => running.await,
        Some(until) => match timeout_at(until, running).await {
            Ok(answered) => answered,
            Err(_elapsed) => {
                return (answer::still_at_work(id).into_response(site), Verdict::Executed);
            }
        },
    };
    match answered {
        Ok(Answered { fate: Fate::Stored { expires_at }, outcome }) => {
            usual_time.add(began.elapsed());
            let mut response = first.take(&outcome);
            headers::add_expiry(response.headers_mut(), expires_at);
            (response, Verdict::Executed)
        }
        Ok(Answered { fate: Fate::RolledBack, outcome }) => {
            (first.take(&outcome), Verdict::Executed)
        }
        Ok(Answered { fate: Fate::Replayed { expires_at }, outcome }) => {
            (answer::replayed(site, &outcome, expires_at), Verdict::Replayed)
        }
        Err(error) => {
            let (problem, verdict) = refused(id, usual_time, error);
            (problem.into_response(site), verdict)
        }
    }
}

/// Why nothing was run, or nothing was kept of it.
fn refused(id: OperationId, usual_time: &UsualTime, error: OnceError) -> (Problem, Verdict) {
    match error {
        OnceError::Refused(Answer::Busy { retry_after }) => {
            // How long it has been at work nobody says; in a transaction it is not seen before its end.
            let (at_work, lease) = (Duration::ZERO, Duration::ZERO);
            let ask_again =
                usual_time.ask_again(UnderWay { at_work, lease_left: retry_after, lease });
            (answer::in_flight(id, ask_again), Verdict::Busy)
        }
        OnceError::Refused(Answer::InDoubt { .. } | Answer::Replay(_)) => {
            (answer::in_doubt(id), Verdict::InDoubt)
        }
        OnceError::Refused(Answer::Mismatch(difference)) => {
            let detail = "Use a new key for a new request.";
            let problem = Problem::new(Code::KeyReused, detail).differs(difference.parts());
            (problem, Verdict::Mismatch)
        }
        OnceError::Refused(Answer::Gone { .. }) => (answer::gone(), Verdict::Gone),
        OnceError::Failed(error) if error.is::<TooLate>() => {
            (too_late(), Verdict::Refused(Code::DeadlinePassed))
        }
        OnceError::Failed(error) if error.is::<OverLimit>() => {
            let wait = error.downcast::<OverLimit>().map_or(TRY_AGAIN, |limit| limit.0);
            let problem = Problem::new(Code::RateLimited, "Nothing was run. Ask again.");
            (problem.retry_after(wait), Verdict::Refused(Code::RateLimited))
        }
        OnceError::Store(error @ (StoreError::Damaged(_) | StoreError::TooNew(_))) => {
            (answer::store_failed(&error), Verdict::Undecided)
        }
        OnceError::Unknown(error) => {
            tracing::error!(%error, operation = %id, "a commit was not confirmed");
            let detail = "The request may have been carried out. Ask again with the same key.";
            let problem = Problem::new(Code::OutcomeNotRecorded, detail);
            (problem.operation(id).retry_after(TRY_AGAIN), Verdict::Undecided)
        }
        error @ (OnceError::Failed(_)
        | OnceError::Panicked
        | OnceError::TimedOut { .. }
        | OnceError::Kept
        | OnceError::Conflict(_)
        | OnceError::Store(StoreError::Unavailable(_) | StoreError::Unconfirmed(_))
        | _) => {
            tracing::warn!(error = &error as &dyn std::error::Error, operation = %id, "rolled back");
            let detail = "Nothing of it was kept. Ask again with the same key.";
            let problem = Problem::new(Code::TransactionRolledBack, detail);
            (problem.retry_after(TRY_AGAIN), Verdict::Refused(Code::TransactionRolledBack))
        }
    }
}

/// One request, as often as it has to be run.
#[derive(Clone)]
struct Work<Inner> {
    inner: Inner,
    request: Request<Bytes>,
    operation: hapax_core::Operation,
    protection: Arc<Protection>,
    said: Said,
    first: Arc<First>,
    /// Whether the rate limit knows of it: running it again is no new operation.
    counted: Arc<AtomicBool>,
    /// The room the body takes, to be given back when it is done with.
    _room: Arc<RequestRoom>,
}

impl<Inner: HttpService> Work<Inner> {
    async fn run<D: Database>(self, tx: Lent<D::Transaction>) -> Result<Outcome, BoxError> {
        if let Some(limit) = &self.protection.limit
            && !self.counted.swap(true, Relaxed)
            && let Err(wait) = limit.begin(self.operation.tenant(), Instant::now())
        {
            return Err(Box::new(OverLimit(wait)));
        }
        let (attempt, mut request) = (tx.attempt(), self.request);
        headers::add_fence(request.headers_mut(), attempt.fence);
        request.extensions_mut().insert(attempt);
        request.extensions_mut().insert(self.operation);
        request.extensions_mut().insert(Slot::<D>::new(tx));
        let cap = self.protection.response_bytes_max;
        let said = self.said.within(self.protection.timeout);
        let mut answer = match call(self.inner, request.map(Body::from), said, cap).await {
            Ok(answer) => answer,
            Err(Failed::TooLate) => return Err(Box::new(TooLate)),
            Err(failed) => return Err(failed.code().code().into()),
        };
        if let Some(error) = raised(&mut answer.parts.extensions) {
            return Err(error);
        }
        if answer.parts.extensions.get::<TryAgain>().is_some() {
            return Err(Box::new(TryAgain));
        }
        let (kept, body) = match answer.body {
            Captured::Whole(body) => (StoredBody::Kept(Bytes::copy_from_slice(&body)), body),
            Captured::Larger { read, rest } => {
                let body = whole(read, rest).await?;
                let len = u64::try_from(body.len()).unwrap_or(u64::MAX);
                (StoredBody::NotKept { len }, body)
            }
        };
        let outcome = outcome(&answer.parts, kept, &self.protection);
        self.first.keep(answer.parts, body);
        Ok(outcome)
    }
}

/// Reads a response that is too large to be stored: it must be complete before the commit.
async fn whole(read: Bytes, mut rest: Body) -> Result<Bytes, BoxError> {
    let mut all = BytesMut::from(&read[..]);
    loop {
        if all.len() > OUTCOME_BODY_BYTES_MAX {
            return Err("the response is too large to be held until the commit".into());
        }
        match rest.frame().await {
            Some(frame) => {
                // Trailers are not kept.
                if let Ok(data) = frame?.into_data() {
                    all.extend_from_slice(&data);
                }
            }
            None => return Ok(all.freeze()),
        }
    }
}

/// The handler's own answer, for the client that waited for it.
#[derive(Default)]
struct First(Mutex<Option<Response<Body>>>);

impl First {
    fn keep(&self, mut parts: response::Parts, body: Bytes) {
        headers::strip_ours(&mut parts.headers);
        let response = Response::from_parts(parts, Body::from(body));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(response);
    }

    fn take(&self, outcome: &Outcome) -> Response<Body> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.unwrap_or_else(|| {
            let mut response = Response::new(Body::from(Bytes::new()));
            *response.status_mut() = http::StatusCode::from_u16(outcome.status())
                .unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
            response
        })
    }
}

/// The caller was gone before the service was called.
#[derive(Debug, thiserror::Error)]
#[error("the caller's time was over before the service was called")]
struct TooLate;

/// The caller began more than its share.
#[derive(Debug, thiserror::Error)]
#[error("too many new operations; come back in {0:?}")]
struct OverLimit(Duration);
