//! What would have been done with a request that was observed.

use crate::server::responses::code::Code;

/// What would have been done with a request of an observed route, had the route been enforced.
///
/// ```
/// use hapax_tower::ObservedVerdict;
///
/// let verdict = ObservedVerdict::Replayed;
/// assert!(verdict.as_str() == "replayed" && verdict.is_second_effect());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedVerdict {
    /// It would have been run, as it was.
    Executed,
    /// The same had been done: it would have been answered from the store, and was done once more.
    Replayed,
    /// The same had been refused for good: it would have been answered from the store, and was asked for
    /// once more.
    ReplayedFailure,
    /// The same was at work: it would have waited or been told so, and was sent once more.
    Busy,
    /// The same had been sent, and nobody heard what became of it: that would have been held or found
    /// out, as the route says, and it was sent once more.
    InDoubt,
    /// Its key was past retention.
    Gone,
    /// Its key had been used for another request.
    Mismatch,
    /// It has no key.
    KeyMissing {
        /// Whether its caller had sent the same without a key shortly before: it looks like a retry.
        again: bool,
    },
    /// Its key cannot be read, for this reason.
    KeyMalformed(Code),
    /// Nobody knows whose it is.
    TenantUnknown {
        /// Whether the same had come under its key, or without one, shortly before.
        again: bool,
    },
    /// It would have been refused for another reason.
    Refused(Code),
}

impl ObservedVerdict {
    /// Every word for one.
    pub const WORDS: [&'static str; 13] = [
        "executed",
        "replayed",
        "replayed_failure",
        "busy",
        "in_doubt",
        "gone",
        "mismatch",
        "key_missing",
        "key_missing_again",
        "key_malformed",
        "tenant_unknown",
        "tenant_unknown_again",
        "refused",
    ];

    /// The words for those that are a [second effect](Self::is_second_effect).
    pub const SECOND_EFFECTS: [&'static str; 5] =
        ["replayed", "busy", "in_doubt", "key_missing_again", "tenant_unknown_again"];

    /// The word used in metrics and documents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Replayed => "replayed",
            Self::ReplayedFailure => "replayed_failure",
            Self::Busy => "busy",
            Self::InDoubt => "in_doubt",
            Self::Gone => "gone",
            Self::Mismatch => "mismatch",
            Self::KeyMissing { again: false } => "key_missing",
            Self::KeyMissing { again: true } => "key_missing_again",
            Self::KeyMalformed(_) => "key_malformed",
            Self::TenantUnknown { again: false } => "tenant_unknown",
            Self::TenantUnknown { again: true } => "tenant_unknown_again",
            Self::Refused(_) => "refused",
        }
    }

    /// Whether the same was sent before, and may have had its effect then.
    pub const fn is_second_effect(self) -> bool {
        match self {
            Self::Replayed | Self::Busy | Self::InDoubt => true,
            Self::KeyMissing { again } | Self::TenantUnknown { again } => again,
            Self::Executed
            | Self::ReplayedFailure
            | Self::Gone
            | Self::Mismatch
            | Self::KeyMalformed(_)
            | Self::Refused(_) => false,
        }
    }

    /// The code of the refusal, where it would have been refused for what it says.
    pub const fn code(self) -> Option<Code> {
        match self {
            Self::KeyMalformed(code) | Self::Refused(code) => Some(code),
            Self::Executed
            | Self::Replayed
            | Self::ReplayedFailure
            | Self::Busy
            | Self::InDoubt
            | Self::Gone
            | Self::Mismatch
            | Self::KeyMissing { .. }
            | Self::TenantUnknown { .. } => None,
        }
    }

    /// What a refusal for its name, its body or anything else of it comes to.
    pub(crate) fn of_refusal(code: Code) -> Self {
        if code == Code::KeyMissing {
            return Self::KeyMissing { again: false };
        }
        let is_of_the_key = [
            Code::KeyMalformed,
            Code::KeyEmpty,
            Code::KeyTooLong,
            Code::KeyRepeated,
            Code::KeyNotQuoted,
        ];
        if is_of_the_key.contains(&code) { Self::KeyMalformed(code) } else { Self::Refused(code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_a_word_and_those_that_cost_are_listed() {
        let all = [
            ObservedVerdict::Executed,
            ObservedVerdict::Replayed,
            ObservedVerdict::ReplayedFailure,
            ObservedVerdict::Busy,
            ObservedVerdict::InDoubt,
            ObservedVerdict::Gone,
            ObservedVerdict::Mismatch,
            ObservedVerdict::KeyMissing { again: false },
            ObservedVerdict::KeyMissing { again: true },
            ObservedVerdict::KeyMalformed(Code::KeyEmpty),
            ObservedVerdict::TenantUnknown { again: false },
            ObservedVerdict::TenantUnknown { again: true },
            ObservedVerdict::Refused(Code::BodyTooLarge),
        ];
        assert_eq!(all.map(ObservedVerdict::as_str), ObservedVerdict::WORDS);
        for verdict in all {
            let is_listed = ObservedVerdict::SECOND_EFFECTS.contains(&verdict.as_str());
            assert_eq!(is_listed, verdict.is_second_effect(), "{verdict:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_key_is_told_from_what_else_is_wrong() {
        let of = ObservedVerdict::of_refusal;
        assert_eq!(of(Code::KeyMissing), ObservedVerdict::KeyMissing { again: false });
        assert_eq!(of(Code::KeyEmpty), ObservedVerdict::KeyMalformed(Code::KeyEmpty));
        assert_eq!(of(Code::BodyTooLarge), ObservedVerdict::Refused(Code::BodyTooLarge));
    }
}
