//! The dialect of OASIS Repeatable Requests: a key, and when it was first sent.

use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{OperationId, Retention, StoreError, Timestamp};
use hapax_engine::Engine;
use http::{HeaderMap, HeaderName, HeaderValue, Response};

use crate::{
    body::Body,
    server::{
        responses::{code::Code, problem::Problem},
        verdict::Verdict,
    },
};

const FIRST_SENT: HeaderName = HeaderName::from_static("repeatability-first-sent");
const RESULT: HeaderName = HeaderName::from_static("repeatability-result");

/// How far a client's clock may be ahead of the store's.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(300);

/// When the client says it first sent the request.
pub(crate) fn first_sent(headers: &HeaderMap) -> Result<Timestamp, Problem> {
    let refused =
        || Problem::new(Code::FirstSentMalformed, "Send Repeatability-First-Sent as an HTTP date.");
    let date = headers.get(FIRST_SENT).and_then(|date| date.to_str().ok()).ok_or_else(refused)?;
    let date = httpdate::parse_http_date(date).map_err(|_| refused())?;
    let since_epoch = date.duration_since(UNIX_EPOCH).map_err(|_| refused())?;
    Ok(Timestamp::ZERO.plus(since_epoch))
}

/// Refuses a first attempt that may have been done and forgotten since, or that lies in the future.
pub(crate) async fn check(
    engine: &Engine,
    id: OperationId,
    first_sent: Timestamp,
    retention: Retention,
) -> Result<Option<Problem>, StoreError> {
    let now = match engine.store_now() {
        Some(now) => now,
        None => engine.load(id).await?.now,
    };
    let remembered = retention.window + retention.tombstone;
    Ok(if first_sent.plus(remembered) <= now {
        let detail = format!("Operations are remembered for {} seconds.", remembered.as_secs());
        Some(Problem::new(Code::FirstSentTooOld, detail))
    } else if now.plus(CLOCK_SKEW_MAX) < first_sent {
        Some(Problem::new(Code::FirstSentMalformed, "The first attempt lies in the future."))
    } else {
        None
    })
}

/// Says whether the request was honoured as a repeatable one: taken for the operation of its key,
/// which is carried out once, whatever is known about it by now.
pub(crate) fn add_result(response: &mut Response<Body>, verdict: Verdict) {
    let result = match verdict {
        Verdict::Executed
        | Verdict::TakenOver
        | Verdict::Unanswered(_)
        | Verdict::Queued
        | Verdict::Replayed
        | Verdict::Busy
        | Verdict::InDoubt => "accepted",
        Verdict::Mismatch
        | Verdict::Gone
        | Verdict::Refused(_)
        | Verdict::Undecided
        | Verdict::Unprotected
        | Verdict::Passed
        | Verdict::PassedKeyless
        | Verdict::Page => "rejected",
    };
    response.headers_mut().insert(RESULT, HeaderValue::from_static(result));
}
