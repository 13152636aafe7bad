//! The bounds of an engine.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use hapax_core::{Policy, Record, Recovery};

use crate::permit::Permit;

/// How much an engine may use and how often it looks after its store.
#[derive(Debug, Clone)]
pub struct Options<S: hapax_core::Store> {
    /// Most bytes of finished records kept in memory; zero for none.
    pub cache_bytes_max: u64,
    /// Most claims waiting for a commit; more are refused as overloaded.
    pub queued_claims_max: usize,
    /// Most callers waiting for operations that run elsewhere; more are told it is busy.
    pub waiters_max: usize,
    /// How long a settle is tried again while the store is away.
    pub settle_patience: Duration,
    /// How often overdue operations are looked for.
    pub sweep_every: Duration,
    /// How often records past retention are looked for.
    pub purge_every: Duration,
    /// Finishes operations whose owner vanished, from their stored request.
    pub finisher: Option<Finisher<S>>,
    /// Seeds the names of attempts, so that a simulated run can be repeated; random if not given.
    pub seed: Option<u64>,
}

impl<S: hapax_core::Store> Default for Options<S> {
    fn default() -> Self {
        Self {
            cache_bytes_max: 64 << 20,
            queued_claims_max: 1 << 16,
            waiters_max: 1 << 16,
            settle_patience: Duration::from_secs(10),
            sweep_every: Duration::from_secs(10),
            purge_every: Duration::from_secs(5),
            finisher: None,
            seed: None,
        }
    }
}

/// Finishes operations somebody else left behind.
pub struct Finisher<S: hapax_core::Store>(Arc<Parts<S>>);

struct Parts<S: hapax_core::Store> {
    policy_of: Box<dyn Fn(&Record) -> Policy + Send + Sync>,
    finish: Box<dyn Fn(Permit<S>, Recovery) -> Finishing + Send + Sync>,
}

type Finishing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S: hapax_core::Store> Finisher<S> {
    /// Finishes each operation under the policy that `policy_of` names for it, by `finish`: it is
    /// given the right to run it, whose record holds the stored request, and what recovery is
    /// allowed.
    pub fn new<F>(
        policy_of: impl Fn(&Record) -> Policy + Send + Sync + 'static,
        finish: impl Fn(Permit<S>, Recovery) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(Parts {
            policy_of: Box::new(policy_of),
            finish: Box::new(move |permit, recovery| Box::pin(finish(permit, recovery))),
        }))
    }

    pub(crate) fn policy_of(&self, record: &Record) -> Policy {
        (self.0.policy_of)(record)
    }

    pub(crate) fn finish(&self, permit: Permit<S>, recovery: Recovery) -> Finishing {
        (self.0.finish)(permit, recovery)
    }
}

impl<S: hapax_core::Store> Clone for Finisher<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: hapax_core::Store> fmt::Debug for Finisher<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finisher(..)")
    }
}
