//! What an answer says: ours, Stripe's, anybody's.

use std::time::Duration;

use hapax_core::retry::{AttemptResult, AttemptVerdict, Repeat};
use hapax_engine::wall_clock;
use http::{HeaderMap, HeaderName, StatusCode};
use serde_json::Value;

use super::{attempt_result::of_answer, key, retry_after};
use crate::{Code, refusal_header};

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");
/// A problem document is short; what is longer is not read as one.
const PROBLEM_BYTES_MAX: usize = 64 << 10;

/// What was read from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ResponseReading {
    pub(super) result: AttemptResult,
    /// What its client is asked to wait.
    pub(super) told: Option<Duration>,
    /// Whether it is the kept answer of an earlier attempt.
    pub(super) replayed: bool,
    /// Whether whoever answered had looked at the key.
    pub(super) knows_key: bool,
    /// What `Stripe-Should-Retry` says.
    should_retry: Option<bool>,
}

impl ResponseReading {
    /// What is known without an answer.
    pub(super) fn none(result: AttemptResult) -> Self {
        Self { result, told: None, replayed: false, knows_key: false, should_retry: None }
    }

    /// Reads the head of an answer, and its body where that is at hand.
    pub(super) fn read(
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&[u8]>,
        key: Option<&key::OfRequest>,
    ) -> Self {
        let replayed = is_true(headers, &REPLAYED) == Some(true);
        let echoed = key.is_some_and(|key| key.is_repeated_in(headers));
        let knows_key = replayed || echoed || headers.contains_key(EXPIRES);
        let plain = Self { replayed, knows_key, ..Self::none(of_answer(status, None)) };
        if status.is_success() { plain } else { plain.read_failure(status, headers, body, key) }
    }

    fn read_failure(
        self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Option<&[u8]>,
        key: Option<&key::OfRequest>,
    ) -> Self {
        let told = retry_after::told(headers, wall_clock);
        let should_retry = is_true(headers, &SHOULD_RETRY);
        let mut result = refused(status, headers, body);
        // Stripe, and others like it, have no code for a key in flight.
        let asked_back = told.is_some() || should_retry == Some(true);
        let conflicts = status == StatusCode::CONFLICT && result == AttemptResult::Refused;
        if conflicts && key.is_some() && asked_back {
            result = AttemptResult::InFlight;
        }
        Self { result, told, should_retry, ..self }
    }

    /// What to do about it, if the request may be sent again.
    pub(super) fn verdict(&self) -> AttemptVerdict {
        let verdict = self.result.verdict(Repeat::Harmless);
        match (verdict, self.should_retry) {
            (AttemptVerdict::Retry | AttemptVerdict::Wait, Some(false)) => AttemptVerdict::Never,
            // What is kept under the key will be said again, however often it is asked for.
            (AttemptVerdict::Retry, _) if self.replayed => AttemptVerdict::Never,
            (AttemptVerdict::Never, Some(true)) if !self.replayed => AttemptVerdict::Retry,
            (verdict, _) => verdict,
        }
    }
}

fn is_true(headers: &HeaderMap, name: &HeaderName) -> Option<bool> {
    let value = headers.get(name)?.as_bytes();
    if value.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else {
        value.eq_ignore_ascii_case(b"false").then_some(false)
    }
}

/// What a refusal says, by its code if it is one of ours.
fn refused(status: StatusCode, headers: &HeaderMap, body: Option<&[u8]>) -> AttemptResult {
    let refusal = match refusal_header::code(headers) {
        Some(code) => Code::parse(code),
        None if refusal_header::is_problem(headers) => body.and_then(typed),
        None => None,
    };
    of_answer(status, refusal)
}

/// The last part of the problem's `type`, if the document says the same as its `code`: a foreign
/// type that happens to end alike is not taken for ours.
fn typed(body: &[u8]) -> Option<Code> {
    if body.len() > PROBLEM_BYTES_MAX {
        return None;
    }
    let document: Value = serde_json::from_slice(body).ok()?;
    let code = document.get("type")?.as_str()?.rsplit('/').next()?;
    Code::parse(code).filter(|_| document.get("code").and_then(Value::as_str) == Some(code))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::Site;

    fn read(status: u16, headers: &[(&'static str, &'static str)], body: &str) -> ResponseReading {
        let pairs = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let headers = pairs.collect();
        let key = key::OfRequest(HeaderValue::from_static("\"k-1\""));
        let status = StatusCode::from_u16(status).unwrap();
        ResponseReading::read(status, &headers, Some(body.as_bytes()), Some(&key))
    }

    const PROBLEM: (&str, &str) = ("content-type", "application/problem+json");

    #[test]
    fn the_code_of_our_refusals_is_read_from_its_mark_or_from_the_document() {
        let marked = ("hapax-refusal", "key-in-flight");
        assert_eq!(read(409, &[PROBLEM, marked], "").result, AttemptResult::InFlight);
        let document =
            r#"{"type": "https://x.test/errors/outcome-in-doubt", "code": "outcome-in-doubt"}"#;
        assert_eq!(read(409, &[PROBLEM], document).result, AttemptResult::InDoubt);
    }

    #[test]
    fn what_only_looks_like_our_refusal_is_read_by_its_status() {
        let link = ("link", "</errors/overloaded>; rel=\"describedby\"");
        assert_eq!(read(503, &[PROBLEM, link], "").result, AttemptResult::Failed);
        assert_eq!(read(503, &[("hapax-refusal", "overloaded")], "").result, AttemptResult::Failed);
        let foreign = r#"{"type": "https://bank.test/overloaded"}"#;
        assert_eq!(read(503, &[PROBLEM], foreign).result, AttemptResult::Failed);
        assert_eq!(read(503, &[PROBLEM], "{").result, AttemptResult::Failed);
    }

    /// What a client must make of a refusal. A new code does not compile before it is known here.
    fn expected(code: Code) -> AttemptResult {
        match code {
            Code::KeyInFlight => AttemptResult::InFlight,
            Code::KeyReused => AttemptResult::KeyReused,
            Code::OutcomeInDoubt => AttemptResult::InDoubt,
            Code::ResponseNotRetained => AttemptResult::NotRetained,
            Code::KeyGone | Code::FirstSentTooOld => AttemptResult::Gone,
            Code::BodyIncomplete
            | Code::CallerUnverifiable
            | Code::DeadlinePassed
            | Code::ExecutionNotStarted
            | Code::Overloaded
            | Code::ShuttingDown
            | Code::StoreQuarantined
            | Code::StoreUnavailable
            | Code::StoredByNewerVersion
            | Code::TransactionRolledBack => AttemptResult::NothingRan,
            // Their status says all there is to say: refused for good, later, or unknown.
            Code::KeyMissing
            | Code::KeyMalformed
            | Code::KeyNotQuoted
            | Code::KeyEmpty
            | Code::KeyTooLong
            | Code::KeyRepeated
            | Code::KeyUnderivable
            | Code::FirstSentMalformed
            | Code::DeadlineMalformed
            | Code::CredentialMissing
            | Code::CallerRefused
            | Code::CredentialsNotKept
            | Code::ScopeUnusable
            | Code::MethodRefused
            | Code::TransferCodingUnknown
            | Code::TransferCodingRepeated
            | Code::TargetUnclear
            | Code::RouteUnknown
            | Code::HostUnclear
            | Code::HostUnknown
            | Code::BodyTooLarge
            | Code::BodyTooSlow
            | Code::BodyNotCanonical
            | Code::BodyEncoded
            | Code::OutcomeNotRecorded
            | Code::AnswerHeldBack
            | Code::StoredResponseCorrupt
            | Code::RateLimited
            | Code::ExecutionPanicked
            | Code::ExecutionTimedOut
            | Code::ExecutionUnanswered
            | Code::OperationUnknown => of_answer(code.status(), None),
        }
    }

    /// Whether a refusal with this code leaves open what became of the operation.
    fn leaves_doubt(code: Code) -> bool {
        matches!(
            code,
            Code::KeyInFlight
                | Code::OutcomeInDoubt
                | Code::OutcomeNotRecorded
                // It was done; whoever gives up now has not heard with which answer.
                | Code::AnswerHeldBack
                | Code::ExecutionPanicked
                | Code::ExecutionTimedOut
                | Code::ExecutionUnanswered
                // It was done, and nobody can say with which answer.
                | Code::StoredResponseCorrupt
        )
    }

    #[test]
    fn every_refusal_of_the_layer_is_understood_by_the_client() {
        for code in Code::ALL {
            let response = code.answer("Some detail.", &Site::default());
            let (status, headers) = (response.status(), response.headers());
            let key = key::OfRequest(HeaderValue::from_static("\"k-1\""));
            let marked = ResponseReading::read(status, headers, None, Some(&key));
            assert_eq!(marked.result, expected(*code), "{code:?}");
            assert_eq!(marked.result.leaves_doubt(), leaves_doubt(*code), "{code:?}");
            let page = format!("https://x.test/errors/{}", code.code());
            let document = format!(r#"{{"type": "{page}", "code": "{}"}}"#, code.code());
            let typed = read(status.as_u16(), &[PROBLEM], &document);
            assert_eq!(typed.result, expected(*code), "{code:?} without its mark");
        }
    }

    #[test]
    fn a_conflict_that_asks_its_client_back_is_a_key_in_flight() {
        assert_eq!(read(409, &[("retry-after", "2")], "").result, AttemptResult::InFlight);
        assert_eq!(
            read(409, &[("stripe-should-retry", "true")], "").result,
            AttemptResult::InFlight
        );
        assert_eq!(read(409, &[("retry-after", "soon")], "").result, AttemptResult::Refused);
        assert_eq!(read(409, &[], "").result, AttemptResult::Refused);
    }

    #[test]
    fn stripe_is_obeyed_when_it_says_whether_to_retry() {
        let verdict = |status, said| read(status, &[("stripe-should-retry", said)], "").verdict();
        assert_eq!(verdict(500, "false"), AttemptVerdict::Never);
        assert_eq!(verdict(409, "false"), AttemptVerdict::Never);
        assert_eq!(verdict(400, "true"), AttemptVerdict::Retry);
        assert_eq!(verdict(400, "perhaps"), AttemptVerdict::Never);
        assert_eq!(verdict(500, "true"), AttemptVerdict::Retry);
    }

    #[test]
    fn what_was_kept_is_not_asked_for_again() {
        let kept = read(500, &[("idempotent-replayed", "true")], "");
        assert!(kept.replayed && kept.knows_key);
        assert_eq!(kept.verdict(), AttemptVerdict::Never);
    }

    #[test]
    fn an_answer_shows_that_the_key_was_looked_at() {
        for header in [
            ("idempotent-replayed", "true"),
            ("idempotency-expires", "Wed, 21 Oct 2015 07:28:00 GMT"),
            ("idempotency-key", "k-1"),
            ("idempotency-key", "\"k-1\""),
        ] {
            assert!(read(402, &[header], "").knows_key, "{header:?}");
        }
        for header in [("idempotent-replayed", "false"), ("idempotency-key", "k-2")] {
            assert!(!read(402, &[header], "").knows_key, "{header:?}");
        }
    }
}
