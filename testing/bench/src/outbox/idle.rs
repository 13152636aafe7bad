//! What a relay costs that has nothing to do.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_postgres::Config;

use super::{
    OutboxPlan,
    counted::Counted,
    event::ArrivalChecker,
    rounds::Rounds,
    ways::{ReaderWay, RunningReader},
};
use crate::{
    error::BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    load::float,
    process,
    report::ReportSection,
    turns::Measurement,
};

/// How long nothing happens.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// How long it takes a relay to find out that nothing comes.
    settling: Duration,
    measured: Duration,
}

impl Pause {
    /// A short run is not worth a long pause.
    fn of(plan: &OutboxPlan) -> Self {
        let measured = (plan.duration * 4).clamp(Duration::from_secs(2), Duration::from_secs(30));
        Self { settling: (measured / 2).min(Duration::from_secs(5)), measured }
    }
}

struct IdleBench {
    statements: f64,
    cpu_ms: f64,
}

impl Measurement for IdleBench {
    fn json(&self) -> Value {
        json!({ "statements_per_second": self.statements, "cpu_ms_per_second": self.cpu_ms })
    }

    fn invalid(&self) -> Option<&str> {
        None
    }
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let pause = Pause::of(plan);
    let measure = async |_, config| take(&config, pause).await;
    let turns =
        Rounds { count: 1, ..rounds }.take("nothing to do", &[ReaderWay::Relay], measure)?;
    let asked = MeasuredSpread::of(turns.of(ReaderWay::Relay).iter().map(|idle| idle.statements));
    let claim = BoundedFigure::at_most("idle relay", asked, " statements/s", 2.0);
    Ok(turns.section(format!("Nothing to do for {} s", pause.measured.as_secs()), COLUMNS, [claim]))
}

async fn take(config: &Config, pause: Pause) -> Result<IdleBench, BenchError> {
    ReaderWay::Relay.prepare(config).await?;
    let counted = Counted::start(config).await?;
    let reading =
        ReaderWay::Relay.start(counted.config(), &Arc::new(ArrivalChecker::new(1))).await?;
    sleep(pause.settling).await;
    let (before, cpu_before) = (counted.statements(), process::own_cpu()?);
    sleep(pause.measured).await;
    let (after, cpu_after) = (counted.statements(), process::own_cpu()?);
    RunningReader::stop(reading).await?;
    let seconds = pause.measured.as_secs_f64();
    let cpu_ms = (cpu_after - cpu_before).as_secs_f64() * 1e3;
    Ok(IdleBench { statements: float(after - before) / seconds, cpu_ms: cpu_ms / seconds })
}

const COLUMNS: &Columns<IdleBench> = &[
    ("statements/s", SampleColumn::Median(|idle| Some(idle.statements))),
    ("CPU ms/s", SampleColumn::Median(|idle| Some(idle.cpu_ms))),
];
