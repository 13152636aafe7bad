//! The ways that are compared.

use crate::turns::NamedWay;

/// A way to make a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallWay {
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
pub(super) struct CallComparison {
    pub(super) title: &'static str,
    pub(super) ways: &'static [CallWay],
}

pub(super) const COMPARISONS: &[CallComparison] = &[
    CallComparison {
        title: "Calls without a journal",
        ways: &[CallWay::Bare, CallWay::Service, CallWay::Layer, CallWay::Client],
    },
    CallComparison {
        title: "The journal alone: an operation begins and ends",
        ways: &[CallWay::ByHand, CallWay::Journal],
    },
    CallComparison {
        title: "Calls with a journal",
        ways: &[CallWay::ByHandCall, CallWay::JournalCall],
    },
];

impl NamedWay for CallWay {
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
