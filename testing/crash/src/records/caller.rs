//! Callers: many at once, each asking for every operation until it has heard its end.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::{DynStore, Scope, TenantKey};
use hapax_engine::{Admission, BeginRequest, Engine, Finisher, Options};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    args::RecordVictimArgs,
    fleeting,
    hand::{Hand, Heard},
    journal::JournalLine,
    work::Work,
};
use crate::{error::CrashError, place::Doom, watched::Watched};

const PATIENCE: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(2);
const SWEEP_EVERY: Duration = Duration::from_millis(60);
const PURGE_EVERY: Duration = Duration::from_millis(40);
/// How far apart two callers may be in the order of their questions.
const SCATTER: usize = 14;

/// The callers of one victim. Clones share everything.
pub(crate) struct Crew {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    hand: Arc<Hand>,
    keys: TenantKey,
    scope: Scope,
    args: RecordVictimArgs,
    unsettled: Mutex<BTreeSet<Work>>,
}

impl Crew {
    /// Starts an engine on the store. Nobody asks it anything yet.
    pub(crate) fn new(
        store: DynStore,
        args: &RecordVictimArgs,
        doom: Doom,
    ) -> Result<Self, CrashError> {
        let scope = Scope::parse(&args.scope).map_err(CrashError::name)?;
        let hand = Arc::new(Hand::new(args, doom.clone())?);
        let finisher = args.finish.then(|| {
            let hand = Arc::clone(&hand);
            let finish = move |permit, recovery| Arc::clone(&hand).finish(permit, recovery);
            Finisher::new(Work::policy_of, finish)
        });
        let default = Options::default();
        let options = Options {
            // Half of all victims ask the store for every replay.
            cache_bytes_max: if args.seed.is_multiple_of(2) { 0 } else { default.cache_bytes_max },
            sweep_every: SWEEP_EVERY,
            purge_every: PURGE_EVERY,
            finisher,
            ..default
        };
        let keys = store.salt().tenant_key(&Work::tenant().map_err(CrashError::name)?);
        let engine = Engine::start(Watched::new(store, doom), options);
        let unsettled = Mutex::new((0..args.keys).map(Work::new).collect());
        let args = args.clone();
        Ok(Self { shared: Arc::new(Shared { engine, hand, keys, scope, args, unsettled }) })
    }

    /// Asks for everything at once.
    pub(crate) async fn work(self, limit: Duration) -> Result<(), CrashError> {
        let (engine, keys) = (self.shared.engine.clone(), self.shared.keys.clone());
        let fleeting = tokio::spawn(fleeting::run(engine, keys));
        let mut callers = JoinSet::new();
        for caller in 0..self.shared.args.callers {
            callers.spawn(Arc::clone(&self.shared).call(caller));
        }
        let all = async {
            while let Some(called) = callers.join_next().await {
                called.map_err(CrashError::refused("go on"))??;
            }
            Ok(())
        };
        let all = timeout(limit, all).await;
        fleeting.abort();
        match all {
            Ok(worked) => worked,
            Err(_) if self.shared.args.linger => Ok(()),
            Err(_) => {
                let unsettled = self.shared.unsettled();
                Err(CrashError::Unsettled { keys: unsettled.iter().map(Work::to_string).collect() })
            }
        }
    }
}

impl Shared {
    async fn call(self: Arc<Self>, caller: u64) -> Result<(), CrashError> {
        let mut questions = self.questions(caller);
        while let Some(work) = questions.pop_front() {
            match self.ask(work).await? {
                Heard::Later => questions.push_back(work),
                Heard::TheEnd => {
                    self.unsettled().remove(&work);
                    if !self.args.linger {
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
        let mut dice = fastrand::Rng::with_seed(self.args.seed ^ caller);
        let mut questions: Vec<_> = (0..self.args.keys).rev().map(Work::new).collect();
        for at in 1..questions.len() {
            questions.swap(at, at - dice.usize(..=SCATTER.min(at)));
        }
        questions.into()
    }

    async fn ask(&self, work: Work) -> Result<Heard, CrashError> {
        let ask = BeginRequest {
            operation: work.operation(&self.scope).map_err(CrashError::name)?,
            request: work.fingerprint(&self.keys).into(),
            mode: work.mode(),
            policy: work.policy(),
        };
        let hand = &self.hand;
        match self.engine.begin_waiting(&ask, PATIENCE).await {
            Ok(Admission::Execute(permit)) => hand.perform(work, permit, None).await,
            Ok(Admission::TakenOver { permit, recovery }) => {
                hand.perform(work, permit, Some(recovery)).await
            }
            Ok(Admission::Replay(record)) => hand.tell(work, &record),
            Ok(Admission::InDoubt { .. }) => hand.doubt(work),
            Ok(Admission::Busy { .. } | Admission::Queued(_)) | Err(_) => Ok(Heard::Later),
            Ok(Admission::Mismatch(_)) => self.absurd(work, "mismatch"),
            Ok(Admission::Gone { .. }) => self.absurd(work, "gone"),
        }
    }

    fn absurd(&self, work: Work, what: &str) -> Result<Heard, CrashError> {
        self.hand.note(&JournalLine::Absurd { work, what: what.to_owned() })?;
        Ok(Heard::TheEnd)
    }

    fn unsettled(&self) -> std::sync::MutexGuard<'_, BTreeSet<Work>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
