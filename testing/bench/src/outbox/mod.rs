//! `cargo xtask bench outbox`: the outbox and the usual hand-written ones, side by side in one run.
//!
//! - `plan` says what is measured; `event` what one event is, and checks that each came once and in order;
//! - `ways` are the ways to read a log of events; `plain` the hand-written ones; `rounds` takes them in turn;
//! - `drain` empties a full log, `enqueue` fills one, `latency` does both at a fixed rate, `held` looks
//!   what an old snapshot costs, `idle` what a relay costs that has nothing to do,
//!   with its statements `counted`;
//! - `inbox` is the other end: acting on messages.

mod counted;
mod drain;
mod enqueue;
mod event;
mod held;
mod idle;
mod inbox;
mod latency;
mod plain;
mod plan;
mod rounds;
mod ways;

use super::{BenchError, run::BenchRun};
use crate::args::OutboxPart;

pub(crate) use self::plan::OutboxPlan;
use self::rounds::Rounds;

/// Measures.
pub(super) fn measure(plan: &OutboxPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let (server, progress) = (run.postgres(&plan.postgres)?, run.progress.clone());
    progress.expect(plan.parts.iter().map(|part| steps(plan, *part)).sum());
    let rounds = Rounds { server: &server, progress: &progress, count: plan.rounds };
    for part in &plan.parts {
        run.add(match part {
            OutboxPart::Drain => drain::run(plan, rounds)?,
            OutboxPart::Enqueue => enqueue::run(plan, rounds)?,
            OutboxPart::Latency => latency::run(plan, rounds)?,
            OutboxPart::Held => held::run(plan, rounds)?,
            OutboxPart::Inbox => inbox::run(plan, rounds)?,
            OutboxPart::Idle => idle::run(plan, rounds)?,
        });
    }
    Ok(())
}

fn steps(plan: &OutboxPlan, part: OutboxPart) -> u64 {
    match part {
        OutboxPart::Drain => drain::steps(plan),
        OutboxPart::Enqueue => enqueue::steps(plan),
        OutboxPart::Latency => latency::steps(plan),
        OutboxPart::Held => held::steps(plan),
        OutboxPart::Inbox => inbox::steps(plan),
        OutboxPart::Idle => 1,
    }
}
