//! Callers: many at once, each asking for every operation until it has heard its end.

use std::{
    collections::{BTreeSet, VecDeque},
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::{Scope, Store, TenantKey};
use hapax_engine::{Ask, Begun, Engine, Finisher, Options};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    Orders, fleeting,
    hand::{Hand, Heard},
};
use crate::{error::CrashError, journal::Entry, place::Doom, watched::Watched, work::Work};

const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(2);
const SWEEP_EVERY: Duration = Duration::from_millis(60);
const PURGE_EVERY: Duration = Duration::from_millis(40);
/// How far apart two callers may be in the order of their questions.
const SCATTER: usize = 14;

/// The callers of one victim. Clones share everything.
pub(crate) struct Crew<S: Store> {
    shared: Arc<Shared<S>>,
}

struct Shared<S: Store> {
    engine: Engine<Watched<S>>,
    hand: Arc<Hand>,
    keys: TenantKey,
    scope: Scope,
    orders: Orders,
    unsettled: Mutex<BTreeSet<Work>>,
}

impl<S: Store> Crew<S> {
    /// Starts an engine on the store. Nobody asks it anything yet.
    pub(crate) fn new(
        store: S,
        orders: &Orders,
        scope: Scope,
        doom: Doom,
    ) -> Result<Self, CrashError> {
        let hand = Arc::new(Hand::new(orders, doom.clone())?);
        let finisher = orders.finish.then(|| {
            let hand = Arc::clone(&hand);
            let finish = move |permit, recovery| Arc::clone(&hand).finish(permit, recovery);
            Finisher::new(Work::policy_of, finish)
        });
        let default = Options::default();
        let options = Options {
            // Half of all victims ask the store for every replay.
            cache_bytes_max: if orders.seed.is_multiple_of(2) {
                0
            } else {
                default.cache_bytes_max
            },
            sweep_every: SWEEP_EVERY,
            purge_every: PURGE_EVERY,
            finisher,
            ..default
        };
        let keys = store.salt().tenant_key(&Work::tenant().map_err(CrashError::name)?);
        let engine = Engine::start(Watched::new(store, doom), options);
        let unsettled = Mutex::new((0..orders.keys).map(Work::new).collect());
        let orders = orders.clone();
        Ok(Self { shared: Arc::new(Shared { engine, hand, keys, scope, orders, unsettled }) })
    }

    /// Asks for everything at once.
    pub(crate) async fn work(self, limit: Duration) -> Result<(), CrashError> {
        let (engine, keys) = (self.shared.engine.clone(), self.shared.keys.clone());
        let fleeting = tokio::spawn(fleeting::run(engine, keys));
        let mut callers = JoinSet::new();
        for caller in 0..self.shared.orders.callers {
            callers.spawn(Arc::clone(&self.shared).call(caller));
        }
        let all = async {
            while let Some(called) = callers.join_next().await {
                called.map_err(|panic| CrashError::io("go on")(io::Error::other(panic)))??;
            }
            Ok(())
        };
        let all = timeout(limit, all).await;
        fleeting.abort();
        match all {
            Ok(worked) => worked,
            Err(_) if self.shared.orders.linger => Ok(()),
            Err(_) => {
                let unsettled = self.shared.unsettled();
                Err(CrashError::Unsettled { keys: unsettled.iter().map(Work::to_string).collect() })
            }
        }
    }
}

impl<S: Store> Shared<S> {
    async fn call(self: Arc<Self>, caller: u64) -> Result<(), CrashError> {
        let mut questions = self.questions(caller);
        while let Some(work) = questions.pop_front() {
            match self.ask(work).await? {
                Heard::Later => questions.push_back(work),
                Heard::TheEnd => {
                    self.unsettled().remove(&work);
                    if !self.orders.linger {
                        continue;
                    }
                    questions.push_back(work);
                }
            }
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// The newest operations first, in nearly the same order for every caller, so that they meet.
    fn questions(&self, caller: u64) -> VecDeque<Work> {
        let mut dice = fastrand::Rng::with_seed(self.orders.seed ^ caller);
        let mut questions: Vec<_> = (0..self.orders.keys).rev().map(Work::new).collect();
        for at in 1..questions.len() {
            questions.swap(at, at - dice.usize(..=SCATTER.min(at)));
        }
        questions.into()
    }

    async fn ask(&self, work: Work) -> Result<Heard, CrashError> {
        let ask = Ask {
            operation: work.operation(&self.scope).map_err(CrashError::name)?,
            fingerprint: work.fingerprint(&self.keys),
            wish: work.wish(),
            policy: work.policy(),
        };
        let hand = &self.hand;
        match self.engine.begin_waiting(&ask, PATIENCE).await {
            Ok(Begun::Execute(permit)) => hand.perform(work, permit, None).await,
            Ok(Begun::TakenOver { permit, recovery }) => {
                hand.perform(work, permit, Some(recovery)).await
            }
            Ok(Begun::Replay(record)) => hand.tell(work, &record),
            Ok(Begun::InDoubt { .. }) => hand.doubt(work),
            Ok(Begun::Busy { .. } | Begun::Queued(_)) | Err(_) => Ok(Heard::Later),
            Ok(Begun::Mismatch(_)) => self.absurd(work, "mismatch"),
            Ok(Begun::Gone { .. }) => self.absurd(work, "gone"),
        }
    }

    fn absurd(&self, work: Work, what: &str) -> Result<Heard, CrashError> {
        self.hand.note(&Entry::Absurd { work, what: what.to_owned() })?;
        Ok(Heard::TheEnd)
    }

    fn unsettled(&self) -> std::sync::MutexGuard<'_, BTreeSet<Work>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
