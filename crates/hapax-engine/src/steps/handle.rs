//! The steps of one attempt, in order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_core::{
    Attempt, Key, Step, StepName, StoreError, StoredStep, Timestamp,
    store::{KeepStep, Write, Written},
};
use tokio::{
    sync::Mutex,
    time::{Instant, sleep},
};

use super::{call::StepCall, error::Stop};
use crate::{
    detached_task::Detached,
    engine::Inner,
    in_flight::InFlightEntry,
    permit::{PAUSE_MAX, PAUSE_MIN},
};

/// The steps of one attempt: each runs once, and is answered from what is kept ever after.
///
/// Made by [`Permit::steps`](crate::Permit::steps). Clones share everything, and steps run one
/// after the other: the n-th step asked for is the n-th step of the operation, in every attempt.
///
/// ```
/// use hapax_core::{AttemptEnd, Outcome};
/// use hapax_engine::Admission;
///
/// # async fn charge(_: hapax_core::Key) -> Result<u32, std::io::Error> { Ok(7) }
/// # async fn mail(_: hapax_core::Key, _: u32) -> Result<(), std::io::Error> { Ok(()) }
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
/// let steps = permit.steps();
/// let receipt = steps.step("charge", charge).await?;
/// steps.step("mail", |key| mail(key, receipt)).await?;
/// permit.settle(AttemptEnd::completed(Outcome::bare(201))).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Steps(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    inner: Arc<Inner>,
    flight: Arc<InFlightEntry>,
    attempt: Attempt,
    /// When the life of the operation began, which its steps belong to.
    life: Timestamp,
    begun: AtomicBool,
    progress: Mutex<StepProgress>,
}

/// How far an attempt has come.
#[derive(Debug)]
pub(super) struct StepProgress {
    /// What is kept; `None` before what earlier attempts kept is read.
    kept: Option<Vec<Step>>,
    /// How many steps were asked for and answered.
    done: usize,
    /// The step an earlier owner may have begun: the first that was not kept when this attempt began.
    inherited: Option<usize>,
    /// The step that was begun here and has no result yet.
    tried: Option<StepName>,
    /// Whether something happened that was not kept.
    stopped: bool,
}

/// Where a step stands.
#[derive(Debug)]
pub(super) enum StepPlace {
    /// It is kept.
    Finished(Step),
    /// It is to be run.
    Open {
        /// Its place, counted from one.
        number: u16,
        /// Whether the effect may have been tried before.
        repeated: bool,
    },
}

impl Steps {
    pub(crate) fn new(
        inner: &Arc<Inner>,
        flight: &Arc<InFlightEntry>,
        attempt: Attempt,
        life: Timestamp,
        follows: bool,
    ) -> Self {
        // Only an attempt that follows an owner can find steps of this life.
        let kept = (!follows).then(Vec::new);
        let progress = StepProgress { kept, done: 0, inherited: None, tried: None, stopped: false };
        Self(Arc::new(Shared {
            inner: Arc::clone(inner),
            flight: Arc::clone(flight),
            attempt,
            life,
            begun: AtomicBool::new(follows),
            progress: Mutex::new(progress),
        }))
    }

    /// Runs an effect, unless its result is kept already. Runs when it is awaited.
    ///
    /// `run` is given the key to show downstream. What it answers with `Ok` is kept as JSON; an
    /// `Err` is not, so the step is run again by the next attempt. A final "no" is a result too: give
    /// it as `Ok`.
    pub fn step<'a, T, E, F, Fut>(&'a self, name: &'a str, run: F) -> StepCall<'a, T, E, F>
    where
        F: FnMut(Key) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        StepCall::new(self, name, run)
    }

    /// Starts over: the next step asked for is the first again, for code that is run a second time in
    /// the same attempt. What is kept stays kept.
    pub async fn rewind(&self) {
        self.turn().await.done = 0;
    }

    /// What the attempt shows with every write.
    pub fn attempt(&self) -> Attempt {
        self.0.attempt
    }

    /// How long the lease lasts, as far as is known here; zero if it may be over.
    pub fn lease_left(&self) -> Duration {
        self.0.flight.lease_left(self.0.inner.clock.now())
    }

    /// Whether something of the operation may have happened that a new life would forget.
    pub(crate) fn may_have_begun(&self) -> bool {
        self.0.begun.load(Relaxed)
    }

    pub(super) fn key(&self, name: &StepName) -> Key {
        name.key_for(self.0.attempt.id)
    }

    pub(super) fn random(&self) -> u64 {
        self.0.inner.random()
    }

    /// The turn of one step: nobody else's begins before it is over.
    pub(super) async fn turn(&self) -> tokio::sync::MutexGuard<'_, StepProgress> {
        self.0.progress.lock().await
    }

    /// Finds the place of the step asked for.
    pub(super) async fn place(
        &self,
        progress: &mut StepProgress,
        name: &StepName,
    ) -> Result<StepPlace, Stop> {
        if progress.stopped {
            return Err(Stop::Broken);
        }
        let all = match &progress.kept {
            Some(kept) => kept,
            None => {
                let loaded = self.load().await.map_err(Stop::NotLoaded)?;
                progress.inherited = Some(loaded.len());
                progress.kept.insert(loaded.into_iter().map(|stored| stored.step).collect())
            }
        };
        let number = u16::try_from(progress.done + 1).unwrap_or(u16::MAX);
        let kept = all.get(progress.done);
        let expected = kept.map(Step::name).or(progress.tried.as_ref());
        if let Some(expected) = expected.filter(|expected| *expected != name) {
            let (stored, asked) = (expected.clone(), name.clone());
            return Err(Stop::OrderChanged { number, stored, asked });
        }
        Ok(match kept {
            Some(step) => StepPlace::Finished(step.clone()),
            None => {
                let inherited = progress.inherited == Some(progress.done);
                StepPlace::Open { number, repeated: inherited || progress.tried.is_some() }
            }
        })
    }

    /// Notes that an effect is about to happen, if it still may.
    pub(super) fn begin(&self, progress: &mut StepProgress, name: &StepName) -> Result<(), Stop> {
        if self.lease_left().is_zero() {
            return Err(Stop::Superseded);
        }
        progress.tried = Some(name.clone());
        self.0.begun.store(true, Relaxed);
        Ok(())
    }

    /// Keeps the result of an effect that happened. Goes on even if nobody waits for it.
    pub(super) async fn keep(&self, progress: &mut StepProgress, step: Step) -> Result<(), Stop> {
        let Attempt { id, fence, owner } = self.0.attempt;
        let keep = KeepStep { id, fence, owner, life: self.0.life, step: step.clone() };
        progress.stopped = true;
        match Detached::new(write(Arc::clone(&self.0.inner), keep), drop).await {
            Ok(Written::Done { .. }) => {
                self.0.inner.counters.steps.one();
                progress.stopped = false;
                progress.kept.get_or_insert_default().push(step);
                progress.finished();
                Ok(())
            }
            Ok(Written::Refused { .. }) => Err(Stop::Superseded),
            Err(error) => Err(Stop::NotKept(error)),
        }
    }

    async fn load(&self) -> Result<Vec<StoredStep>, StoreError> {
        let give_up_at = Instant::now() + self.0.inner.options.settle_patience;
        let mut pause = PAUSE_MIN;
        loop {
            match self.0.inner.store.steps(self.0.attempt.id).await {
                Err(StoreError::Unavailable(_) | StoreError::Unconfirmed(_))
                    if Instant::now() < give_up_at =>
                {
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                loaded => return loaded,
            }
        }
    }
}

impl StepProgress {
    /// The step whose turn it was has its result.
    pub(super) fn finished(&mut self) {
        self.done += 1;
        self.tried = None;
    }

    /// Nothing may follow here.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }
}

/// Keeps a step, again while it is not clear whether it is: the first of a number stays.
async fn write(inner: Arc<Inner>, keep: KeepStep) -> Result<Written, StoreError> {
    let give_up_at = Instant::now() + inner.options.settle_patience;
    let mut pause = PAUSE_MIN;
    loop {
        let error = match inner.commit(Write::Step(keep.clone())).await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unconfirmed(_))) => error,
            answer => return answer,
        };
        if Instant::now() >= give_up_at {
            return Err(error);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
