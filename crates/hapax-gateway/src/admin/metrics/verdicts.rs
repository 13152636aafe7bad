//! Verdicts as columns of a table, so that counting one is an addition at a known place.

use hapax_tower::{Code, Verdict};

/// How many columns there are.
pub(in crate::admin) const COLUMNS: usize = 16;
/// The column of what the layer never saw.
pub(super) const UNHANDLED: usize = COLUMNS - 1;

/// The word of each column.
pub(in crate::admin) const WORDS: [&str; COLUMNS] = [
    Verdict::Executed.as_str(),
    Verdict::TakenOver.as_str(),
    Verdict::Queued.as_str(),
    Verdict::Replayed.as_str(),
    Verdict::Busy.as_str(),
    Verdict::InDoubt.as_str(),
    Verdict::Mismatch.as_str(),
    Verdict::Gone.as_str(),
    Verdict::Refused(Code::KeyMissing).as_str(),
    Verdict::Undecided.as_str(),
    Verdict::Unprotected.as_str(),
    Verdict::Passed.as_str(),
    Verdict::Page.as_str(),
    Verdict::Unanswered(Code::ExecutionTimedOut).as_str(),
    Verdict::PassedKeyless.as_str(),
    "unhandled",
];

/// The column of a verdict.
pub(in crate::admin) const fn column(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Executed => 0,
        Verdict::TakenOver => 1,
        Verdict::Queued => 2,
        Verdict::Replayed => 3,
        Verdict::Busy => 4,
        Verdict::InDoubt => 5,
        Verdict::Mismatch => 6,
        Verdict::Gone => 7,
        Verdict::Refused(_) => 8,
        Verdict::Undecided => 9,
        Verdict::Unprotected => 10,
        Verdict::Passed => 11,
        Verdict::Page => 12,
        Verdict::Unanswered(_) => 13,
        Verdict::PassedKeyless => 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_is_counted_under_its_own_word() {
        for verdict in [
            Verdict::Executed,
            Verdict::TakenOver,
            Verdict::Queued,
            Verdict::Replayed,
            Verdict::Busy,
            Verdict::InDoubt,
            Verdict::Mismatch,
            Verdict::Gone,
            Verdict::Refused(Code::KeyReused),
            Verdict::Undecided,
            Verdict::Unprotected,
            Verdict::Passed,
            Verdict::PassedKeyless,
            Verdict::Page,
            Verdict::Unanswered(Code::ExecutionPanicked),
        ] {
            assert_eq!(WORDS[column(verdict)], verdict.as_str());
        }
    }
}
