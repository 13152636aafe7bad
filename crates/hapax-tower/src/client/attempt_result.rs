//! What an answer says about an attempt: the one table of statuses and refusals for those who call.

use hapax_core::retry::AttemptResult;
use http::StatusCode;

use crate::Code;

/// What an answer says: by the code of its refusal, if it is one of Hapax's own, or by its status.
pub(super) fn of_answer(status: StatusCode, refusal: Option<Code>) -> AttemptResult {
    refusal.and_then(of_refusal).unwrap_or_else(|| of_status(status.as_u16()))
}

/// What one of our own refusals says beyond its status; `None` if its status says all there is to
/// say: refused for good, later, or unknown.
pub(crate) fn of_refusal(code: Code) -> Option<AttemptResult> {
    match code {
        Code::KeyInFlight => Some(AttemptResult::InFlight),
        Code::KeyReused => Some(AttemptResult::KeyReused),
        Code::OutcomeInDoubt => Some(AttemptResult::InDoubt),
        Code::ResponseNotRetained => Some(AttemptResult::NotRetained),
        Code::KeyGone | Code::FirstSentTooOld => Some(AttemptResult::Gone),
        Code::BodyIncomplete
        | Code::CallerUnverifiable
        | Code::DeadlinePassed
        | Code::ExecutionNotStarted
        | Code::Overloaded
        | Code::ShuttingDown
        | Code::StoreQuarantined
        | Code::StoreUnavailable
        | Code::StoredByNewerVersion
        | Code::TransactionRolledBack => Some(AttemptResult::NothingRan),
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
        | Code::OperationUnknown => None,
    }
}

/// What a bare status says.
fn of_status(status: u16) -> AttemptResult {
    match status {
        200..=299 | 303 | 304 => AttemptResult::Success { code: status },
        408 | 425 | 429 => AttemptResult::NotNow,
        // A redirect is not followed: it would send the request, and its key, to somebody else.
        300..=499 | 501 | 505 => AttemptResult::Refused,
        // What is no final answer of HTTP is no answer.
        _ => AttemptResult::Failed,
    }
}

/// The code of a success that breaks off, if it is the last word: what follows "taken on, not yet
/// done" need not be the same.
pub(super) fn begun_success(status: StatusCode) -> Option<u16> {
    let AttemptResult::Success { code } = of_status(status.as_u16()) else { return None };
    (status != StatusCode::ACCEPTED).then_some(code)
}

#[cfg(test)]
mod tests {
    use hapax_core::retry::{AttemptHistory, AttemptVerdict, Conclusion, Evidence, Health, Repeat};

    use super::*;

    #[test]
    fn a_success_is_handed_on() {
        for status in [200, 201, 202, 204, 303, 304] {
            assert_eq!(of_status(status), AttemptResult::Success { code: status });
        }
    }

    #[test]
    fn a_server_that_is_not_ready_is_asked_again_later() {
        for status in [408, 425, 429] {
            assert_eq!(of_status(status), AttemptResult::NotNow, "{status}");
        }
    }

    #[test]
    fn a_refusal_is_one_whatever_its_number() {
        for status in [
            400, 401, 403, 404, 405, 409, 410, 412, 413, 422, 451, 499, 501, 505, 300, 301, 302,
            307, 308,
        ] {
            assert_eq!(of_status(status), AttemptResult::Refused, "{status}");
        }
    }

    #[test]
    fn what_failed_or_is_no_answer_may_have_happened() {
        for status in [500, 502, 503, 504, 507, 520, 599, 0, 99, 100, 101, 199, 600, 999, u16::MAX]
        {
            assert_eq!(of_status(status), AttemptResult::Failed, "{status}");
            assert!(of_status(status).leaves_doubt(), "{status}");
            assert_eq!(of_status(status).health(), Health::Bad, "{status}");
        }
    }

    #[test]
    fn no_status_that_may_have_happened_is_repeated_when_that_is_harmful() {
        for status in 0..=u16::MAX {
            let result = of_status(status);
            let retried = result.verdict(Repeat::Harmful) == AttemptVerdict::Retry;
            assert!(!(retried && result.leaves_doubt()), "{status}");
        }
    }

    type Attempt = (AttemptResult, Evidence);

    fn said(status: u16) -> Attempt {
        (of_status(status), Evidence::default())
    }

    fn said_of_the_key(status: u16) -> Attempt {
        (of_status(status), Evidence { knows_key: true, ..Evidence::default() })
    }

    fn cut(status: u16) -> Attempt {
        let cut = begun_success(StatusCode::from_u16(status).unwrap());
        (AttemptResult::Unanswered, Evidence { cut, knows_key: false })
    }

    fn check(attempts: &[Attempt], expected: Conclusion) {
        let mut history = AttemptHistory::new();
        for (result, evidence) in attempts {
            history.note(*result, *evidence);
        }
        assert_eq!(history.conclusion(), expected, "{attempts:?}");
    }

    #[test]
    fn a_refusal_without_a_doubt_is_believed() {
        for status in [302, 400, 402, 404, 409, 422, 501] {
            check(&[said(429), said(status)], Conclusion::Refused);
        }
    }

    #[test]
    fn half_a_no_is_a_doubt_like_any_other() {
        for doubt in [said(502), cut(402)] {
            check(&[doubt, said(401)], Conclusion::Unknown);
            check(&[doubt, said_of_the_key(402)], Conclusion::Refused);
        }
    }

    #[test]
    fn a_server_that_contradicts_half_an_answer_is_not_believed() {
        check(&[cut(201), said_of_the_key(402)], Conclusion::Unknown);
        check(&[cut(201), said(200)], Conclusion::Unknown);
        check(&[cut(201), said(503), said(201)], Conclusion::Done);
    }

    #[test]
    fn what_was_only_accepted_may_be_answered_otherwise_in_the_end() {
        check(&[cut(202), said(201)], Conclusion::Done);
        check(&[cut(202), said_of_the_key(402)], Conclusion::Refused);
    }

    #[test]
    fn a_no_that_broke_off_can_become_a_yes_because_refusals_need_not_be_kept() {
        check(&[cut(402), said(201)], Conclusion::Done);
    }
}
