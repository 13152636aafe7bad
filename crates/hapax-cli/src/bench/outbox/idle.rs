//! What a relay costs that has nothing to do.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_postgres::{Client, Config};

use super::{
    OutboxPlan,
    event::Checker,
    rounds::Rounds,
    ways::{Reading, Way},
};
use crate::bench::{
    arms::postgres_baseline::connect,
    error::BenchError,
    figures::{Claim, Column, Columns, Spread},
    process,
    report::Section,
    turns::Figures,
};

/// How long it takes a relay to find out that nothing comes.
const SETTLING: Duration = Duration::from_secs(5);

struct Idle {
    queries: f64,
    cpu_ms: f64,
}

impl Figures for Idle {
    fn json(&self) -> Value {
        json!({ "queries_per_second": self.queries, "cpu_ms_per_second": self.cpu_ms })
    }

    fn invalid(&self) -> Option<&str> {
        None
    }
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<Section, BenchError> {
    let span = (plan.duration * 4).clamp(Duration::from_secs(10), Duration::from_secs(30));
    let measure = async |_, config| take(&config, span).await;
    let turns = Rounds { count: 1, ..rounds }.take("nothing to do", &[Way::Relay], measure)?;
    let queries = Spread::of(turns.of(Way::Relay).iter().map(|idle| idle.queries));
    let claim = Claim::at_most("idle relay", queries, " queries/s", 2.0);
    Ok(turns.section(format!("Nothing to do for {} s", span.as_secs()), COLUMNS, [claim]))
}

async fn take(config: &Config, span: Duration) -> Result<Idle, BenchError> {
    Way::Relay.prepare(config).await?;
    let reading = Way::Relay.start(config, &Arc::new(Checker::new(1))).await?;
    sleep(SETTLING).await;
    let client = connect(config).await?;
    let (before, cpu_before) = (transactions(&client).await?, process::own_cpu()?);
    sleep(span).await;
    let (after, cpu_after) = (transactions(&client).await?, process::own_cpu()?);
    Reading::stop(reading).await?;
    // The first of the two questions was counted, too.
    let asked = after - before - 1.0;
    let cpu_ms = (cpu_after - cpu_before).as_secs_f64() * 1e3;
    Ok(Idle { queries: asked / span.as_secs_f64(), cpu_ms: cpu_ms / span.as_secs_f64() })
}

/// Transactions this database has seen. Sessions report with a delay, the same before and after.
async fn transactions(client: &Client) -> Result<f64, BenchError> {
    let ask = "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database WHERE datname = current_database()";
    Ok(client.query_one(ask, &[]).await?.try_get(0)?)
}

const COLUMNS: &Columns<Idle> = &[
    ("queries/s", Column::Median(|idle| Some(idle.queries))),
    ("CPU ms/s", Column::Median(|idle| Some(idle.cpu_ms))),
];
