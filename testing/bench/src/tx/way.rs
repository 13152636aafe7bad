//! The ways to make one insert happen once.

use crate::turns::NamedWay;

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionWay {
    /// The insert alone, in a transaction: what every other way is compared with.
    Bare,
    /// `Transactional::once` on the same pool, looking at the key before the insert.
    LookAtBegin,
    /// The same, looking at the key when the answer is stored.
    LookAtEnd,
    /// `hapax.begin` and `hapax.finish` around the insert.
    Functions,
    /// `hapax.record` behind the insert.
    Record,
    /// The prepared statement of the manual behind the insert.
    Statement,
    /// By hand: a claim that commits, then the insert and the answer in a second transaction.
    TwoCommits,
}

impl TransactionWay {
    pub(super) const ALL: [Self; 7] = [
        Self::Bare,
        Self::LookAtBegin,
        Self::LookAtEnd,
        Self::Functions,
        Self::Record,
        Self::Statement,
        Self::TwoCommits,
    ];
}

impl NamedWay for TransactionWay {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare insert",
            Self::LookAtBegin => "Rust, look at begin",
            Self::LookAtEnd => "Rust, look at end",
            Self::Functions => "SQL, begin and finish",
            Self::Record => "SQL, record",
            Self::Statement => "SQL, the statement",
            Self::TwoCommits => "two commits by hand",
        }
    }
}
