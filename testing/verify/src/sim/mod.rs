//! One seed, one run: real engines on the memory store, in virtual time, with everything going
//! wrong that can.
//!
//! A run has three parts. First clients ask while stores refuse, lose and delay, processes die at
//! any write and any effect, owners sleep through their leases and somebody sets the clock, by days
//! too, for a moment. Then
//! all that stops, and everything must come to rest: no key stuck, every client answered. At last
//! the retention passes, and the same keys begin a new life. The [`checker`]
//! judges what clients heard by what really happened.

mod client;
mod dice;
mod handler;
mod plan;
mod recorder;
mod store;
mod upstream;
mod world;

use std::time::Duration;

use hapax_core::{Recovery, State, Store, store::Loaded};
use tokio::{runtime::Builder, task::JoinSet, time::sleep};

pub use self::plan::{Flaw, SimPlan, StoreFaults, UpstreamFaults};
use self::{
    client::ask_until_known,
    dice::Dice,
    recorder::digest,
    world::{RETENTION, SimWorld, operation},
};
use crate::{
    checker::{self, AllowedEffects, HistoryViolation, check},
    history::{FinalState, ObservedAnswer},
};

/// What came of one run.
#[derive(Debug)]
pub struct SimReport {
    /// What it looked like.
    pub plan: SimPlan,
    /// Operations asked for.
    pub calls: usize,
    /// Effects that happened.
    pub effects: usize,
    /// Faults injected.
    pub faults: u64,
    /// What must not be.
    pub failures: Vec<SimFailure>,
    /// A digest of the whole history: the same seed gives the same.
    pub trace: u64,
}

/// Something that must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimFailure {
    /// The history is wrong.
    #[error(transparent)]
    History(#[from] HistoryViolation),
    /// Nothing was failing any more, and still a client did not learn what became of its key.
    #[error("key {key} was not answered although nothing failed any more")]
    NoAnswer {
        /// Which key.
        key: usize,
    },
    /// Nothing was failing any more, and still an engine had something in flight.
    #[error("an engine did not come to rest")]
    Restless,
    /// Past its retention, a finished key did not begin a new life.
    #[error("key {key} answered {answer:?} past its retention")]
    NotNew {
        /// Which key.
        key: usize,
        /// What it answered.
        answer: ObservedAnswer,
    },
}

/// Runs one seed.
pub fn run(seed: u64) -> std::io::Result<SimReport> {
    run_plan(SimPlan::from_seed(seed))
}

/// Runs a plan, whether or not a seed gives it.
pub fn run_plan(plan: SimPlan) -> std::io::Result<SimReport> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(simulate(plan)))
}

async fn simulate(plan: SimPlan) -> SimReport {
    let dice = Dice::new(plan.clone());
    let world = SimWorld::start(dice.clone());
    let mut failures = Vec::new();
    fail_and_retry(&world).await;
    dice.heal();
    come_to_rest(&world, &mut failures).await;
    judge(&world, &mut failures).await;
    live_again(&world, &mut failures).await;
    let checked = judge(&world, &mut failures).await;
    let (faults, trace) = (dice.injected(), world.recorder.trace());
    world.end();
    SimReport { plan, calls: checked.calls, effects: checked.effects, faults, failures, trace }
}

/// Clients ask and retry while everything fails.
async fn fail_and_retry(world: &SimWorld) {
    let plan = world.dice.plan();
    let mut clients = JoinSet::new();
    for _ in 0..plan.clients {
        let world = world.clone();
        clients.spawn(async move {
            let plan = world.dice.plan();
            for _ in 0..plan.asks {
                let key = world.dice.below(plan.keys);
                let request = u8::from(world.dice.happens(plan.mismatches));
                ask_until_known(&world, key, request).await;
            }
        });
    }
    for _ in 0..plan.clock_steps {
        sleep(world.dice.up_to(plan.lease * 20)).await;
        let span = world.dice.up_to(plan.lease * 6);
        world.step_clock(hapax_core::time::micros(span) - hapax_core::time::micros(plan.lease * 3));
    }
    for _ in 0..plan.clock_glitches {
        sleep(world.dice.up_to(plan.lease * 20)).await;
        let ahead = hapax_core::time::micros(RETENTION * 2);
        world.step_clock(ahead);
        sleep(world.dice.up_to(plan.lease * 6)).await;
        world.step_clock(-ahead);
    }
    while clients.join_next().await.is_some() {}
}

/// Nothing fails any more: within a bounded time nothing may be in flight, and every key must
/// answer at the first asking.
async fn come_to_rest(world: &SimWorld, failures: &mut Vec<SimFailure>) {
    let plan = world.dice.plan();
    // The longest pause, the longest call, a lease and a sweep for what was abandoned last, the time
    // after which a "no" counts, and the longest pause of what was accepted and not done yet, once the
    // clock is trusted.
    let rest = plan.lease * 12 + plan.upstream.delay_max * 4 + plan.works_for() * 2;
    sleep(rest + plan.clock_stays + Duration::from_secs(70)).await;
    for key in 0..plan.keys {
        if let FinalState::Pending | FinalState::Running = end_of(world, key).await {
            failures.push(SimFailure::NoAnswer { key });
        }
        if ask_until_known(world, key, 0).await == ObservedAnswer::Unknown {
            failures.push(SimFailure::NoAnswer { key });
        }
    }
}

/// Retention passes: whatever is finished counts as new, and the same keys run once more.
async fn live_again(world: &SimWorld, failures: &mut Vec<SimFailure>) {
    let plan = world.dice.plan();
    let mut finished = Vec::new();
    for key in 0..plan.keys {
        if end_of(world, key).await != FinalState::InDoubt {
            finished.push(key);
        }
    }
    world.step_clock(hapax_core::time::micros(KEPT_AT_MOST + plan.lease));
    world.upstream.forget();
    // Time does not jump by a day unnoticed: it is believed once it has stayed.
    sleep(plan.clock_stays + plan.lease * 10).await;
    finished.iter().for_each(|key| world.recorder.expired(*key));
    for key in finished {
        let answer = ask_until_known(world, key, ANOTHER_REQUEST).await;
        if !matches!(answer, ObservedAnswer::Executed(_) | ObservedAnswer::Replayed(_)) {
            failures.push(SimFailure::NotNew { key, answer });
        }
    }
    for engine in world.engines() {
        if !engine.shut_down(plan.lease).await {
            failures.push(SimFailure::Restless);
        }
    }
}

/// What is written while the clock is ahead, or has just come back, is kept for longer.
const KEPT_AT_MOST: Duration = Duration::from_secs(5 * RETENTION.as_secs());
/// A request no client sends while keys live for the first time.
const ANOTHER_REQUEST: u8 = 2;

/// Writes down what is stored now that all is quiet, and has the whole history judged.
async fn judge(world: &SimWorld, failures: &mut Vec<SimFailure>) -> checker::HistoryReport {
    for key in 0..world.dice.plan().keys {
        world.recorder.quiesced(key, end_of(world, key).await);
    }
    // An upstream that recognises repetitions may be sent one: a freed key is no danger there.
    let effects = match world.dice.plan().recovery {
        Recovery::Resend => AllowedEffects::Deduplicated,
        Recovery::Probe | Recovery::Hold => AllowedEffects::Once,
    };
    let report = check(&world.recorder.history(), effects);
    failures.extend(report.violations.iter().copied().map(SimFailure::from));
    report
}

/// What is stored about a key.
async fn end_of(world: &SimWorld, key: usize) -> FinalState {
    let loaded = world.store.load(vec![operation(key).id()]).await.pop();
    let Some(Ok(Loaded { record: Some(record), .. })) = loaded else { return FinalState::Absent };
    match &record.state {
        State::Pending { .. } => FinalState::Pending,
        State::Running { .. } => FinalState::Running,
        State::Completed { outcome } => FinalState::Completed(digest(outcome)),
        State::Failed { outcome } => FinalState::Failed(digest(outcome)),
        State::InDoubt { .. } => FinalState::InDoubt,
        State::Released => FinalState::Released,
        State::Buried => FinalState::Buried,
    }
}
