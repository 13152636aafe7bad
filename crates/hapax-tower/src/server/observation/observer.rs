//! What outlives the requests that are observed: the memory of them, and who is told.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::{
    AttemptEnd, Fingerprint, Operation, OperationId, Outcome, Policy, Retention, Tenant, Timestamp,
};
use http::request::Parts;
use tokio::time::Instant;

use super::{
    shadow::{ShadowAttempt, ShadowRecords},
    verdict::ObservedVerdict,
};
use crate::server::requests::worth::RepeatedWorth;

/// Most keys that are remembered where nobody says otherwise.
const KEYS_MAX: usize = 100_000;
/// Most requests without a key that are remembered.
const UNKEYED_MAX: usize = 20_000;
/// For how long the same request without a key is taken for a retry.
const RETRY_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Watches requests of observed routes: remembers by digests what came, and tells what would have been
/// done. Clones share it; layers that are made anew go on with the one they are given.
///
/// ```
/// use hapax_tower::{Observer, Protection, Routes, Treatment};
///
/// let observer = Observer::new(10_000, |seen| println!("{}: {:?}", seen.route, seen.verdict));
/// // Nothing is refused, kept or changed yet.
/// let routes = Routes::new(Treatment::Observe(Protection::default()))?;
/// # drop((observer, routes));
/// # Ok::<(), hapax_tower::InvalidRoute>(())
/// ```
#[derive(Clone)]
pub struct Observer(Arc<Inner>);

struct Inner {
    began: Instant,
    keys_max: usize,
    keyed: Mutex<ShadowRecords>,
    unkeyed: Mutex<ShadowRecords>,
    peer: Box<PeerFn>,
    told: Box<ToldFn>,
}

type PeerFn = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;
type ToldFn = dyn Fn(&Observation) + Send + Sync;

/// What was seen of one request.
///
/// ```
/// use hapax_tower::{Observation, RepeatedWorth};
///
/// fn is_a_loss(seen: &Observation) -> bool {
///     seen.verdict.is_second_effect() && matches!(seen.worth, Some(RepeatedWorth::Told(_)))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Observation {
    /// What its route is called.
    pub route: Arc<str>,
    /// What would have been done with it.
    pub verdict: ObservedVerdict,
    /// Whose it is, where that is known.
    pub tenant: Option<Tenant>,
    /// Where it came from, where the observer can tell.
    pub peer: Option<IpAddr>,
    /// What it asked for once more, where its route says
    /// [what requests are worth](crate::Protection::worth).
    pub worth: Option<RepeatedWorth>,
}

/// How much is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedMemory {
    /// Keys that are remembered.
    pub keys: usize,
    /// Most keys that can be.
    pub keys_max: usize,
    /// Keys that were forgotten before their retention was over: a retry of theirs was taken for new.
    pub keys_forgotten: u64,
}

impl Default for Observer {
    fn default() -> Self {
        Self::new(KEYS_MAX, |_| {})
    }
}

impl Observer {
    /// Remembers as many keys as that, and tells `told` what it sees: once for each request, when its
    /// body has come.
    pub fn new(keys_max: usize, told: impl Fn(&Observation) + Send + Sync + 'static) -> Self {
        Self::with_peers(keys_max, |_| None, told)
    }

    /// The same, remembering 100,000 keys, where `peer` says where a request came from.
    pub fn telling_with_peers(
        peer: impl Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static,
        told: impl Fn(&Observation) + Send + Sync + 'static,
    ) -> Self {
        Self::with_peers(KEYS_MAX, peer, told)
    }

    /// The same as [`Observer::new`], where `peer` says by what a request brings along where it came from: callers without a
    /// tenant are told apart by that.
    pub fn with_peers(
        keys_max: usize,
        peer: impl Fn(&Parts) -> Option<IpAddr> + Send + Sync + 'static,
        told: impl Fn(&Observation) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            began: Instant::now(),
            keys_max,
            keyed: Mutex::new(ShadowRecords::new(keys_max)),
            unkeyed: Mutex::new(ShadowRecords::new(UNKEYED_MAX.min(keys_max))),
            peer: Box::new(peer),
            told: Box::new(told),
        }))
    }

    /// How much is remembered now.
    pub fn memory(&self) -> ObservedMemory {
        let keyed = self.0.keyed.lock().unwrap_or_else(PoisonError::into_inner);
        let (keys, keys_forgotten) = (keyed.len(), keyed.forgotten());
        ObservedMemory { keys, keys_max: self.0.keys_max, keys_forgotten }
    }

    pub(super) fn peer(&self, parts: &Parts) -> Option<IpAddr> {
        (self.0.peer)(parts)
    }

    pub(super) fn tell(&self, observation: &Observation) {
        (self.0.told)(observation);
    }

    /// What a request under a key would have met, and the attempt it would have been.
    pub(super) fn arrive(
        &self,
        operation: &Operation,
        fingerprint: Fingerprint,
        policy: &Policy,
    ) -> (ObservedVerdict, Option<ShadowAttempt>) {
        let mut keyed = self.0.keyed.lock().unwrap_or_else(PoisonError::into_inner);
        keyed.arrive(self.now(), operation.id(), fingerprint, policy)
    }

    /// What became of an attempt.
    pub(super) fn settle(&self, attempt: &ShadowAttempt, end: AttemptEnd) {
        let mut keyed = self.0.keyed.lock().unwrap_or_else(PoisonError::into_inner);
        keyed.settle(self.now(), attempt, end);
    }

    /// Whether the same came shortly before, without a key that could tell.
    pub(super) fn came_before(&self, fingerprint: Fingerprint) -> bool {
        let mut id = [0; 16];
        id.copy_from_slice(&fingerprint.as_bytes()[..16]);
        let (now, policy) = (self.now(), shortly());
        let mut unkeyed = self.0.unkeyed.lock().unwrap_or_else(PoisonError::into_inner);
        let (verdict, attempt) =
            unkeyed.arrive(now, OperationId::from_bytes(id), fingerprint, &policy);
        if let Some(attempt) = attempt {
            unkeyed.settle(now, &attempt, AttemptEnd::completed(Outcome::bare(200)));
        }
        verdict != ObservedVerdict::Executed
    }

    /// The time of this process: nobody can set it.
    fn now(&self) -> Timestamp {
        Timestamp::ZERO.plus(self.0.began.elapsed())
    }
}

/// How long requests without a key are remembered.
fn shortly() -> Policy {
    let usual = Policy::default();
    let retention = Retention { window: RETRY_WITHIN, ..usual.retention() };
    Policy::new(usual.lease(), retention, usual.recovery()).unwrap_or(usual)
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("memory", &self.memory()).finish_non_exhaustive()
    }
}
