//! The probes: a file for each.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::{Defect, Examiner, Exchange, ProbeInterruption, ProbeLog};

mod bad_keys;
mod changed_body;
mod cut_before_answer;
mod cut_in_answer;
mod cut_in_request;
mod expiry;
mod failed_then_retried;
mod key_variants;
mod kill_after_effect;
mod kill_while_running;
mod large_answer;
mod many_keys;
mod missing_key;
mod no_credentials;
mod other_circumstances;
mod other_operation;
mod other_principal;
mod pipeline;
mod race;
mod race_http2;
mod race_over_addresses;
mod reads_while_running;
mod refused_then_corrected;
mod reordered_body;
mod replayed_headers;
mod resending_proxy;
mod restart;
mod retry_after_success;
mod retry_storm;
mod retry_while_running;
mod revoked_credentials;
mod stream_reset;

/// A question to the API, asked over the wire.
#[derive(Debug)]
pub struct Probe {
    /// `V01`.
    pub id: &'static str,
    /// `retry-after-success`.
    pub name: &'static str,
    /// What it asks, as a sentence: `Does a retry after success have no second effect, and the same answer?`
    pub question: &'static str,
    /// What must be given for it.
    pub needs: &'static [ProbeNeed],
    /// How many operations it begins at most, where the bounds of the examination do not say so.
    pub operations_max: u32,
    pub(crate) run: for<'a> fn(&'a Examiner, &'a ProbeLog) -> ProbeFuture<'a>,
}

pub(crate) type ProbeFuture<'a> = BoxFuture<'a, Result<ProbeVerdict, ProbeInterruption>>;

/// What a probe cannot be run without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeNeed {
    /// An oracle that counts effects (O2 or O3).
    Count,
    /// HTTP/2.
    Http2,
    /// A second address of the same API.
    SecondAddress,
    /// Another operation that takes the same request.
    OtherPath,
    /// An operation whose answer is large.
    LargeAnswer,
    /// Credentials of whoever asks.
    Credentials,
    /// Somebody else's credentials.
    OtherCredentials,
    /// Credentials that were revoked.
    RevokedCredentials,
    /// A way to let the server fail.
    FailHook,
    /// Ways to kill and to start the server.
    KillHook,
    /// How long keys are kept.
    Retention,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq)]
pub enum ProbeVerdict {
    /// The property was observed, so often.
    Pass {
        /// In so many trials.
        trials: u32,
    },
    /// It does not hold.
    Fail {
        /// In so many trials.
        trials: u32,
        /// What is wrong.
        defects: Vec<Defect>,
    },
    /// What it asks about did not come about, or could not be seen.
    Inconclusive {
        /// Why, and what would help.
        reason: String,
    },
}

/// A probe that was run, with all that is known of it.
#[derive(Debug, Clone)]
pub struct ProbeRecord {
    /// Which.
    pub probe: &'static Probe,
    /// What it found.
    pub verdict: ProbeVerdict,
    /// Whether it was run at all: whether what it needs was given, and is spoken.
    pub was_run: bool,
    /// What went over the wire.
    pub exchanges: Vec<Exchange>,
    /// What was done in between, and when.
    pub notes: Vec<(Duration, String)>,
    /// How close duplicates came: for each race, how long after the first one's last byte the last one's left.
    pub spreads: Vec<Duration>,
    /// How far it went, if that makes a difference: `100 other keys between`.
    pub reach: Option<String>,
    /// How long it took.
    pub took: Duration,
}

/// All of them.
pub const PROBES: &[Probe] = &[
    retry_after_success::PROBE,
    race::PROBE,
    race_http2::PROBE,
    race_over_addresses::PROBE,
    changed_body::PROBE,
    reordered_body::PROBE,
    other_operation::PROBE,
    other_principal::PROBE,
    no_credentials::PROBE,
    revoked_credentials::PROBE,
    cut_before_answer::PROBE,
    cut_in_answer::PROBE,
    cut_in_request::PROBE,
    retry_storm::PROBE,
    stream_reset::PROBE,
    retry_while_running::PROBE,
    refused_then_corrected::PROBE,
    failed_then_retried::PROBE,
    missing_key::PROBE,
    bad_keys::PROBE,
    key_variants::PROBE,
    many_keys::PROBE,
    kill_while_running::PROBE,
    kill_after_effect::PROBE,
    restart::PROBE,
    expiry::PROBE,
    replayed_headers::PROBE,
    large_answer::PROBE,
    reads_while_running::PROBE,
    other_circumstances::PROBE,
    pipeline::PROBE,
    resending_proxy::PROBE,
];

impl ProbeVerdict {
    /// Pass if nothing is wrong.
    pub fn of(trials: u32, defects: Vec<Defect>) -> Self {
        if defects.is_empty() { Self::Pass { trials } } else { Self::Fail { trials, defects } }
    }

    /// What did not come about.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self::Inconclusive { reason: reason.into() }
    }
}

impl Probe {
    /// The probe of this number or name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROBES.iter().find(|probe| probe.id.eq_ignore_ascii_case(name) || probe.name == name)
    }
}
