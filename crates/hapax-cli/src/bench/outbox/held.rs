//! What an old snapshot costs: somebody's report that runs for long, or a transaction left open.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_postgres::Config;

use super::{
    OutboxPlan,
    drain::empty,
    event::Checker,
    plain::Plain,
    rounds::Rounds,
    ways::{Reading, Way},
};
use crate::bench::{
    arms::postgres_baseline::connect,
    error::BenchError,
    figures::{Claim, Column, Columns, Spread},
    report::Section,
    server::Server,
    turns::{Figures, Named},
};

/// Events that are written and read at once, again and again, while the snapshot is held.
const WAVE: u64 = 5_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held(Way);

impl Held {
    const ALL: [Self; 2] = [Self(Way::Relay), Self(Way::Plain(Plain::Delete))];
}

impl Named for Held {
    fn label(self) -> &'static str {
        self.0.label()
    }
}

struct Cost {
    before: f64,
    during: f64,
    dead_rows: f64,
    invalid: Option<String>,
}

impl Figures for Cost {
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
    u64::from(rounds(plan)) * Held::ALL.len() as u64
}

/// Each round holds a snapshot for long.
fn rounds(plan: &OutboxPlan) -> u32 {
    plan.rounds.min(2)
}

pub(super) fn run(plan: &OutboxPlan, all: Rounds<'_>) -> Result<Section, BenchError> {
    let all = Rounds { count: rounds(plan), ..all };
    let measure = async |held: Held, config| take(plan, all.server, held.0, config).await;
    let turns = all.take("an old snapshot", &Held::ALL, measure)?;
    let seconds = plan.hold.as_secs();
    let title =
        format!("A log of {} events, while a snapshot is held for {seconds} s", plan.events);
    let kept = Spread::of(turns.of(Held::ALL[0]).iter().map(|cost| cost.during / cost.before));
    let dead = Spread::of(turns.of(Held::ALL[0]).iter().map(|cost| cost.dead_rows));
    let claims = [
        Claim::at_least("relay, events/s with the snapshot against without", kept, "x", 0.95),
        Claim::at_most("dead rows in the log", dead, "", 0.0),
    ];
    Ok(turns.section(title, COLUMNS, claims))
}

async fn take(
    plan: &OutboxPlan,
    server: &Server,
    way: Way,
    config: Config,
) -> Result<Cost, BenchError> {
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
    Ok(Cost { before: before.per_second, during: during.per_second, dead_rows, invalid })
}

/// Writes and reads events for so long.
async fn churn(config: &Config, way: Way, hold: Duration) -> Result<(), BenchError> {
    let began = Instant::now();
    // Waves repeat their keys, so only how many came is of interest here.
    let checker = Arc::new(Checker::new(WAVE));
    let reading = way.start(config, &checker).await?;
    let mut waves = 0;
    while began.elapsed() < hold {
        way.fill(config, WAVE).await?;
        waves += 1;
        while checker.taken() < waves * WAVE {
            sleep(Duration::from_millis(2)).await;
        }
    }
    Reading::stop(reading).await
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

const COLUMNS: &Columns<Cost> = &[
    ("events/s before", Column::Median(|cost| Some(cost.before))),
    ("events/s with it", Column::Median(|cost| Some(cost.during))),
    ("dead rows", Column::Median(|cost| Some(cost.dead_rows))),
];
