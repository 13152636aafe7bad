//! The right to run an operation, and the duty to say how that ended.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use hapax_core::{
    Attempt, AttemptEnd, Policy, Record, StateTag, StoreError, Timestamp, apply, give_back,
    limits::NOTED_PROBES,
    settle,
    store::{By, Entry, Over, Settle, Settlement, Write, Written},
};
use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use crate::{
    clock::StoreClock,
    detached_task::Detached,
    engine::{Inner, Shared},
    error::SettleError,
    handover::{ReleaseRule, STEPS_PAUSE, is_left_not_released, leave, left_for},
    history::GivenBackBy,
    in_flight::InFlightGuard,
    next_attempt::{Again, again, queue_again},
    steps::Steps,
};

/// The right to run an operation once, now. Its lease is renewed while it lives.
///
/// Dropped without [`Permit::settle`], as by a panic, it is settled as interrupted.
///
/// ```
/// use hapax_core::{AttemptEnd, Outcome};
/// use hapax_engine::{Admission, Settled};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # use hapax_core::{Key, Operation, Scope, Tenant};
/// # let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// # let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// # let request = hapax_core::RequestParts { body: b"100", ..Default::default() }.into();
/// # let mode = hapax_core::RunMode::Run { request: None };
/// # let policy = hapax_core::Policy::default();
/// # let ask = hapax_engine::BeginRequest { operation, request, mode, policy };
/// # let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
/// let Admission::Execute(permit) = engine.begin(&ask).await? else { return Ok(()) };
/// // Downstream hears the key, and the number of the attempt.
/// assert_eq!(permit.attempt().fence.get(), 1);
/// let settled = permit.settle(AttemptEnd::completed(Outcome::bare(201))).await?;
/// assert!(matches!(settled, Settled::Done(_)));
/// # Ok(())
/// # }
/// ```
pub struct Permit {
    held: Option<HeldPermit>,
    record: Arc<Record>,
    over: Over,
    /// When nothing that an owner before it sent can still be at work; `None` if nothing was sent.
    quiet_at: Option<Instant>,
    policy: Policy,
    steps: OnceLock<Steps>,
    probes: NotedProbes,
}

/// What was noted of the answers to probes.
#[derive(Debug, Clone, Copy, Default)]
struct NotedProbes {
    last: Option<&'static str>,
    noted: u8,
}

pub(crate) struct HeldPermit {
    pub(crate) shared: Arc<Shared>,
    pub(crate) seat: InFlightGuard,
}

/// How the end of an attempt was taken.
///
/// ```
/// use hapax_engine::Settled;
///
/// fn told(settled: &Settled) -> &'static str {
///     match settled {
///         Settled::Done(_) => "stored",
///         Settled::Superseded(Some(_)) => "somebody else finished it: tell their result",
///         Settled::Superseded(None) => "nothing is stored any more",
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub enum Settled {
    /// As told: this is what is stored now.
    Done(Arc<Record>),
    /// Not at all: somebody else had taken over. This is what is stored, and what the client
    /// should hear about.
    Superseded(Option<Arc<Record>>),
}

/// What a permit was given over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Followed {
    pub(crate) over: Over,
    /// From when on nothing that was sent before can still be at work, by the store's clock.
    pub(crate) quiet_from: Timestamp,
    /// For how long the owner before might send, from when it was last given the right to.
    pub(crate) lease: Duration,
}

impl Followed {
    /// Nobody who had begun.
    pub(crate) fn nobody(over: Over) -> Self {
        Self { over, quiet_from: Timestamp::ZERO, lease: Duration::ZERO }
    }

    /// The owner of this record.
    pub(crate) fn owner(over: Over, quiet_from: Timestamp, of: Option<&Record>) -> Self {
        let lease = of.map_or(Duration::ZERO, |record| record.until().after(record.changed_at));
        Self { over, quiet_from, lease }
    }
}

impl Permit {
    pub(crate) fn new(
        shared: Arc<Shared>,
        seat: InFlightGuard,
        record: Arc<Record>,
        followed: Followed,
        policy: Policy,
    ) -> Self {
        seat.run(Arc::clone(&record), policy.lease());
        shared.inner.renewer.expect(policy.lease());
        let over = followed.over;
        if let Over::Abandoned(from) = over {
            shared.inner.history.took_over(&record, from);
        }
        let quiet_at = over
            .follows_an_owner()
            .then(|| Instant::now() + shared.inner.quiet_in(&record, followed, &policy));
        let held = Some(HeldPermit { shared, seat });
        // What may be done about it was said when its life began, whatever the policy says now.
        let policy = policy.recovering(record.recovery);
        let (steps, probes) = (OnceLock::new(), NotedProbes::default());
        Self { held, record, over, quiet_at, policy, steps, probes }
    }

    /// What was stored when the right was given.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What the owner shows with every write; the fence goes downstream with the key.
    pub fn attempt(&self) -> Attempt {
        Attempt {
            id: self.record.operation.id(),
            fence: self.record.fence,
            owner: self.record.owner,
        }
    }

    /// What logs call the tenant, who is never named there.
    pub fn pseudonym(&self) -> String {
        let inner = self.held.as_ref().map(|held| &held.shared.inner);
        inner.map(|inner| inner.pseudonym(self.record.operation.tenant())).unwrap_or_default()
    }

    /// Whether an earlier owner may have had the effect: it had begun, and its fate is unknown.
    pub fn follows_an_owner(&self) -> bool {
        self.over.follows_an_owner()
    }

    /// How long what an earlier owner sent may still be at work; zero once nothing can be.
    ///
    /// "It did not happen" may be believed, and the operation sent again under
    /// [`Recovery::Probe`](hapax_core::Recovery::Probe), only by whoever asked after that.
    pub fn quiet_in(&self) -> Duration {
        self.quiet_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    /// How the operation is treated.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Takes the next fence, for sending the operation once more: every sending has its own.
    ///
    /// `false` if the right was lost, or if nobody can tell whether it was: then nothing may be sent.
    pub async fn next_attempt(&mut self) -> bool {
        let Some(held) = &self.held else { return false };
        let (entry, asked_at) =
            (Entry::Run { lease: self.policy.lease(), request: None }, Instant::now());
        match again(held, &self.record, &self.policy, entry).await {
            Ok(Again::Claimed { record, over }) => {
                held.shared.inner.history.sent_again(&record);
                held.seat.run_again(Arc::clone(&record), self.policy.lease(), asked_at);
                (self.record, self.over) = (record, over);
                true
            }
            Ok(Again::Superseded(_)) | Err(_) => false,
        }
    }

    /// Notes what was said when it was asked what became of the operation, for whoever looks at it later.
    ///
    /// Best effort, and bounded: what was said before, and more than a few answers, is left out.
    pub fn note_probe(&mut self, said: &'static str) {
        let Some(held) = &self.held else { return };
        if self.probes.last != Some(said) && self.probes.noted < NOTED_PROBES {
            held.shared.inner.history.asked(&self.record, said);
            self.probes = NotedProbes { last: Some(said), noted: self.probes.noted + 1 };
        }
    }

    /// Puts an operation that had no effect back into the queue, for a worker to pick up after the
    /// pause. Its request must be kept, and nothing that was sent may have had an effect.
    pub async fn queue_again(mut self, pause: Duration) -> Result<Settled, SettleError> {
        #[expect(clippy::expect_used, reason = "queueing consumes the permit")]
        let held = self.held.take().expect("a permit is queued once");
        let (record, policy) = (Arc::clone(&self.record), self.policy);
        Detached::new(queue_again(held, record, policy, pause), drop).await
    }

    /// The steps of this attempt, for an operation of several effects.
    ///
    /// An operation whose steps have begun is not released by [`Permit::settle`], whatever its answer
    /// means: it is left for [`STEPS_PAUSE`], and goes on in the same life.
    pub fn steps(&self) -> Steps {
        #[expect(clippy::expect_used, reason = "settling consumes the permit")]
        let held = self.held.as_ref().expect("a permit that can be asked is not settled");
        let make = || {
            let (inner, flight) = (&held.shared.inner, held.seat.flight());
            let (life, follows) = (self.record.created_at, self.follows_an_owner());
            Steps::new(inner, flight, self.attempt(), life, follows)
        };
        self.steps.get_or_init(make).clone()
    }

    /// Whether it waited in the queue until now: it was accepted, and nobody waits for its answer.
    pub fn was_queued(&self) -> bool {
        matches!(self.over, Over::Abandoned(stamp) if stamp.tag == StateTag::Pending)
    }

    /// Whether its retention was over before it was finished.
    pub fn is_past_retention(&self) -> bool {
        let clock = self.held.as_ref().map(|held| &held.shared.inner.clock);
        let now = clock.and_then(StoreClock::now_for_retention);
        now.is_some_and(|now| self.record.expires_at <= now)
    }

    /// How long the lease lasts, as far as is known here; zero if it may be over.
    ///
    /// To be asked right before an effect that cannot be taken back.
    pub fn lease_left(&self) -> Duration {
        let Some(held) = &self.held else { return Duration::ZERO };
        held.seat.flight().lease_left(held.shared.inner.clock.now())
    }

    /// Says how the attempt ended. When this returns, it is stored.
    ///
    /// Dropping the returned future does not stop it: what happened is recorded all the same.
    pub async fn settle(mut self, ended: AttemptEnd) -> Result<Settled, SettleError> {
        let is_answer = matches!(ended, AttemptEnd::Answered(_));
        let end = self.end(ended);
        let begun = self.steps.get().is_some_and(Steps::may_have_begun);
        let release = match end.to {
            Settlement::Released | Settlement::Declined if begun => ReleaseRule::Never,
            // A server error in mid-way: its steps say how far it came, so it goes on from there.
            Settlement::InDoubt(_) if begun && is_answer => ReleaseRule::Never,
            Settlement::Released | Settlement::Declined if self.follows_an_owner() => {
                ReleaseRule::WithoutSteps
            }
            Settlement::InDoubt(_) if is_answer && self.follows_an_owner() => {
                ReleaseRule::WithoutSteps
            }
            Settlement::Released
            | Settlement::Declined
            | Settlement::Completed(_)
            | Settlement::Failed(_)
            | Settlement::InDoubt(_) => ReleaseRule::AsTold,
        };
        self.conclude(end, release).await
    }

    /// Stops here, and leaves the operation to whoever comes after the pause: the next arrival, or
    /// the engine's finisher. The life goes on, and with it what its steps have come to.
    ///
    /// Releasing would begin a new life, which knows nothing of the steps that are finished.
    pub async fn leave(mut self, pause: Duration) -> Result<Settled, SettleError> {
        let last = left_for(&self.attempt(), pause);
        #[expect(clippy::expect_used, reason = "leaving consumes the permit")]
        let held = self.held.take().expect("a permit is left once");
        Detached::new(leave(held, Arc::clone(&self.record), last), drop).await
    }

    /// Gives the right back: nothing was begun, and the next arrival takes its place.
    pub async fn give_back(mut self) -> Result<Settled, SettleError> {
        if is_left_not_released(self.over, self.record.recovery) {
            return self.leave(Duration::ZERO).await;
        }
        let end = give_back(&self.attempt(), self.over, self.record.recovery, &self.policy);
        self.conclude(end, ReleaseRule::AsTold).await
    }

    fn end(&self, ended: AttemptEnd) -> Settle {
        let ended = if self.over.follows_an_owner() {
            ended.following(self.record.recovery)
        } else {
            ended
        };
        let mut end = settle(&self.attempt(), ended, &self.policy);
        let fell_back = self.held.as_ref().map(|held| held.shared.inner.clock.fell_back_by());
        if let Some(behind) = fell_back.filter(|behind| !behind.is_zero()) {
            // Written by a clock that fell back, it would expire as soon as the clock is right again.
            end.keep = end.keep.max(self.policy.retention().window) + behind;
        }
        end
    }

    async fn conclude(
        &mut self,
        end: Settle,
        release: ReleaseRule,
    ) -> Result<Settled, SettleError> {
        #[expect(clippy::expect_used, reason = "settling consumes the permit")]
        let held = self.held.take().expect("a permit is settled once");
        let (begun, last) = (Arc::clone(&self.record), left_for(&self.attempt(), STEPS_PAUSE));
        let ending = async move {
            if release.is_allowed(&held.shared.inner, end.id).await {
                conclude(held, begun, end).await
            } else {
                leave(held, begun, last).await
            }
        };
        Detached::new(ending, drop).await
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (Some(held), Ok(runtime)) = (self.held.take(), Handle::try_current()) else { return };
        let end = self.end(AttemptEnd::Interrupted);
        drop(runtime.spawn(conclude(held, Arc::clone(&self.record), end)));
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}

async fn conclude(
    held: HeldPermit,
    begun: Arc<Record>,
    end: Settle,
) -> Result<Settled, SettleError> {
    let inner = &held.shared.inner;
    let settled = write_end(inner, &end).await.map(|ending| match ending {
        EndWriteResult::Written { now } => Settled::Done(ended(now, &begun, &end)),
        EndWriteResult::Found(record) => Settled::Done(record),
        EndWriteResult::Superseded(record) => Settled::Superseded(record),
    });
    let stored = match &settled {
        Ok(Settled::Done(record)) => {
            inner.counters.settles.one();
            inner.acknowledged.add(record);
            inner.ended(record);
            Some(Arc::clone(record))
        }
        Ok(Settled::Superseded(record)) => {
            inner.counters.settles_lost.one();
            tracing::warn!(operation = %end.id, fence = begun.fence.get(), "a stale owner settled too late");
            record.clone()
        }
        Err(error) => {
            inner.counters.settles_not_recorded.one();
            tracing::error!(operation = %end.id, fence = begun.fence.get(), %error, "an end was not recorded");
            None
        }
    };
    if let Some(record) = &stored {
        inner.cache.offer(record);
    }
    held.seat.land(stored);
    settled
}

/// How the writing of an end came out.
pub(crate) enum EndWriteResult {
    /// The store wrote it at this instant.
    Written { now: Timestamp },
    /// Reading again showed it written.
    Found(Arc<Record>),
    /// The record is somebody else's, finished otherwise, or gone.
    Superseded(Option<Arc<Record>>),
}

/// Writes the end of an attempt, reading again whenever it is not clear what was written.
pub(crate) async fn write_end(
    inner: &Arc<Inner>,
    end: &Settle,
) -> Result<EndWriteResult, SettleError> {
    let give_up_at = Instant::now() + inner.options.settle_patience;
    let mut pause = PAUSE_MIN;
    loop {
        let failed = match inner.commit(Write::Settle(end.clone())).await {
            Ok(Written::Done { now }) => return Ok(EndWriteResult::Written { now }),
            Ok(Written::Refused { .. }) if matches!(end.by, By::Onlooker(_)) => {
                return Ok(EndWriteResult::Superseded(None));
            }
            Err(error @ (StoreError::Damaged(_) | StoreError::TooNew(_))) => {
                return Err(SettleError::Unreadable(error));
            }
            Err(error @ StoreError::Unavailable(_)) => error,
            lost_or_unconfirmed => {
                if lost_or_unconfirmed.is_err() {
                    inner.counters.unconfirmed.one();
                }
                match read_end(inner, end).await {
                    Ok(Some(ending)) => return Ok(ending),
                    Ok(None) => StoreError::unconfirmed("the record is still as it was"),
                    Err(error) => error,
                }
            }
        };
        if Instant::now() >= give_up_at {
            return Err(SettleError::NotRecorded(failed));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(5);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Settles a record as an onlooker who saw it like this; `false` if it had changed meanwhile.
pub(crate) async fn settle_as_seen(
    inner: &Arc<Inner>,
    record: &Record,
    to: Settlement,
) -> Result<bool, StoreError> {
    let by = By::Onlooker(record.stamp());
    let end = Settle { id: record.operation.id(), by, to, keep: Duration::ZERO };
    match write_end(inner, &end).await {
        Ok(EndWriteResult::Written { .. } | EndWriteResult::Found(_)) => {
            match end.to {
                Settlement::InDoubt(doubt) => inner.left_in_doubt(record, doubt),
                Settlement::Released
                | Settlement::Declined
                | Settlement::Completed(_)
                | Settlement::Failed(_) => {
                    let scope = record.operation.scope().as_str();
                    let tenant = inner.pseudonym(record.operation.tenant());
                    let (fence, to) = (record.fence.get(), end.to.tag().as_str());
                    let why = "settled for an owner that vanished";
                    tracing::warn!(operation = %end.id, scope, tenant, fence, to, "{why}");
                    if matches!(end.to, Settlement::Released) {
                        inner.history.gave_back(record, GivenBackBy::Sweeper);
                    }
                }
            }
            Ok(true)
        }
        Ok(EndWriteResult::Superseded(_)) => Ok(false),
        Err(SettleError::NotRecorded(error) | SettleError::Unreadable(error)) => Err(error),
    }
}

/// Reads what became of an end that was not confirmed; `None` if it can still be written.
async fn read_end(inner: &Inner, end: &Settle) -> Result<Option<EndWriteResult>, StoreError> {
    let (fence, owner) = match end.by {
        By::Owner { fence, owner } => (fence, owner),
        By::Onlooker(stamp) => (stamp.fence, stamp.owner),
    };
    let found = inner.load(end.id).await?.record.map(|record| Arc::new(*record));
    let Some(record) = found else { return Ok(Some(EndWriteResult::Superseded(None))) };
    let same_attempt = record.fence == fence && record.owner == owner;
    Ok(if same_attempt && record.tag() == end.to.tag() {
        Some(EndWriteResult::Found(record))
    } else if same_attempt && matches!(end.by, By::Owner { .. }) && !record.tag().is_terminal() {
        None
    } else {
        Some(EndWriteResult::Superseded(Some(record)))
    })
}

/// The record as the store has just written it.
fn ended(now: Timestamp, begun: &Record, end: &Settle) -> Arc<Record> {
    #[expect(clippy::expect_used, reason = "a store that settles more breaks the contract")]
    let written = apply::settle(now, Some(begun), end).expect("a store settles only what it may");
    Arc::new(written)
}
