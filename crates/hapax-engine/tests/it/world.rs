//! A shared memory store behind a wire that tests can hold and cut.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    AnswerMeaning, Attempt, AttemptAnswer, AttemptEnd, Body, Key, Note, Noted, Operation,
    OperationId, Outcome, Policy, Record, Recovery, RequestParts, RetainFrom, Retention, RunMode,
    Salt, Scope, State, Store, StoreError, StoredStep, Tenant, Timestamp,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    memory::{self, StoreSnapshot},
    store::{Filter, Listed, Loaded, Page, Purged, Write, Written},
    time::micros,
};
use hapax_engine::{Admission, BeginRequest, Engine, Options, Permit, operator::Operator};
use tokio::{sync::Semaphore, time::Instant};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const RETENTION: Duration = Duration::from_secs(3600);

/// One store, and as many processes on it as a test likes.
pub(crate) struct World {
    store: memory::Store,
    stepped_micros: Arc<AtomicI64>,
    processes: AtomicU64,
}

impl World {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        let stepped_micros = Arc::new(AtomicI64::new(1_800_000_000_000_000));
        let stepped = Arc::clone(&stepped_micros);
        let clock = move || Timestamp::from_micros(stepped.load(Relaxed)).plus(began.elapsed());
        let store = memory::Store::new(Salt::from_bytes([9; 32]), clock);
        Self { store, stepped_micros, processes: AtomicU64::new(0) }
    }

    /// The same, in a database of which a standby can be promoted.
    pub(crate) fn replicated(synchronous: bool) -> Self {
        let world = Self::new();
        world.store.become_incarnation(Incarnation::new("system 7", 1), synchronous);
        world
    }

    /// Everything that is stored now, as a standby that lags or a backup has it.
    pub(crate) fn snapshot(&self) -> StoreSnapshot {
        self.store.snapshot()
    }

    /// The standby is promoted: whatever came after the snapshot is forgotten.
    pub(crate) fn fail_over(&self, to: &StoreSnapshot, timeline: i64) {
        self.store.restore(to, Incarnation::new("system 7", timeline));
    }

    /// Forgets the records since then, and nothing that would tell.
    pub(crate) fn forget_records(&self, since: &StoreSnapshot) {
        self.store.forget_records(since);
    }

    /// A person at the store.
    pub(crate) fn operator(&self) -> Operator {
        Operator::new(self.store.clone())
    }

    /// Somebody sets the store's clock ahead.
    pub(crate) fn set_ahead(&self, span: Duration) {
        self.stepped_micros.fetch_add(micros(span), Relaxed);
    }

    /// Somebody sets the store's clock back.
    pub(crate) fn set_back(&self, span: Duration) {
        self.stepped_micros.fetch_sub(micros(span), Relaxed);
    }

    /// A process with its own wire to the store.
    pub(crate) fn process(&self) -> (Engine, Wire) {
        self.process_with(Options::default())
    }

    pub(crate) fn process_with(&self, options: Options) -> (Engine, Wire) {
        let wire = Wire(Arc::new(Shared {
            store: self.store.clone(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            cuts: Mutex::default(),
            blind: AtomicBool::new(false),
            takes_no_notes: AtomicBool::new(false),
            commits: AtomicUsize::new(0),
            claims: AtomicUsize::new(0),
        }));
        let seed = Some(self.processes.fetch_add(1, Relaxed));
        let options = Options { seed, ..options };
        (Engine::start(wire.clone(), options), wire)
    }

    pub(crate) async fn record(&self, key: &str) -> Option<Record> {
        self.record_of(&ask(key).operation).await
    }

    pub(crate) async fn record_of(&self, operation: &Operation) -> Option<Record> {
        let loaded = self.store.load(vec![operation.id()]).await.pop()?;
        loaded.unwrap().record.map(|record| *record)
    }

    pub(crate) async fn steps(&self, key: &str) -> Vec<StoredStep> {
        self.store.steps(ask(key).operation.id()).await.unwrap()
    }
}

/// What happens to the next commit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// Refused, nothing written.
    Refused,
    /// Written, answer lost.
    AnswerLost,
    /// Not written, and nobody knows.
    RequestLost,
    /// Held on its way there until everything is let go.
    Held,
    /// The store's own task dies.
    Panic,
    /// Written, and answered in the wrong order.
    Swapped,
}

#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    store: memory::Store,
    gate: Semaphore,
    cuts: Mutex<VecDeque<Cut>>,
    blind: AtomicBool,
    takes_no_notes: AtomicBool,
    commits: AtomicUsize,
    claims: AtomicUsize,
}

impl Wire {
    /// From now on nothing comes through.
    pub(crate) fn hold(&self) {
        self.0.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Everything held comes through.
    pub(crate) fn let_go(&self) {
        self.0.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// These happen to the next commits, one each.
    pub(crate) fn cut(&self, cuts: impl IntoIterator<Item = Cut>) {
        self.0.cuts.lock().unwrap().extend(cuts);
    }

    /// Whether reads fail.
    pub(crate) fn blind(&self, blind: bool) {
        self.0.blind.store(blind, Relaxed);
    }

    /// From now on nobody who notes something hears of it again.
    pub(crate) fn take_no_notes(&self) {
        self.0.takes_no_notes.store(true, Relaxed);
    }

    pub(crate) fn commits(&self) -> usize {
        self.0.commits.load(Relaxed)
    }

    pub(crate) fn claims(&self) -> usize {
        self.0.claims.load(Relaxed)
    }

    async fn pass(&self) {
        self.0.gate.acquire().await.unwrap().forget();
        self.0.gate.add_permits(1);
    }
}

impl Store for Wire {
    fn salt(&self) -> Salt {
        self.0.store.salt()
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        let failed = |error: StoreError| vec![Err(error); batch.len()];
        self.0.commits.fetch_add(1, Relaxed);
        let claims = batch.iter().filter(|write| matches!(write, Write::Claim(_))).count();
        self.0.claims.fetch_add(claims, Relaxed);
        self.pass().await;
        let cut = self.0.cuts.lock().unwrap().pop_front();
        match cut {
            None => self.0.store.commit(batch).await,
            Some(Cut::Refused) => failed(StoreError::unavailable("refused")),
            Some(Cut::AnswerLost) => {
                let lost = failed(StoreError::unconfirmed("answer lost"));
                self.0.store.commit(batch).await;
                lost
            }
            Some(Cut::RequestLost) => failed(StoreError::unconfirmed("request lost")),
            Some(Cut::Held) => {
                self.hold();
                self.pass().await;
                self.0.store.commit(batch).await
            }
            Some(Cut::Panic) => panic!("the store's task dies"),
            Some(Cut::Swapped) => {
                let mut answers = self.0.store.commit(batch).await;
                answers.reverse();
                answers
            }
        }
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        self.pass().await;
        if self.0.blind.load(Relaxed) {
            return ids.iter().map(|_| Err(StoreError::unavailable("blind"))).collect();
        }
        self.0.store.load(ids).await
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.pass().await;
        self.0.store.steps(id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.pass().await;
        self.0.store.overdue(limit).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.pass().await;
        self.0.store.purge(limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.pass().await;
        self.0.store.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.pass().await;
        self.0.store.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.pass().await;
        self.0.store.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.pass().await;
        self.0.store.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.0.store.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.pass().await;
        self.0.store.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.pass().await;
        self.0.store.withdraw(attempt).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.pass().await;
        if self.0.takes_no_notes.load(Relaxed) {
            std::future::pending().await
        }
        self.0.store.note(note).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.pass().await;
        self.0.store.notes(id, limit).await
    }

    async fn watch(&self, _: OperationId) {
        std::future::pending().await
    }
}

pub(crate) fn policy(recovery: Recovery) -> Policy {
    let retention =
        Retention { window: RETENTION, from: RetainFrom::Creation, tombstone: Duration::ZERO };
    Policy::new(LEASE, retention, recovery).unwrap()
}

/// Asks for `key` with the usual request; its owner must not be followed.
pub(crate) fn ask(key: &str) -> BeginRequest<'static> {
    ask_with(key, Recovery::Hold, b"pay 100")
}

pub(crate) fn ask_with(key: &str, recovery: Recovery, body: &[u8]) -> BeginRequest<'static> {
    let operation = Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /payments").unwrap(),
        Key::parse(key).unwrap(),
    );
    let parts = RequestParts { body, ..RequestParts::default() };
    let fingerprint = Salt::from_bytes([9; 32]).tenant_key(operation.tenant()).fingerprint(&parts);
    BeginRequest {
        operation,
        request: fingerprint.into(),
        mode: RunMode::Run { request: None },
        policy: policy(recovery),
    }
}

pub(crate) fn stored(ask: BeginRequest<'static>) -> BeginRequest<'static> {
    BeginRequest { mode: RunMode::Run { request: Some(Bytes::from_static(b"pay 100")) }, ..ask }
}

pub(crate) fn queued(ask: BeginRequest<'static>) -> BeginRequest<'static> {
    BeginRequest { mode: RunMode::Queue { request: Bytes::from_static(b"pay 100") }, ..ask }
}

/// An answer that does not end the operation.
pub(crate) fn answered(meaning: AnswerMeaning) -> AttemptEnd {
    AttemptEnd::Answered(AttemptAnswer { outcome: Outcome::bare(503), meaning })
}

pub(crate) fn paid(text: &str) -> AttemptEnd {
    AttemptEnd::completed(outcome(text))
}

pub(crate) fn outcome(text: &str) -> Outcome {
    Outcome::new(201, Vec::new(), Body::Kept(Bytes::from(text.to_owned()))).unwrap()
}

pub(crate) fn permit(begun: Admission) -> Permit {
    match begun {
        Admission::Execute(permit) | Admission::TakenOver { permit, .. } => permit,
        other => panic!("expected the right to run it, got {other:?}"),
    }
}

/// Runs an operation to its end.
pub(crate) async fn pay(engine: &Engine, ask: &BeginRequest<'_>, text: &str) {
    permit(engine.begin(ask).await.unwrap()).settle(paid(text)).await.unwrap();
}

pub(crate) fn replayed(begun: &Admission) -> Outcome {
    match begun {
        Admission::Replay(record) => match &record.state {
            State::Completed { outcome } | State::Failed { outcome } => outcome.clone(),
            other => panic!("a replay comes from a finished record, not {other:?}"),
        },
        other => panic!("expected a replay, got {other:?}"),
    }
}

/// Lets everything that can happen now happen, without time passing.
pub(crate) async fn settle_down() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}
