//! Services in trouble, and what retries do to them.
//!
//! One world for all of it: `world` moves calls through `layer`s down to a `dependency`, `tally`
//! counts. `outage`, `herd` and `recovery` are the three bad days.

mod dependency;
mod herd;
mod layer;
mod outage;
mod recovery;
mod tally;
mod world;

use std::time::Duration;

use super::SimulateError;
use crate::{args::StormArgs, report::ChartedReport};

/// Most attempts that one request may become, so that a simulation ends while somebody waits for it.
const AMPLIFICATION_MAX: u32 = 1500;

pub(super) fn run(args: &StormArgs) -> Result<ChartedReport, SimulateError> {
    let (layers, attempts) = (args.layers, args.attempts);
    if attempts.checked_pow(layers).is_none_or(|most| most > AMPLIFICATION_MAX) {
        return Err(SimulateError::TooDeep { layers, attempts, most: AMPLIFICATION_MAX });
    }
    let seed = args.output.seed;
    let sections = vec![
        outage::run(layers, attempts, seed)?,
        herd::run(seed)?,
        recovery::run(attempts, seed)?,
    ];
    let subject = format!("layers: {layers}, attempts in each: {attempts}, seed {seed}");
    Ok(ChartedReport { title: "Retry storms", subject, sections })
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
