//! The bounds of an engine.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use hapax_core::{Policy, Record, Recovery, limits::CLOCK_STAYS};

use crate::permit::Permit;

/// How much an engine may use and how often it looks after its store.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_engine::Options;
///
/// let options = Options { sweep_every: Duration::from_secs(1), ..Options::default() };
/// assert!(options.finisher.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Most bytes of finished records kept in memory; zero for none.
    pub cache_bytes_max: u64,
    /// How often those are forgotten all at once, for stores whose answers can be erased; never if `None`.
    pub cache_cleared_every: Option<Duration>,
    /// Most bytes of records that are remembered after the store acknowledged them, for the case that it
    /// forgets them in a failover. If that is less than it forgets, somebody has to lift the quarantine.
    pub acknowledged_bytes_max: usize,
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
    pub finisher: Option<Finisher>,
    /// Seeds the names of attempts, so that a simulated run can be repeated; random if not given.
    pub seed: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cache_bytes_max: 64 << 20,
            cache_cleared_every: None,
            acknowledged_bytes_max: 32 << 20,
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
///
/// ```
/// use hapax_core::{AttemptEnd, Outcome, Policy, Record};
/// use hapax_engine::{Finisher, Options, Permit};
///
/// # async fn send(_request: Option<&[u8]>) {}
/// let finisher = Finisher::new(
///     |_record: &Record| Policy::default(),
///     |permit: Permit, _recovery| async move {
///         send(permit.record().request().map(|request| &request[..])).await;
///         let _ = permit.settle(AttemptEnd::completed(Outcome::bare(201))).await;
///     },
/// );
/// let options = Options { finisher: Some(finisher), ..Options::default() };
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Finisher(Vec<FinishRule>);

/// One way to finish operations, and which.
#[derive(Clone)]
struct FinishRule {
    serves: Arc<dyn Fn(&Record) -> bool + Send + Sync>,
    policy_of: Arc<dyn Fn(&Record) -> Policy + Send + Sync>,
    finish: Arc<dyn Fn(Permit, Recovery) -> Finishing + Send + Sync>,
}

type Finishing = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Finisher {
    /// Finishes each operation under the policy that `policy_of` names for it, by `finish`: it is
    /// given the right to run it, whose record holds the stored request, and what recovery is
    /// allowed.
    pub fn new<F>(
        policy_of: impl Fn(&Record) -> Policy + Send + Sync + 'static,
        finish: impl Fn(Permit, Recovery) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(vec![FinishRule {
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
            FinishRule { serves: Arc::new(move |record| before(record) && both(record)), ..hand }
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

    pub(crate) fn finish(&self, permit: Permit, recovery: Recovery) -> Option<Finishing> {
        let finish = Arc::clone(&self.hand(permit.record())?.finish);
        Some(finish(permit, recovery))
    }

    fn hand(&self, record: &Record) -> Option<&FinishRule> {
        self.0.iter().find(|hand| (hand.serves)(record))
    }
}

impl fmt::Debug for Finisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finisher(..)")
    }
}
