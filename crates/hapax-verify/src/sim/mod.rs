//! One seed, one run: real engines on the memory store, in virtual time, with everything going
//! wrong that can.
//!
//! A run has three parts. First clients ask while stores refuse, lose and delay, processes die at
//! any write and any effect, owners sleep through their leases and somebody sets the clock. Then
//! all that stops, and everything must come to rest: no key stuck, every client answered. At last
//! the retention passes, and the same keys begin a new life. The
//! [checker](crate::checker) reads what clients heard and what really happened.

mod client;
mod dice;
mod handler;
mod plan;
mod recorder;
mod store;
mod upstream;
mod world;

use std::time::Duration;

use hapax_core::{
    StateTag, Store, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};
use tokio::{runtime::Builder, time::sleep};

pub use self::plan::{Plan, StoreFaults, UpstreamFaults};
use self::{
    client::ask_until_known,
    dice::Dice,
    handler::Reply,
    recorder::Event,
    world::{RETENTION, World},
};
use crate::checker::Violation;

/// What came of one run.
#[derive(Debug)]
pub struct Report {
    /// What it looked like.
    pub plan: Plan,
    /// Operations asked for.
    pub asks: usize,
    /// Faults injected.
    pub faults: u64,
    /// Effects that happened.
    pub effects: usize,
    /// Clients that gave up not knowing while things were failing.
    pub gave_up: usize,
    /// What must not be.
    pub violations: Vec<Violation>,
    /// A digest of the whole history: the same seed gives the same.
    pub trace: u64,
}

/// Runs one seed.
pub fn run(seed: u64) -> std::io::Result<Report> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let plan = Plan::from_seed(seed);
    Ok(runtime.block_on(simulate(plan)))
}

async fn simulate(plan: Plan) -> Report {
    let dice = Dice::new(plan.clone());
    let world = World::start(dice.clone());
    fail_and_retry(&world).await;
    dice.heal();
    come_to_rest(&world).await;
}
