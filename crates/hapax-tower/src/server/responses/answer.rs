//! What the engine said, as a response.

use std::time::Duration;

use hapax_core::{
    Body as StoredBody, OperationId, Outcome, Record, StateTag, StoreError, Timestamp,
};
use hapax_engine::BeginError;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::{
    body::Body,
    server::{
        calls,
        layer::Site,
        requests::headers,
        responses::{code::Code, problem::Problem},
    },
};

/// When to come back after a failure nobody can put a time on.
pub(crate) const TRY_AGAIN: Duration = Duration::from_secs(1);
/// When to come back after a failure that a person has to mend.
const TRY_LATER: Duration = Duration::from_secs(30);

/// The stored answer, marked as a replay.
pub(crate) fn replay(site: &Site, record: &Record) -> Response<Body> {
    match record.outcome() {
        Some(outcome) => replayed(site, outcome, record.expires_at),
        None => in_flight(record.operation.id(), TRY_AGAIN).into_response(site),
    }
}

/// A stored outcome as an answer, marked as a replay.
pub(crate) fn replayed(site: &Site, outcome: &Outcome, expires_at: Timestamp) -> Response<Body> {
    let body = match outcome.body() {
        StoredBody::Kept(body) => body,
        StoredBody::NotKept { .. } => {
            let mut response = not_retained(outcome).into_response(site);
            mark(&mut response, expires_at);
            return response;
        }
        StoredBody::Sealed { .. } => return encrypted().into_response(site),
        _ => return store_failed(&StoreError::damaged("an unknown body")).into_response(site),
    };
    let is_call = calls::is_stored_call(outcome.status());
    let status = if is_call { StatusCode::OK.as_u16() } else { outcome.status() };
    let Ok(status) = StatusCode::from_u16(status) else {
        return store_failed(&StoreError::damaged("not a status of HTTP")).into_response(site);
    };
    let mut response = Response::new(Body::from(body.clone()));
    *response.status_mut() = status;
    let mut trailers = HeaderMap::new();
    for header in outcome.headers() {
        let trailer = if is_call { calls::stored_trailer(&header.name) } else { None };
        let (name, place) = match trailer {
            Some(name) => (name, &mut trailers),
            None => (&*header.name, response.headers_mut()),
        };
        let name = HeaderName::from_bytes(name.as_bytes());
        let value = HeaderValue::from_maybe_shared(header.value.clone());
        if let (Ok(name), Ok(value)) = (name, value) {
            place.append(name, value);
        }
    }
    if is_call {
        *response.body_mut() = calls::trailed(body.clone(), trailers);
    }
    mark(&mut response, expires_at);
    response
}

fn mark(response: &mut Response<Body>, expires_at: Timestamp) {
    let headers = response.headers_mut();
    headers.insert(headers::REPLAYED, HeaderValue::from_static("true"));
    headers::add_expiry(headers, expires_at);
}

/// What the client of an overtaken attempt hears: what is stored now, not what that attempt said.
pub(crate) fn superseded(site: &Site, id: OperationId, record: Option<&Record>) -> Response<Body> {
    match record.map(|record| (record, record.tag())) {
        Some((record, StateTag::Completed | StateTag::Failed)) => replay(site, record),
        Some((_, StateTag::InDoubt)) => in_doubt(id).into_response(site),
        Some((_, StateTag::Buried)) => gone().into_response(site),
        Some((_, StateTag::Pending | StateTag::Running | StateTag::Released)) | None => {
            in_flight(id, TRY_AGAIN).into_response(site)
        }
    }
}

pub(crate) fn in_flight(id: OperationId, ask_again: Duration) -> Problem {
    let detail = "The first request with this key is still being worked on. Ask again later.";
    Problem::new(Code::KeyInFlight, detail).operation(id).retry_after(ask_again)
}

/// What a caller hears whose time is over before the service has answered.
pub(crate) fn still_at_work(id: OperationId) -> Problem {
    let detail = "The time given is over, and the service is still at work. Ask again with the \
                  same key.";
    Problem::new(Code::ExecutionTimedOut, detail).operation(id).retry_after(TRY_AGAIN)
}

pub(crate) fn in_doubt(id: OperationId) -> Problem {
    let detail = "An attempt ended without an answer. It is not repeated until somebody has found \
                  out whether it happened.";
    Problem::new(Code::OutcomeInDoubt, detail).operation(id)
}

pub(crate) fn gone() -> Problem {
    Problem::new(Code::KeyGone, "The key was used, and its answer is no longer kept.")
}

fn not_retained(outcome: &Outcome) -> Problem {
    let detail = format!("It was answered with {}; the body was not kept.", outcome.status());
    Problem::new(Code::ResponseNotRetained, detail)
}

/// It was done, and whoever answers here was not given the key to read what it said.
fn encrypted() -> Problem {
    tracing::error!("a stored answer is encrypted, and no master key was given to read it");
    let detail = "The stored answer is encrypted and cannot be read here. Nothing was run.";
    Problem::new(Code::StoreUnavailable, detail).retry_after(TRY_LATER)
}

/// Why an operation could not begin.
pub(crate) fn not_begun(error: &BeginError) -> Problem {
    match error {
        BeginError::Store(error) => store_failed(error),
        BeginError::Overloaded | BeginError::Contended => {
            Problem::new(Code::Overloaded, "Nothing was run. Ask again.").retry_after(TRY_AGAIN)
        }
        BeginError::Quarantined => {
            let detail = "Nothing was run. Whether it was run before is not known yet. Ask again.";
            Problem::new(Code::StoreQuarantined, detail).retry_after(TRY_LATER)
        }
        BeginError::Stopped => {
            Problem::new(Code::ShuttingDown, "Nothing was run. Ask again.").retry_after(TRY_AGAIN)
        }
        _ => Problem::new(Code::StoreUnavailable, "Nothing was run. Ask again.")
            .retry_after(TRY_AGAIN),
    }
}

pub(crate) fn store_failed(error: &StoreError) -> Problem {
    match error {
        StoreError::Unavailable(_) | StoreError::Unconfirmed(_) => {
            Problem::new(Code::StoreUnavailable, "Nothing was run. Ask again.")
                .retry_after(TRY_AGAIN)
        }
        StoreError::Damaged(_) => {
            tracing::error!(%error, "a stored record is damaged and was not served");
            Problem::new(Code::StoredResponseCorrupt, "It was not served, and nothing was run.")
        }
        StoreError::TooNew(_) => {
            Problem::new(Code::StoredByNewerVersion, "Nothing was run. Ask again.")
                .retry_after(TRY_LATER)
        }
    }
}
