//! Asks the engine, and does what it says.

use std::sync::Arc;

use hapax_core::{Difference, StoreError};
use hapax_engine::{Admission, BeginError, Engine, Permit};
use http::{HeaderValue, Request, Response};
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use tracing::{Instrument, Span};

use crate::{
    body::Body,
    http_service::HttpService,
    server::{
        execution::{
            unit::AttemptRun,
            usual_time::{UnderWay, UsualTime},
        },
        layer::Site,
        options::{Protection, StoreDown},
        requests::{
            arrival::KeyedRequest,
            caller_signals::{CallerSignals, too_late},
            front::Front,
            headers,
            prefer::PREFERENCE_APPLIED,
            room::RequestRoom,
        },
        responses::{answer, async_status, code::Code, problem::Problem},
        service::{Judged, pass},
        verdict::Verdict,
    },
};

pub(crate) async fn ask<Inner>(
    inner: Inner,
    (engine, front): (&Engine, &Front),
    usual_time: &Arc<UsualTime>,
    arrival: KeyedRequest,
) -> Result<Judged, Inner::Error>
where
    Inner: HttpService,
{
    let (site, id) = (&front.site, arrival.ask.operation.id());
    let begun = match begin(engine, &arrival).await {
        Ok(begun) => begun,
        Err(error) if runs_unprotected(&error, &arrival.protection) => {
            let route = &*arrival.protection.label;
            tracing::error!(%error, operation = %id, route, "the store is away: running without protection");
            arrival.span.record("decision", Verdict::Unprotected.as_str());
            let request = Request::from_parts(arrival.parts, Body::from(arrival.body));
            let mut response = pass(inner, arrival.said, request).await?;
            let yes = HeaderValue::from_static("true");
            response.headers_mut().insert(headers::UNPROTECTED, yes);
            return Ok((response, Verdict::Unprotected));
        }
        Err(error) => {
            arrival.span.record("decision", Verdict::Undecided.as_str());
            return Ok((answer::not_begun(&error).into_response(site), Verdict::Undecided));
        }
    };
    let verdict = Verdict::of(&begun);
    arrival.span.record("decision", verdict.as_str());
    let response = match begun {
        Admission::Execute(permit) | Admission::TakenOver { permit, .. }
            if arrival.said.is_over() =>
        {
            return Ok(given_back(permit, too_late(), site).await);
        }
        Admission::Execute(permit) => match over_limit(&arrival) {
            None => execute(inner, site, usual_time, (permit, arrival)).await,
            Some(problem) => return Ok(given_back(permit, problem, site).await),
        },
        Admission::TakenOver { permit, .. } if arrival.for_later => {
            let look_again = usual_time.look_again();
            let response = accepted(&arrival, async_status::accepted(site, id, None, look_again));
            run_later(inner, site, Arc::clone(usual_time), (permit, arrival));
            response
        }
        Admission::TakenOver { permit, .. } => {
            execute(inner, site, usual_time, (permit, arrival)).await
        }
        Admission::Queued(queued) => match over_limit(&arrival) {
            None => {
                let (record, look_again) = (queued.record(), usual_time.look_again());
                accepted(&arrival, async_status::accepted(site, id, Some(record), look_again))
            }
            Some(problem) => {
                queued.refuse().await;
                let verdict = Verdict::Refused(problem.code);
                return Ok((problem.into_response(site), verdict));
            }
        },
        Admission::Replay(record) => answer::replay(site, &record),
        Admission::Busy { lease_left, at_work } => {
            let lease = arrival.ask.policy.lease();
            let ask_again = usual_time.ask_again(UnderWay { at_work, lease_left, lease });
            if arrival.for_later {
                accepted(&arrival, async_status::accepted(site, id, None, ask_again))
            } else {
                answer::in_flight(id, ask_again).into_response(site)
            }
        }
        Admission::InDoubt { .. } => answer::in_doubt(id).into_response(site),
        Admission::Mismatch(difference) => key_reused(difference).into_response(site),
        Admission::Gone { .. } => answer::gone().into_response(site),
    };
    let verdict = verdict.after(&response);
    Ok((response, verdict))
}

fn key_reused(difference: Difference) -> Problem {
    let detail = "Use a new key for a new request.";
    Problem::new(Code::KeyReused, detail).differs(difference.parts())
}

/// Refuses a request that had won its right, and gives that back.
async fn given_back(permit: Permit, problem: Problem, site: &Site) -> Judged {
    // Nothing was begun; if that cannot be written, the lease will end.
    let _ = permit.give_back().await;
    let verdict = Verdict::Refused(problem.code);
    (problem.into_response(site), verdict)
}

/// Says so where 202 is what the client preferred, not only what the route does.
fn accepted(arrival: &KeyedRequest, mut response: Response<Body>) -> Response<Body> {
    if arrival.prefers_async {
        let applied = HeaderValue::from_static("respond-async");
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    response
}

/// Waits while somebody else is at work, as long as the client or the route wants to.
async fn begin(engine: &Engine, arrival: &KeyedRequest) -> Result<Admission, BeginError> {
    if arrival.patience.is_zero() {
        engine.begin(&arrival.ask).await
    } else {
        engine.begin_waiting(&arrival.ask, arrival.patience).await
    }
}

/// Finds out what became of an operation whose caller does not wait for it.
fn run_later<Inner>(
    inner: Inner,
    site: &Arc<Site>,
    usual_time: Arc<UsualTime>,
    (permit, arrival): (Permit, KeyedRequest),
) where
    Inner: HttpService,
{
    let request = Request::from_parts(arrival.parts, arrival.body);
    let unit = AttemptRun::new(
        permit,
        request,
        arrival.protection,
        CallerSignals::default(),
        Arc::clone(site),
    );
    let room = arrival.room;
    let run = async move {
        let began = Instant::now();
        unit.run(inner, None).await;
        usual_time.add(began.elapsed());
        drop(room);
    };
    tokio::spawn(Box::pin(run.instrument(arrival.span)));
}

/// Runs the attempt detached, and waits for its answer while the caller does.
async fn execute<Inner>(
    inner: Inner,
    site: &Arc<Site>,
    usual_time: &Arc<UsualTime>,
    (permit, arrival): (Permit, KeyedRequest),
) -> Response<Body>
where
    Inner: HttpService,
{
    let id = permit.attempt().id;
    arrival.span.record("fence", permit.attempt().fence.get());
    let request = Request::from_parts(arrival.parts, arrival.body);
    let unit = AttemptRun::new(permit, request, arrival.protection, arrival.said, Arc::clone(site));
    let answered = detach(unit, inner, (Arc::clone(usual_time), arrival.room), arrival.span);
    let answered = match arrival.said.until() {
        None => answered.await,
        Some(until) => match timeout_at(until, answered).await {
            Ok(answered) => answered,
            Err(_elapsed) => {
                return answer::still_at_work(id).in_place_of_an_answer(site);
            }
        },
    };
    // Without an answer the task died; its right was given up as interrupted.
    answered.unwrap_or_else(|_| answer::in_doubt(id).in_place_of_an_answer(site))
}

/// Starts the attempt in a task of its own.
///
/// Not async, and boxed: the execution is large, and would be copied into the future that waits
/// for it and again by the runtime when it ends.
fn detach<Inner>(
    unit: AttemptRun,
    inner: Inner,
    (usual_time, room): (Arc<UsualTime>, RequestRoom),
    span: Span,
) -> oneshot::Receiver<Response<Body>>
where
    Inner: HttpService,
{
    let (reply, answered) = oneshot::channel();
    let run = async move {
        let began = Instant::now();
        unit.run(inner, Some(reply)).await;
        usual_time.add(began.elapsed());
        drop(room);
    };
    tokio::spawn(Box::pin(run.instrument(span)));
    answered
}

/// The refusal of a caller that began more than its share. Only what would be run is counted.
fn over_limit(arrival: &KeyedRequest) -> Option<Problem> {
    let limit = arrival.protection.limit.as_ref()?;
    let wait = limit.begin(arrival.ask.operation.tenant(), Instant::now()).err()?;
    let problem = Problem::new(Code::RateLimited, "Nothing was run. Ask again.");
    Some(problem.retry_after(wait))
}

fn runs_unprotected(error: &BeginError, protection: &Protection) -> bool {
    // Not because there is too much to do: whoever sends enough could switch the protection off.
    let store_is_away =
        matches!(error, BeginError::Store(StoreError::Unavailable(_) | StoreError::Unconfirmed(_)));
    store_is_away && protection.store_down == StoreDown::RunUnprotected
}
