//! The ways to make one insert happen once.

use crate::turns::NamedWay;

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransactionWay {
    /// The insert alone, in a transaction: what every other way is compared with.
    Bare,
    /// `Transactional::once` on the same pool.
    Once,
    /// `hapax.begin` and `hapax.finish` around the insert.
    Functions,
    /// By hand: a claim that commits, then the insert and the answer in a second transaction.
    TwoCommits,
}

impl TransactionWay {
    pub(super) const ALL: [Self; 4] = [Self::Bare, Self::Once, Self::Functions, Self::TwoCommits];
}

impl NamedWay for TransactionWay {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare insert",
            Self::Once => "same transaction, Rust",
            Self::Functions => "same transaction, SQL functions",
            Self::TwoCommits => "two commits by hand",
        }
    }
}
