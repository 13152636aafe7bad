//! What happened, as seen from outside: the calls, their answers, and the ledger of effects.
//!
//! A simulator or a harness writes these down in the order in which it saw them, and
//! [`check`](crate::checker::check) judges them. Nothing here knows how the engine works.

use std::fmt;

/// One thing that was seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryEvent {
    /// A client asked for an operation.
    Invoked {
        /// Which call this is; no two have the same number.
        call: Call,
        /// Which operation.
        key: Key,
        /// With which request.
        request: Request,
    },
    /// A call came to an end for its client.
    Answered {
        /// Which call.
        call: Call,
        /// What the client heard.
        answer: ObservedAnswer,
    },
    /// Whatever has the effect ran the request, and it had its effect.
    Effect(LedgerRun),
    /// Whatever has the effect ran the request and refused it, or the machine itself ended it:
    /// there is an outcome and no effect.
    Declined(LedgerRun),
    /// The key's retention and tombstone are over: from here on it counts as new.
    Expired {
        /// Which operation.
        key: Key,
    },
    /// Faults have stopped and everything had time to settle: this is what the store then holds.
    Quiesced {
        /// Which operation.
        key: Key,
        /// Where it stands.
        end: FinalState,
    },
}

/// One execution, as the other side's own ledger has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerRun {
    /// Of which operation.
    pub key: Key,
    /// The fence it was sent with.
    pub fence: i64,
    /// The request that ran.
    pub request: Request,
    /// What it answered.
    pub outcome: Digest,
    /// When, by whatever clock the harness has.
    pub at: u64,
}

/// What a client heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservedAnswer {
    /// It ran, and this came of it.
    Executed(Digest),
    /// It had run before, and this had come of it.
    Replayed(Digest),
    /// Somebody is at work.
    Busy,
    /// The key belongs to another request.
    Mismatch,
    /// Nobody knows whether it happened.
    InDoubt,
    /// The key was used and its outcome is past retention.
    Gone,
    /// It was refused and nothing happened.
    Unavailable,
    /// No answer came, or it said that the outcome is unknown.
    Unknown,
}

/// Where an operation stands in the store when all is quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalState {
    /// There is no record.
    Absent,
    /// It waits for a worker.
    Pending,
    /// An owner is supposed to be at work.
    Running,
    /// Completed with this outcome.
    Completed(Digest),
    /// Failed with this outcome.
    Failed(Digest),
    /// In doubt.
    InDoubt,
    /// Given back.
    Released,
    /// Only a tombstone is left.
    Buried,
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $word:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($word, " {:x}"), self.0)
            }
        }
    };
}

number!(
    /// The number a harness gives to one call.
    Call,
    "call"
);
number!(
    /// The number a harness gives to one operation.
    Key,
    "key"
);
number!(
    /// The number a harness gives to one request: equal exactly when the requests are.
    Request,
    "request"
);
number!(
    /// A digest of an outcome: equal exactly when the outcomes are.
    Digest,
    "outcome"
);
