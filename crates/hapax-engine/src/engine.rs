//! The engine: a store, what it is asked, and the tasks that look after it.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{
    Attempt, Doubt, DynStore, OperationId, Owner, Policy, Record, Recovery, Salt, State, StateTag,
    StoreError, Tenant, Timestamp, apply, give_back,
    incarnation::Quarantine,
    limits::{CLOCK_LEASES_STAY, CLOCK_STEP},
    store::{Claim, Loaded},
};
use tokio::{
    sync::{Semaphore, watch},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    acknowledged::Acknowledged,
    batcher::{Batcher, Gate, NotQueued},
    begin::{self, Admission, BeginRequest},
    cache::{self, Cache},
    clock::StoreClock,
    error::BeginError,
    handover::{is_left_not_released, left_for, write_leave},
    history::{self, GivenBackBy, NoteQueue},
    in_flight::InFlightRegistry,
    incarnation::{self, PastWatch},
    options::Options,
    permit::{Followed, write_end},
    purger,
    readiness::{self, Readiness},
    renewer::Renewer,
    stats::{EngineCounters, Spreads, Stats},
    sweeper,
    tenant_keys::TenantKeys,
    watcher::RecordWatchers,
};

/// Makes operations happen once, on top of a store. Clones share everything.
///
/// Its tasks live on the tokio runtime it was started on, and end when the last clone and the last
/// [`Permit`](crate::Permit) are gone.
///
/// ```
/// use hapax_core::{
///     AttemptEnd, Key, Operation, Outcome, Policy, RequestParts, RunMode, Scope, Tenant,
/// };
/// use hapax_engine::{Admission, BeginRequest, Engine, Options};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// let engine = Engine::start(store, Options::default());
/// let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// let request = RequestParts { body: b"100", ..RequestParts::default() }.into();
/// let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
/// let ask = BeginRequest { operation, request, mode, policy };
///
/// if let Admission::Execute(permit) = engine.begin(&ask).await? {
///     permit.settle(AttemptEnd::completed(Outcome::value("paid".into())?)).await?;
/// }
/// assert!(matches!(engine.begin(&ask).await?, Admission::Replay(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts the engine's tasks. Must be called on a tokio runtime.
    pub fn start(store: impl Into<DynStore>, options: Options) -> Self {
        let store = store.into();
        let (stop, stopped) = watch::channel(false);
        let seeded = options.seed.map(fastrand::Rng::with_seed);
        let process = seeded.clone().map_or_else(Owner::draw, |mut seeded| {
            // From the end of what else is drawn, which stays as it was.
            Owner::from_random(!seeded.u64(..))
        });
        let (history, told) = NoteQueue::new();
        let inner = Arc::new(Inner {
            history,
            acknowledged: Acknowledged::new(options.acknowledged_bytes_max),
            past: PastWatch::new(process.0),
            batcher: Batcher::new(store.lanes(), options.queued_claims_max),
            flights: Arc::default(),
            watchers: RecordWatchers::new(options.waiters_max),
            cache: Cache::new(options.cache_bytes_max),
            clock: StoreClock::default(),
            tenant_keys: Arc::new(TenantKeys::new(store.salt())),
            renewer: Renewer::new(),
            counters: EngineCounters::default(),
            seeded: seeded.map(Mutex::new),
            waiting_for_pick_up: Arc::new(Semaphore::new(WAITING_FOR_PICK_UP_MAX)),
            began: Instant::now(),
            readiness: Readiness::default(),
            stopping: AtomicBool::new(false),
            store,
            options,
        });
        let shared = Arc::new(Shared { inner: Arc::clone(&inner), stop });
        if let Some(interval) = inner.options.cache_cleared_every {
            tokio::spawn(cache::clear_every(interval, Arc::clone(&inner), stopped.clone()));
        }
        tokio::spawn(Renewer::run(Arc::clone(&inner), stopped.clone()));
        tokio::spawn(incarnation::run(Arc::clone(&inner), stopped.clone()));
        tokio::spawn(sweeper::run(Arc::downgrade(&shared), stopped.clone()));
        tokio::spawn(history::run(Arc::clone(&inner), told, stopped.clone()));
        tokio::spawn(purger::run(inner, stopped));
        Self { shared }
    }

    /// Brings an operation, and learns what to do with it.
    ///
    /// Dropping the returned future is safe: a right won meanwhile is given back.
    pub async fn begin(&self, ask: &BeginRequest<'_>) -> Result<Admission, BeginError> {
        begin::begin(&self.shared, ask).await
    }

    /// Like [`Engine::begin`], but waits up to `patience` while somebody else is at work.
    pub async fn begin_waiting(
        &self,
        ask: &BeginRequest<'_>,
        patience: Duration,
    ) -> Result<Admission, BeginError> {
        let give_up_at = Instant::now() + patience;
        loop {
            let begun = self.begin(ask).await?;
            let Admission::Busy { .. } = begun else { return Ok(begun) };
            let inner = &self.shared.inner;
            let Some(change) = inner.watchers.change(inner, ask.operation.id()) else {
                return Ok(begun);
            };
            tokio::select! {
                biased;
                () = change => {}
                () = tokio::time::sleep_until(give_up_at) => return Ok(begun),
            }
        }
    }

    /// What is stored about an operation, and the store's clock as far as it is trusted.
    pub async fn load(&self, id: OperationId) -> Result<Loaded, StoreError> {
        self.shared.inner.load(id).await
    }

    /// Whether the store takes writes: a small one is made as a claim is made, and taken back.
    ///
    /// Asked more often than every [`BELIEVED_FOR`](readiness::BELIEVED_FOR), it answers as before.
    pub async fn takes_writes(&self) -> Result<(), StoreError> {
        let inner = &self.shared.inner;
        inner.know_incarnation().await?;
        if inner.batcher.gate() == Gate::Closed {
            return Err(NotQueued::Closed.into());
        }
        readiness::takes_writes(&self.shared.inner).await
    }

    /// Why keys that are not in the store are not run; `None` if they are. Found records are answered
    /// from as ever.
    pub fn quarantine(&self) -> Option<Quarantine> {
        self.shared.inner.past.quarantine()
    }

    /// The salt of the store, which keys all fingerprints.
    pub fn salt(&self) -> Salt {
        self.shared.inner.store.salt()
    }

    /// The keys of all fingerprints, tenant by tenant: for front ends that make fingerprints themselves.
    pub fn tenant_keys(&self) -> &Arc<TenantKeys> {
        &self.shared.inner.tenant_keys
    }

    /// The store itself, for listing and for tools.
    pub fn store(&self) -> &DynStore {
        &self.shared.inner.store
    }

    /// The store's clock, as far as it is known here.
    pub fn store_now(&self) -> Option<Timestamp> {
        self.shared.inner.clock.now()
    }

    /// What the engine has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.inner.counters.snapshot()
    }

    /// How what it has done so far is spread.
    pub fn spreads(&self) -> Spreads {
        self.shared.inner.counters.spread.snapshot()
    }

    /// Begins nothing new, and waits up to `patience` for what runs here to settle. Says whether
    /// everything did; what did not is left to its lease.
    pub async fn shut_down(&self, patience: Duration) -> bool {
        let inner = &self.shared.inner;
        inner.stopping.store(true, Relaxed);
        let give_up_at = Instant::now() + patience;
        let all_landed = timeout(patience, inner.flights.all_landed()).await.is_ok();
        if all_landed && let Ok(Err(error)) = timeout_at(give_up_at, inner.sign_off()).await {
            tracing::debug!(%error, "this process stays on the list of those at work");
        }
        all_landed
    }
}

/// What handles and permits hold; the tasks stop when the last of them goes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) inner: Arc<Inner>,
    stop: watch::Sender<bool>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

impl Shared {
    /// Finishes a queued operation here and now, if there is somebody who can.
    pub(crate) fn pick_up(self: &Arc<Self>, record: Arc<Record>) {
        if self.inner.options.finisher.is_some() {
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                sweeper::take_over(&shared, &record, Recovery::Resend).await;
            });
        }
    }

    /// Picks up what waits in the queue until its pause is over. A hint: should this process end, or
    /// have too many of these, the sweeper of any process finds it.
    pub(crate) fn pick_up_later(self: &Arc<Self>, id: OperationId, pause: Duration) {
        let Ok(place) = Arc::clone(&self.inner.waiting_for_pick_up).try_acquire_owned() else {
            return;
        };
        let (weak, mut stopped) = (Arc::downgrade(self), self.stop.subscribe());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(pause) => {}
            }
            drop(place);
            let Some(shared) = weak.upgrade() else { return };
            let Ok(Loaded { now, record: Some(record) }) = shared.inner.load(id).await else {
                return;
            };
            if record.tag() == StateTag::Pending && apply::is_overdue(now, &record) {
                sweeper::take_over(&shared, &record, Recovery::Resend).await;
            }
        });
    }
}

/// Most queued operations that this process remembers to pick up when their pause is over.
const WAITING_FOR_PICK_UP_MAX: usize = 4096;

/// What the tasks hold.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: DynStore,
    pub(crate) options: Options,
    pub(crate) acknowledged: Acknowledged,
    pub(crate) past: PastWatch,
    pub(crate) batcher: Batcher,
    pub(crate) flights: Arc<InFlightRegistry>,
    pub(crate) watchers: RecordWatchers,
    pub(crate) cache: Cache,
    pub(crate) clock: StoreClock,
    pub(crate) tenant_keys: Arc<TenantKeys>,
    pub(crate) renewer: Renewer,
    pub(crate) counters: EngineCounters,
    pub(crate) readiness: Readiness,
    pub(crate) history: NoteQueue,
    /// All chance, where the options say which.
    seeded: Option<Mutex<fastrand::Rng>>,
    waiting_for_pick_up: Arc<Semaphore>,
    pub(crate) began: Instant,
    stopping: AtomicBool,
}

impl Inner {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    pub(crate) fn new_owner(&self) -> Owner {
        self.seeded().map_or_else(Owner::draw, Owner::from_random)
    }

    /// For pauses: two processes may well draw the same.
    pub(crate) fn random(&self) -> u64 {
        self.seeded().unwrap_or_else(|| fastrand::u64(..))
    }

    fn seeded(&self) -> Option<u64> {
        let seeded = self.seeded.as_ref()?;
        Some(seeded.lock().unwrap_or_else(PoisonError::into_inner).u64(..))
    }

    /// How long it is, from a takeover on, until nothing that was sent before can be at work.
    ///
    /// A clock that was set by less than it takes to notice must not make that shorter. Where the
    /// clock does not tell, because the lease was given by one that was ahead or because this process
    /// has not watched it for long, the owner before may only just have been given its lease: it may
    /// send until that is over, and what it sends may be at work for a while.
    pub(crate) fn quiet_in(
        &self,
        taken: &Record,
        Followed { quiet_from, lease, .. }: Followed,
        policy: &Policy,
    ) -> Duration {
        let whole = lease.min(policy.lease()) + policy.works_for();
        let now = self.clock.now_for(taken).unwrap_or(Timestamp::ZERO);
        let by_the_clock = quiet_from.plus(CLOCK_STEP).after(now).min(whole + CLOCK_STEP);
        if self.began.elapsed() < whole + CLOCK_LEASES_STAY {
            by_the_clock.max(whole)
        } else {
            by_the_clock
        }
    }

    /// What is stored, and the instant by which it is judged.
    pub(crate) async fn load(&self, id: OperationId) -> Result<Loaded, StoreError> {
        let missing = || Err(StoreError::unavailable("the store gave no answer"));
        let asked_at = Instant::now();
        let mut loaded = self.store.load(vec![id]).await.pop().unwrap_or_else(missing)?;
        self.clock.heard(loaded.now, asked_at);
        if let Some(record) = &loaded.record {
            self.know_clock().await?;
            loaded.now = self.clock.judges(record, loaded.now);
        }
        Ok(loaded)
    }

    /// Gives back a claim that may have been written after all and that nobody will run.
    pub(crate) fn release_later(self: &Arc<Self>, claim: &Claim, policy: &Policy) {
        let attempt = Attempt { id: claim.operation.id(), fence: claim.fence, owner: claim.owner };
        let (inner, over, recovery) = (Arc::clone(self), claim.over, claim.recovery);
        let policy = *policy;
        tokio::spawn(async move {
            let given_back = if is_left_not_released(over, recovery) {
                write_leave(&inner, &left_for(&attempt, Duration::ZERO)).await.map(|_| ())
            } else {
                write_end(&inner, &give_back(&attempt, over, recovery, &policy)).await.map(|_| ())
            };
            if let Err(error) = given_back {
                tracing::warn!(operation = %attempt.id, %error, "an unused claim is left to its lease");
            }
        });
    }

    /// Counts how an attempt ended, and notes it where that is not the usual.
    pub(crate) fn ended(&self, record: &Record) {
        match &record.state {
            State::Completed { .. } => self.counters.ended_completed.one(),
            State::Failed { .. } => self.counters.ended_failed.one(),
            State::InDoubt { doubt, .. } => self.left_in_doubt(record, *doubt),
            State::Released => {
                self.counters.ended_released.one();
                self.history.gave_back(record, GivenBackBy::Owner);
            }
            State::Pending { .. } | State::Running { .. } | State::Buried => {}
        }
    }

    /// Counts a doubt, and says to whoever reads logs which operation somebody has to look at.
    pub(crate) fn left_in_doubt(&self, record: &Record, doubt: Doubt) {
        self.counters.left_in_doubt.one();
        self.history.left_in_doubt(record, doubt);
        let (operation, fence) = (&record.operation, record.fence.get());
        tracing::warn!(
            operation = %operation.id(),
            scope = operation.scope().as_str(),
            tenant = self.pseudonym(operation.tenant()),
            fence,
            doubt = doubt.as_str(),
            "in doubt: nobody knows whether it happened",
        );
    }

    /// What logs call a tenant.
    pub(crate) fn pseudonym(&self, tenant: &Tenant) -> String {
        self.tenant_keys.get(tenant).pseudonym()
    }

    pub(crate) fn count(&self, begun: &Result<Admission, BeginError>) {
        let counters = &self.counters;
        match begun {
            Ok(Admission::Execute(_) | Admission::Queued(_)) => counters.executions.one(),
            Ok(Admission::TakenOver { .. }) => counters.takeovers.one(),
            Ok(Admission::Replay(_)) => counters.replays.one(),
            Ok(Admission::Busy { .. }) => counters.busy.one(),
            Ok(Admission::InDoubt { .. }) => counters.in_doubt.one(),
            Ok(Admission::Mismatch(_)) => counters.mismatches.one(),
            Ok(Admission::Gone { .. }) => counters.gone.one(),
            Err(_) => counters.undecided.one(),
        }
    }
}
