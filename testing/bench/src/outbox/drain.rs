//! A full log, emptied as fast as it goes.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    OutboxPlan,
    event::{ArrivalChecker, PER_KEY},
    rounds::Rounds,
    ways::ReaderWay,
};
use crate::{
    error::BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    load::float,
    process,
    report::ReportSection,
    server::BenchServer,
    turns::{Measurement, WayTurns},
};

/// How long the slowest way may take before it counts as wrong.
const PATIENCE: Duration = Duration::from_secs(120);

/// What one emptying came to.
pub(super) struct Drained {
    pub(super) per_second: f64,
    cpu_us: f64,
    server_cpu_us: Option<f64>,
    pub(super) invalid: Option<String>,
}

impl Measurement for Drained {
    fn json(&self) -> Value {
        json!({
            "events_per_second": self.per_second,
            "cpu_us_per_event": self.cpu_us,
            "server_cpu_us_per_event": self.server_cpu_us,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * ReaderWay::ALL.len() as u64
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let turns = rounds.take("emptying a log", &ReaderWay::ALL, async |way, config| {
        way.prepare(&config).await?;
        way.fill(&config, plan.events).await?;
        empty(rounds.server, &config, way, plan.events).await
    })?;
    let title = format!("A log of {} events, emptied into a sink that only counts", plan.events);
    Ok(turns.section(title, COLUMNS, claims(&turns)))
}

/// Empties a full log.
pub(super) async fn empty(
    server: &BenchServer,
    config: &tokio_postgres::Config,
    way: ReaderWay,
    events: u64,
) -> Result<Drained, BenchError> {
    let checker = Arc::new(ArrivalChecker::new(events.div_ceil(PER_KEY)));
    let server_cpu = || server.pid().map(process::family_cpu).transpose();
    let (cpu_before, server_before) = (process::own_cpu()?, server_cpu()?);
    let began = Instant::now();
    let reading = way.start(config, &checker).await?;
    let all = async {
        while checker.taken() < events {
            sleep(Duration::from_millis(1)).await;
        }
    };
    // Who is slower than that has lost something, as far as anybody can tell.
    let _ = timeout(PATIENCE, all).await;
    let elapsed = began.elapsed();
    let (cpu, server_after) = (process::own_cpu()? - cpu_before, server_cpu()?);
    reading.stop().await?;
    let each = |used: Duration| used.as_secs_f64() * 1e6 / float(events);
    Ok(Drained {
        per_second: float(checker.taken()) / elapsed.as_secs_f64(),
        cpu_us: each(cpu),
        server_cpu_us: server_after.zip(server_before).map(|(after, before)| each(after - before)),
        invalid: checker.verdict(events),
    })
}

fn claims(turns: &WayTurns<ReaderWay, Drained>) -> [Option<BoundedFigure>; 2] {
    let ours = turns.of(ReaderWay::Relay);
    let rate = MeasuredSpread::of(ours.iter().map(|sample| sample.per_second));
    let ratios = ours.iter().enumerate().filter_map(|(round, ours)| {
        let others = ReaderWay::ALL
            .iter()
            .filter(|way| **way != ReaderWay::Relay)
            .filter_map(|way| turns.of(*way).get(round));
        let best = others.map(|other| other.per_second).max_by(f64::total_cmp)?;
        Some(ours.per_second / best)
    });
    [
        BoundedFigure::at_least("relay", rate, " events/s", 20_000.0),
        BoundedFigure::at_least(
            "relay, events/s against the best loop by hand",
            MeasuredSpread::of(ratios),
            "x",
            2.0,
        ),
    ]
}

const COLUMNS: &Columns<Drained> = &[
    ("events/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("CPU us", SampleColumn::Median(|sample| Some(sample.cpu_us))),
    ("server CPU us", SampleColumn::Median(|sample| sample.server_cpu_us)),
];
