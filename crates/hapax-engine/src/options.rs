//! The bounds of an engine.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use hapax_core::{Policy, Record, Recovery, limits::CLOCK_STAYS};

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
    /// How long the store's clock must have gone steadily before anything expires by it.
    pub clock_stays: Duration,
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
            clock_stays: CLOCK_STAYS,
            finisher: None,
            seed: None,
        }
    }
}

/// Finishes operations somebody else left behind.
pub struct Finisher<S: hapax_core::Store>(Vec<Hand<S>>);

/// One way to finish operations, and which.
struct Hand<S: hapax_core::Store> {
    serves: Arc<dyn Fn(&Record) -> bool + Send + Sync>,
    policy_of: Arc<dyn Fn(&Record) -> Policy + Send + Sync>,
    finish: Arc<dyn Fn(Permit<S>, Recovery) -> Finishing + Send + Sync>,
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
        Self(vec![Hand {
            serves: Arc::new(|_| true),
            policy_of: Arc::new(policy_of),
            finish: Arc::new(move |permit, recovery| Box::pin(finish(permit, recovery))),
        }])
    }

    /// The same, for operations alone for which `serves` is true. Others with a stored request are
    /// left to whoever can finish them.
    #[must_use]
    pub fn only(self, serves: impl Fn(&Record) -> bool + Send + Sync + 'static) -> Self {
        let serves = Arc::new(serves);
        let narrowed = self.0.into_iter().map(|hand| {
            let (both, before) = (Arc::clone(&serves), hand.serves);
            Hand { serves: Arc::new(move |record| before(record) && both(record)), ..hand }
        });
        Self(narrowed.collect())
    }

    /// The same, and `other` for what this one does not serve.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(crate) fn serves(&self, record: &Record) -> bool {
        self.hand(record).is_some()
    }

    /// The policy for a record that is served.
    pub(crate) fn policy_of(&self, record: &Record) -> Option<Policy> {
        self.hand(record).map(|hand| (hand.policy_of)(record))
    }

    pub(crate) fn finish(&self, permit: Permit<S>, recovery: Recovery) -> Option<Finishing> {
        let finish = Arc::clone(&self.hand(permit.record())?.finish);
        Some(finish(permit, recovery))
    }

    fn hand(&self, record: &Record) -> Option<&Hand<S>> {
        self.0.iter().find(|hand| (hand.serves)(record))
    }
}

impl<S: hapax_core::Store> Clone for Finisher<S> {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(Hand::clone).collect())
    }
}

impl<S: hapax_core::Store> Clone for Hand<S> {
    fn clone(&self) -> Self {
        Self {
            serves: Arc::clone(&self.serves),
            policy_of: Arc::clone(&self.policy_of),
            finish: Arc::clone(&self.finish),
        }
    }
}

impl<S: hapax_core::Store> fmt::Debug for Finisher<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finisher(..)")
    }
}
