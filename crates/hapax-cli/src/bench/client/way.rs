//! The ways that are compared.

use crate::bench::turns::Named;

/// A way to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// reqwest as its own documentation shows it: what every other way without a journal is compared
    /// with.
    Bare,
    /// The same reqwest as a tower service.
    Service,
    /// That service in `RetryLayer`.
    Layer,
    /// `hapax::Client` on the same reqwest.
    Client,
    /// A row by hand, in a transaction of its own, when an operation begins and when it ends.
    ByHand,
    /// The client's journal.
    Journal,
    /// Bare reqwest between two rows by hand.
    ByHandCall,
    /// `hapax::Client` with its journal.
    JournalCall,
}

/// Ways that are measured in turn, and what follows from them.
pub(super) struct Comparison {
    pub(super) title: &'static str,
    pub(super) ways: &'static [Way],
}

pub(super) const COMPARISONS: &[Comparison] = &[
    Comparison {
        title: "Calls without a journal",
        ways: &[Way::Bare, Way::Service, Way::Layer, Way::Client],
    },
    Comparison {
        title: "The journal alone: an operation begins and ends",
        ways: &[Way::ByHand, Way::Journal],
    },
    Comparison { title: "Calls with a journal", ways: &[Way::ByHandCall, Way::JournalCall] },
];

impl Named for Way {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare reqwest",
            Self::Service => "reqwest as a service",
            Self::Layer => "RetryLayer",
            Self::Client => "hapax::Client",
            Self::ByHand => "one transaction per write",
            Self::Journal => "journal",
            Self::ByHandCall => "bare reqwest, one transaction per write",
            Self::JournalCall => "hapax::Client with its journal",
        }
    }
}
