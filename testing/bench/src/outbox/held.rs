//! What an old snapshot costs: somebody's report that runs for long, or a transaction left open.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_postgres::Config;

use super::{
    OutboxPlan,
    drain::empty,
    event::ArrivalChecker,
    plain::Plain,
    rounds::Rounds,
    ways::{ReaderWay, RunningReader},
};
use crate::{
    arms::postgres_baseline::connect,
    error::BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    report::ReportSection,
    server::BenchServer,
    turns::{Measurement, NamedWay},
};

/// Events that are written and read at once, again and again, while the snapshot is held.
const WAVE: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HeldBench(ReaderWay);

impl HeldBench {
    const ALL: [Self; 2] = [Self(ReaderWay::Relay), Self(ReaderWay::Plain(Plain::Delete))];
}

impl NamedWay for HeldBench {
    fn label(self) -> &'static str {
        self.0.label()
    }
}

struct HeldCost {
    before: f64,
    during: f64,
    dead_rows: f64,
    invalid: Option<String>,
}

impl Measurement for HeldCost {
    fn json(&self) -> Value {
        json!({
            "events_per_second_before": self.before,
            "events_per_second_with_the_snapshot": self.during,
            "dead_rows": self.dead_rows,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(rounds(plan)) * HeldBench::ALL.len() as u64
}

/// Each round holds a snapshot for long.
fn rounds(plan: &OutboxPlan) -> u32 {
    plan.rounds.min(2)
}

pub(super) fn run(plan: &OutboxPlan, all: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let all = Rounds { count: rounds(plan), ..all };
    let measure = async |held: HeldBench, config| take(plan, all.server, held.0, config).await;
    let turns = all.take("an old snapshot", &HeldBench::ALL, measure)?;
    let seconds = plan.hold.as_secs();
    let title =
        format!("A log of {} events, while a snapshot is held for {seconds} s", plan.events);
    let kept = MeasuredSpread::of(
        turns.of(HeldBench::ALL[0]).iter().map(|cost| cost.during / cost.before),
    );
    let dead = MeasuredSpread::of(turns.of(HeldBench::ALL[0]).iter().map(|cost| cost.dead_rows));
    let claims = [
        BoundedFigure::at_least(
            "relay, events/s with the snapshot against without",
            kept,
            "x",
            0.95,
        ),
        BoundedFigure::at_most("dead rows in the log", dead, "", 0.0),
    ];
    Ok(turns.section(title, COLUMNS, claims))
}

async fn take(
    plan: &OutboxPlan,
    server: &BenchServer,
    way: ReaderWay,
    config: Config,
) -> Result<HeldCost, BenchError> {
    way.prepare(&config).await?;
    way.fill(&config, plan.events).await?;
    let before = empty(server, &config, way, plan.events).await?;
    let holder = connect(&config).await?;
    holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT txid_current()").await?;
    churn(&config, way, plan.hold).await?;
    way.fill(&config, plan.events).await?;
    let during = empty(server, &config, way, plan.events).await?;
    let dead_rows = dead_rows(&config).await?;
    holder.batch_execute("ROLLBACK").await?;
    let invalid = before.invalid.or(during.invalid);
    Ok(HeldCost { before: before.per_second, during: during.per_second, dead_rows, invalid })
}

/// Writes and reads events for so long.
async fn churn(config: &Config, way: ReaderWay, hold: Duration) -> Result<(), BenchError> {
    let began = Instant::now();
    // Waves repeat their keys, so only how many came is of interest here.
    let checker = Arc::new(ArrivalChecker::new(WAVE));
    let reading = way.start(config, &checker).await?;
    let mut waves = 0;
    while began.elapsed() < hold {
        way.fill(config, WAVE).await?;
        waves += 1;
        while checker.taken() < waves * WAVE {
            sleep(Duration::from_millis(2)).await;
        }
    }
    RunningReader::stop(reading).await
}

/// Rows that are dead and cannot be removed, in the table of events.
async fn dead_rows(config: &Config) -> Result<f64, BenchError> {
    let client = connect(config).await?;
    client.batch_execute("SELECT pg_stat_force_next_flush()").await?;
    client.batch_execute("ANALYZE").await?;
    let count = "SELECT coalesce(sum(n_dead_tup), 0)::float8 FROM pg_stat_user_tables
        WHERE relname = 'plain' OR relname ~ '^outbox_[0-9]+$'";
    Ok(client.query_one(count, &[]).await?.try_get(0)?)
}

const COLUMNS: &Columns<HeldCost> = &[
    ("events/s before", SampleColumn::Median(|cost| Some(cost.before))),
    ("events/s with it", SampleColumn::Median(|cost| Some(cost.during))),
    ("dead rows", SampleColumn::Median(|cost| Some(cost.dead_rows))),
];
