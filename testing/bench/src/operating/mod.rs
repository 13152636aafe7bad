//! `cargo xtask bench operating`: what it costs to operate a gateway, each part with and without, in turn.
//!
//! - `plan` says what is measured;
//! - `telemetry` is a gateway that tells a collector, `told` what the collector heard;
//! - `encryption` is a store that is encrypted, with its callers and `sealing` alone;
//! - `dashboard` is a gateway that nobody uses but ten who look, each an `open_page`;
//! - `tls` is PostgreSQL over TLS.

mod dashboard;
mod encryption;
mod open_page;
mod plan;
mod sealing;
mod telemetry;
mod tls;
mod told;

pub(crate) use self::plan::OperatingPlan;
use super::{BenchError, run::BenchRun};
use crate::args::OperatingPart;

/// Measures. A part whose server cannot be had is named, and does not keep the others from it.
pub(super) fn measure(plan: &OperatingPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    run.note(("cores", "shared by load, upstreams, servers and what is measured".to_owned()));
    run.progress.expect(plan.parts.iter().map(|part| steps(plan, *part)).sum());
    for part in &plan.parts {
        let (name, measured) = match part {
            OperatingPart::Otlp => ("telemetry", telemetry::run(plan, run)),
            OperatingPart::Encryption => ("encryption", encryption::run(plan, run)),
            OperatingPart::Dashboard => ("the dashboard", dashboard::run(plan, run)),
            OperatingPart::Tls => ("TLS to PostgreSQL", tls::run(plan, run)),
        };
        match measured {
            Err(error) if error.is_absence() => run.miss(name, &error),
            measured => measured?,
        }
    }
    Ok(())
}

fn steps(plan: &OperatingPlan, part: OperatingPart) -> u64 {
    match part {
        OperatingPart::Otlp => telemetry::steps(plan),
        OperatingPart::Encryption => encryption::steps(plan) + sealing::STEPS,
        OperatingPart::Dashboard => dashboard::steps(plan),
        OperatingPart::Tls => tls::steps(plan),
    }
}
