//! A request in a transaction: run, stored and committed together, or not at all.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    AttemptAnswer, Body as StoredBody, Database, Operation, OperationId, StoreError,
    TransactionError, limits::OUTCOME_BODY_BYTES_MAX, transaction::TransactionAnswer,
};
use hapax_engine::{
    Completion, Engine, InTransactionError, TenantKeys, TransactionOptions, Transactional,
    Tx as Lent, transactional::TryAgain,
};
use http::{HeaderMap, Request, Response, request::Parts};
use tokio::time::{Instant, timeout_at};

use super::{error::raised, tx::TransactionSlot};
use crate::{
    body::{Body, BoxError},
    capped_body::{Extent, Gathered},
    http_service::HttpService,
    server::{
        calls::{CallEnd, is_call, judged_status},
        execution::{
            body_capture::Captured,
            failed_attempt::FailedAttempt,
            service_call::call,
            status_meaning::meaning,
            unit::outcome,
            usual_time::{UnderWay, UsualTime},
        },
        mode::ModeBehaviour,
        options::Protection,
        requests::{
            arrival::KeyedRequest,
            caller_signals::{CallerSignals, too_late},
            front::Front,
            headers,
            room::RequestRoom,
            route::{InvalidRoute, Routes},
        },
        responses::{
            answer::{self, TRY_AGAIN},
            code::Code,
            problem::Problem,
        },
        service::Judged,
        verdict::Verdict,
    },
};

/// Operations run in transactions of one database, which also keep their answers: for effects in
/// that database.
///
/// ```
/// use hapax_core::{Database, TransactionError};
/// use hapax_tower::{IdempotencyLayer, SameTransaction, Tenancy};
///
/// async fn layer<D: Database>(
///     database: D,
/// ) -> Result<IdempotencyLayer<SameTransaction<D>>, TransactionError> {
///     let mode = SameTransaction::connect(database).await?;
///     Ok(IdempotencyLayer::in_transactions(mode, Tenancy::credential()))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SameTransaction<D> {
    transactional: Transactional<D>,
    tenant_keys: Arc<TenantKeys>,
}

impl<D: Database> SameTransaction<D> {
    /// Asks the database for its salt, so that a schema that is missing or too old is told at once.
    pub async fn connect(database: D) -> Result<Self, TransactionError> {
        let transactional = Transactional::new(database, TransactionOptions::default());
        let tenant_keys = Arc::new(TenantKeys::new(transactional.salt().await?));
        Ok(Self { transactional, tenant_keys })
    }

    /// What runs operations in transactions of this database, without HTTP.
    pub fn transactional(&self) -> &Transactional<D> {
        &self.transactional
    }

    pub(crate) fn tenant_keys(&self) -> Arc<TenantKeys> {
        Arc::clone(&self.tenant_keys)
    }
}

impl<D: Database> ModeBehaviour for SameTransaction<D> {
    fn has_later(&self) -> bool {
        false
    }

    fn check(&self, routes: &Routes) -> Result<(), InvalidRoute> {
        routes.check_for_transactions()
    }

    fn engine(&self) -> Option<&Engine> {
        None
    }

    async fn recall(
        &self,
        _: &Protection,
        _: &Parts,
        named: Operation,
    ) -> Result<Operation, Problem> {
        Ok(named)
    }

    async fn operation_page(&self, _: &Front, _: &Parts, _: &str) -> Option<Response<Body>> {
        None
    }

    async fn run<Inner: HttpService>(
        &self,
        front: &Front,
        inner: Inner,
        usual_time: &Arc<UsualTime>,
        arrival: KeyedRequest,
    ) -> Result<Judged, Inner::Error> {
        let span = arrival.span.clone();
        let judged = run(inner, &self.transactional, front, usual_time, arrival).await;
        span.record("decision", judged.1.as_str());
        Ok(judged)
    }
}

/// Runs the request in a transaction, and says what came of it.
async fn run<Inner, D>(
    inner: Inner,
    transactional: &Transactional<D>,
    front: &Front,
    usual_time: &UsualTime,
    arrival: KeyedRequest,
) -> Judged
where
    Inner: HttpService,
    D: Database,
{
    let KeyedRequest { ask, fingerprint, parts, body, room, protection, said, patience, .. } =
        arrival;
    let (site, id, policy) = (&front.site, ask.operation.id(), ask.policy);
    let usual = *transactional.options();
    let wait = if patience.is_zero() { said.cut(usual.wait) } else { patience };
    let options = TransactionOptions { policy, wait, timeout: protection.timeout, ..usual };
    let began = Instant::now();
    let work = TransactionWork {
        inner,
        request: Request::from_parts(parts, body),
        operation: ask.operation.clone(),
        protection: Arc::clone(&protection),
        said,
        counted: Arc::default(),
        _room: Arc::new(room),
    };
    let work = move |tx: Lent<D::Transaction>| work.clone().run::<D>(tx);
    let running = transactional.complete(ask.operation, fingerprint, options, work);
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
        Ok(Completion::Stored { value: mut response, expires_at }) => {
            usual_time.add(began.elapsed());
            headers::add_expiry(response.headers_mut(), expires_at);
            (response, Verdict::Executed)
        }
        Ok(Completion::RolledBack { value: response }) => (response, Verdict::Executed),
        Ok(Completion::Replayed { outcome, expires_at }) => {
            (answer::replayed(site, &outcome, expires_at), Verdict::Replayed)
        }
        Err(error) => {
            let (problem, verdict) = refused(id, usual_time, error);
            (problem.into_response(site), verdict)
        }
    }
}

/// Why nothing was run, or nothing was kept of it.
fn refused(
    id: OperationId,
    usual_time: &UsualTime,
    error: InTransactionError,
) -> (Problem, Verdict) {
    match error {
        InTransactionError::Refused(TransactionAnswer::Busy { retry_after }) => {
            // How long it has been at work nobody says; in a transaction it is not seen before its end.
            let (at_work, lease) = (Duration::ZERO, Duration::ZERO);
            let ask_again =
                usual_time.ask_again(UnderWay { at_work, lease_left: retry_after, lease });
            (answer::in_flight(id, ask_again), Verdict::Busy)
        }
        InTransactionError::Refused(
            TransactionAnswer::InDoubt { .. } | TransactionAnswer::Replay(_),
        ) => (answer::in_doubt(id), Verdict::InDoubt),
        InTransactionError::Refused(TransactionAnswer::Mismatch(difference)) => {
            let detail = "Use a new key for a new request.";
            let problem = Problem::new(Code::KeyReused, detail).differs(difference.parts());
            (problem, Verdict::Mismatch)
        }
        InTransactionError::Refused(TransactionAnswer::Gone { .. }) => {
            (answer::gone(), Verdict::Gone)
        }
        InTransactionError::Failed(error) if error.is::<TooLate>() => {
            (too_late(), Verdict::Refused(Code::DeadlinePassed))
        }
        InTransactionError::Failed(error) if error.is::<OverLimit>() => {
            let wait = error.downcast::<OverLimit>().map_or(TRY_AGAIN, |limit| limit.0);
            let problem = Problem::new(Code::RateLimited, "Nothing was run. Ask again.");
            (problem.retry_after(wait), Verdict::Refused(Code::RateLimited))
        }
        InTransactionError::Store(error @ (StoreError::Damaged(_) | StoreError::TooNew(_))) => {
            (answer::store_failed(&error), Verdict::Undecided)
        }
        InTransactionError::Unknown(error) => {
            tracing::error!(%error, operation = %id, "a commit was not confirmed");
            let detail = "The request may have been carried out. Ask again with the same key.";
            let problem = Problem::new(Code::OutcomeNotRecorded, detail);
            (problem.operation(id).retry_after(TRY_AGAIN), Verdict::Undecided)
        }
        error @ (InTransactionError::Failed(_)
        | InTransactionError::Panicked
        | InTransactionError::TimedOut { .. }
        | InTransactionError::Kept
        | InTransactionError::Conflict(_)
        | InTransactionError::Store(
            StoreError::Unavailable(_) | StoreError::Unconfirmed(_),
        )
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
struct TransactionWork<Inner> {
    inner: Inner,
    request: Request<Bytes>,
    operation: Operation,
    protection: Arc<Protection>,
    said: CallerSignals,
    /// Whether the rate limit knows of it: running it again is no new operation.
    counted: Arc<AtomicBool>,
    /// The room the body takes, to be given back when it is done with.
    _room: Arc<RequestRoom>,
}

impl<Inner: HttpService> TransactionWork<Inner> {
    async fn run<D: Database>(
        self,
        tx: Lent<D::Transaction>,
    ) -> Result<(AttemptAnswer, Response<Body>), BoxError> {
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
        request.extensions_mut().insert(TransactionSlot::<D>::new(tx));
        let cap = self.protection.response_bytes_max;
        let said = self.said.within(self.protection.timeout);
        let mut answer = match call(self.inner, request.map(Body::from), said, cap).await {
            Ok(answer) => answer,
            Err(FailedAttempt::TooLate) => return Err(Box::new(TooLate)),
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
                let (body, trailers) = whole(read, rest).await?;
                if is_call(&answer.parts.headers) {
                    let end = CallEnd::of(&answer.parts.headers, trailers);
                    answer.parts.extensions.insert(end);
                }
                let len = u64::try_from(body.len()).unwrap_or(u64::MAX);
                (StoredBody::NotKept { len }, body)
            }
        };
        let Protection { results, policy, .. } = &*self.protection;
        let meaning = meaning(
            judged_status(&answer.parts),
            &answer.parts.headers,
            *results,
            policy.recovery(),
        );
        let outcome = outcome(&answer.parts, kept, &self.protection);
        headers::strip_ours(&mut answer.parts.headers);
        let body = match answer.parts.extensions.get::<CallEnd>() {
            Some(end) => end.after(body),
            None => Body::from(body),
        };
        Ok((AttemptAnswer { outcome, meaning }, Response::from_parts(answer.parts, body)))
    }
}

/// Reads a response that is too large to be stored: it must be complete before the commit.
async fn whole(read: Bytes, mut rest: Body) -> Result<(Bytes, HeaderMap), BoxError> {
    let mut all = Gathered::begun(read);
    match all.read(Pin::new(&mut rest), OUTCOME_BODY_BYTES_MAX).await? {
        Extent::Whole => {
            let (body, trailers) = all.into_parts();
            Ok((body, trailers.map(|trailers| *trailers).unwrap_or_default()))
        }
        Extent::Larger => Err("the response is too large to be held until the commit".into()),
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
