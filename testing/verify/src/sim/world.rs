//! Processes that die and come back, on one store, in front of one upstream.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{
    Fingerprint, Key, Operation, Policy, Record, Recovery, RequestParts, RetainFrom, Retention,
    RunMode, Salt, Scope, Tenant, Timestamp, memory,
};
use hapax_engine::{BeginRequest, Engine, Finisher, Options, Permit};
use tokio::{
    sync::mpsc,
    task::AbortHandle,
    time::{Instant, sleep},
};

use super::{
    dice::Dice,
    handler,
    plan::SimPlan,
    recorder::Recorder,
    store::{FaultyStore, ProcessLife},
    upstream::SimUpstream,
};

pub(super) const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Everything a run happens in. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SimWorld {
    pub(super) dice: Dice,
    pub(super) recorder: Recorder,
    pub(super) upstream: SimUpstream,
    pub(super) store: memory::Store,
    clock: SimClock,
    processes: Arc<Mutex<Vec<SimProcess>>>,
    deaths: mpsc::UnboundedSender<usize>,
}

/// The store's clock: virtual time, and whatever somebody did to it.
#[derive(Debug, Clone)]
struct SimClock {
    began: Instant,
    stepped: Arc<AtomicI64>,
}

#[derive(Debug)]
pub(super) struct SimProcess {
    pub(super) engine: Engine,
    pub(super) life: ProcessLife,
    handlers: Vec<AbortHandle>,
}

impl SimWorld {
    /// A world with all its processes started.
    pub(super) fn start(dice: Dice) -> Self {
        let recorder = Recorder::new();
        let clock = SimClock { began: Instant::now(), stepped: Arc::default() };
        // Never longer than there are processes: one that died dies again only when it is back.
        let (deaths, died) = mpsc::unbounded_channel();
        let reads = clock.clone();
        let world = Self {
            upstream: SimUpstream::new(dice.clone(), recorder.clone()),
            store: memory::Store::new(SALT, move || reads.now()),
            processes: Arc::default(),
            dice,
            recorder,
            clock,
            deaths,
        };
        for number in 0..world.dice.plan().processes {
            let process = world.boot(number);
            world.lock().push(process);
        }
        tokio::spawn(world.clone().bring_back(died));
        world
    }

    /// Somebody sets the store's clock.
    pub(super) fn step_clock(&self, micros: i64) {
        self.clock.stepped.fetch_add(micros, Relaxed);
    }

    /// A process that accepts connections, if the dice point at one.
    pub(super) fn some_process(&self) -> Option<(usize, Engine, ProcessLife)> {
        let processes = self.lock();
        let number = self.dice.below(processes.len());
        let process = &processes[number];
        (!process.life.is_over()).then(|| (number, process.engine.clone(), process.life.clone()))
    }

    /// Ties a handler to the process it runs in, so that it dies with it.
    pub(super) fn tie(&self, number: usize, life: &ProcessLife, handler: AbortHandle) {
        let mut processes = self.lock();
        let process = &mut processes[number];
        if life.is_over() {
            handler.abort();
        } else {
            process.handlers.retain(|handler| !handler.is_finished());
            process.handlers.push(handler);
        }
    }

    /// Every engine that is up.
    pub(super) fn engines(&self) -> Vec<Engine> {
        self.lock().iter().map(|process| process.engine.clone()).collect()
    }

    /// Ends every process: their finishers hold the world, and the world holds them.
    pub(super) fn end(&self) {
        self.lock().clear();
    }

    /// Asks for a key with one of its requests.
    pub(super) fn ask(&self, key: usize, request: u8) -> BeginRequest<'static> {
        let stored = Bytes::from(vec![request]);
        let plan = self.dice.plan();
        let mode = if plan.queued {
            RunMode::Queue { request: stored }
        } else {
            RunMode::Run { request: plan.finisher.then_some(stored) }
        };
        let operation = operation(key);
        let fingerprint = fingerprint(&operation, request);
        BeginRequest {
            operation,
            request: fingerprint.into(),
            mode,
            policy: policy(plan.recovery, plan),
        }
    }

    fn boot(&self, number: usize) -> SimProcess {
        let plan = self.dice.plan();
        let life = ProcessLife::new(number, self.deaths.clone());
        let finisher = plan.finisher.then(|| {
            let (world, life, plan) = (self.clone(), life.clone(), plan.clone());
            let policy_of = move |record: &Record| policy(record.recovery, &plan);
            Finisher::new(policy_of, move |permit: Permit, _| {
                let (world, life) = (world.clone(), life.clone());
                async move {
                    handler::finish(&world, &life, permit).await;
                }
            })
        });
        let options = Options {
            cache_bytes_max: plan.cache_bytes_max,
            settle_patience: plan.lease * 2,
            sweep_every: plan.lease,
            purge_every: plan.lease * 4,
            clock_stays: plan.clock_stays,
            seed: Some(plan.seed ^ u64::try_from(self.dice.below(usize::MAX)).unwrap_or_default()),
            finisher,
            ..Options::default()
        };
        let store = FaultyStore::new(self.store.clone(), self.dice.clone(), life.clone());
        SimProcess { engine: Engine::start(store, options), life, handlers: Vec::new() }
    }

    /// Buries the dead and, a little later, starts them anew.
    async fn bring_back(self, mut died: mpsc::UnboundedReceiver<usize>) {
        while let Some(number) = died.recv().await {
            let handlers = std::mem::take(&mut self.lock()[number].handlers);
            handlers.iter().for_each(AbortHandle::abort);
            let world = self.clone();
            tokio::spawn(async move {
                sleep(world.dice.up_to(world.dice.plan().lease)).await;
                let process = world.boot(number);
                world.lock()[number] = process;
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SimProcess>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SimClock {
    fn now(&self) -> Timestamp {
        let stepped = self.stepped.load(Relaxed);
        Timestamp::from_micros(EPOCH_MICROS + stepped).plus(self.began.elapsed())
    }
}

const EPOCH_MICROS: i64 = 1_800_000_000_000_000;
const SALT: Salt = Salt::from_bytes([42; 32]);

pub(super) fn operation(key: usize) -> Operation {
    #[expect(clippy::expect_used, reason = "these names are visible ASCII and short")]
    let named = |name: &str| {
        Operation::new(
            Tenant::parse("sim").expect("a tenant"),
            Scope::parse("effect").expect("a scope"),
            Key::parse(name).expect("a key"),
        )
    };
    named(&format!("key-{key}"))
}

/// The number of an operation made by [`operation`].
pub(super) fn key_of(operation: &Operation) -> usize {
    let number = operation.key().as_str().strip_prefix("key-");
    #[expect(clippy::expect_used, reason = "only this module names operations")]
    number.and_then(|number| number.parse().ok()).expect("a numbered key")
}

fn fingerprint(operation: &Operation, request: u8) -> Fingerprint {
    let parts = RequestParts { body: &[request], ..RequestParts::default() };
    SALT.tenant_key(operation.tenant()).fingerprint(&parts)
}

fn policy(recovery: Recovery, plan: &SimPlan) -> Policy {
    let retention =
        Retention { window: RETENTION, from: RetainFrom::Creation, tombstone: Duration::ZERO };
    #[expect(clippy::expect_used, reason = "plans draw leases within the limits")]
    let policy = Policy::new(plan.lease, retention, recovery).expect("a valid policy");
    policy.working_for(plan.works_for())
}
