//! `hapax bench outbox`: the outbox and the usual hand-written ones, side by side in one run.
//!
//! - `plan` says what is measured; `event` what one event is, and checks that each came once and in order;
//! - `ways` are the ways to read a log of events; `plain` the hand-written ones;
//! - `drain` empties a full log, `enqueue` fills one, `latency` does both at a fixed rate, `held` looks
//!   what an old snapshot costs, `idle` what a relay costs that has nothing to do;
//! - `inbox` is the other end: acting on messages.

mod drain;
mod enqueue;
mod event;
mod held;
mod idle;
mod inbox;
mod latency;
mod plain;
mod plan;
mod ways;

use super::{
    BenchError, Verdict, machine, progress, publish, report::Report, sample, server::Server,
};
use crate::args::OutboxPart;

pub(crate) use self::plan::OutboxPlan;

/// Measures, and tells.
pub(crate) fn run(plan: &OutboxPlan) -> Result<Verdict, BenchError> {
    let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
    let directory = directory.map_err(BenchError::Directory)?;
    let mut facts = machine::facts(directory.path())?;
    let server = Server::needed(&plan.postgres)?;
    facts.extend(sample::workers()?.block_on(server.facts())?);
    let progress = progress(plan.parts.iter().map(|part| steps(plan, *part)).sum());
    let mut sections = Vec::new();
    for part in &plan.parts {
        sections.push(match part {
            OutboxPart::Drain => drain::run(plan, &server, &progress)?,
            OutboxPart::Enqueue => enqueue::run(plan, &server, &progress)?,
            OutboxPart::Latency => latency::run(plan, &server, &progress)?,
            OutboxPart::Held => held::run(plan, &server, &progress)?,
            OutboxPart::Inbox => inbox::run(plan, &server, &progress)?,
            OutboxPart::Idle => idle::run(plan, &server, &progress)?,
        });
    }
    progress.finish_and_clear();
    publish(&Report { facts, sections }, plan.json.as_deref())
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
