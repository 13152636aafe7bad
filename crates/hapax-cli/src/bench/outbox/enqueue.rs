//! Events written by many callers, each committed by itself.

use deadpool_postgres::{Manager, Pool};
use hapax::postgres::Store;
use indicatif::ProgressBar;
use tokio_postgres::{Config, NoTls};

use super::{OutboxPlan, event::payload, plain};
use crate::bench::{
    arms::{Arm, Effects, Stored},
    error::BenchError,
    figures::{Claim, Column, Columns},
    report::Section,
    sample::{self, DATABASE, Ground, Sample},
    server::Server,
    turns::{Named, Turns},
};

/// Keys that events are written for: few enough that some wait for each other.
const KEYS: u64 = 10_000;

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Insert,
    Emit,
    Notify,
}

impl Way {
    const ALL: [Self; 3] = [Self::Insert, Self::Emit, Self::Notify];
}

impl Named for Way {
    fn label(self) -> &'static str {
        match self {
            Self::Insert => "plain insert",
            Self::Emit => "hapax.emit",
            Self::Notify => "insert with a NOTIFY trigger",
        }
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * Way::ALL.len() as u64
}

pub(super) fn run(
    plan: &OutboxPlan,
    server: &Server,
    progress: &ProgressBar,
) -> Result<Section, BenchError> {
    let turns = Turns::take(plan.rounds, Way::ALL, |way| {
        progress.set_message(format!("{} callers, {}", plan.callers, way.label()));
        let sample = take(plan, server, way);
        progress.inc(1);
        sample
    })?;
    let title = format!("Events written by {} callers, each committed by itself", plan.callers);
    let ratio = turns.ratio(1, 0, |sample| sample.per_second);
    let what = "hapax.emit, commits/s against a plain insert";
    Ok(turns.section(title, COLUMNS, [Claim::at_least(what, ratio, "x", 0.85)]))
}

fn take(plan: &OutboxPlan, server: &Server, way: Way) -> Result<Sample, BenchError> {
    let runtime = sample::workers()?;
    let measured = runtime.block_on(async {
        let config = server.create(DATABASE).await?;
        let arm = Writing::connect(&config, way, plan.callers).await?;
        sample::measure(Ground::Postgres(server), plan.duration, plan.callers, arm).await
    });
    runtime.block_on(server.remove(DATABASE))?;
    measured
}

struct Writing {
    way: Way,
    pool: Pool,
    effects: Effects,
}

impl Writing {
    async fn connect(config: &Config, way: Way, callers: usize) -> Result<Self, BenchError> {
        match way {
            Way::Emit => Store::migrate(config).await?,
            Way::Insert => plain::prepare(config, plain::Plain::Delete, false).await?,
            Way::Notify => plain::prepare(config, plain::Plain::Delete, true).await?,
        }
        let pool = Pool::builder(Manager::new(config.clone(), NoTls)).max_size(callers).build();
        let pool = pool.map_err(|_| BenchError::PoolEmpty)?;
        Ok(Self { way, pool, effects: Effects::default() })
    }

    fn statement(&self) -> &'static str {
        match self.way {
            Way::Insert | Way::Notify => plain::INSERT,
            Way::Emit => "SELECT hapax.emit('orders', $1, $2)",
        }
    }
}

impl Arm for Writing {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let statement = client.prepare_cached(self.statement()).await?;
        let (key, payload) = ((number % KEYS).to_string(), payload(number % KEYS, number / KEYS));
        client.execute(&statement, &[&key, &payload]).await?;
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &Effects {
        &self.effects
    }

    async fn stored(&self) -> Result<Stored, BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let count = match self.way {
            Way::Insert | Way::Notify => "SELECT count(*), 0::bigint FROM plain",
            Way::Emit => {
                "SELECT count(DISTINCT position), count(*) - count(DISTINCT position) FROM hapax.outbox"
            }
        };
        let row = client.query_one(count, &[]).await?;
        let number = |at| -> Result<u64, BenchError> {
            Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
        };
        Ok(Stored { completed: number(0)?, others: number(1)? })
    }
}

const COLUMNS: &Columns<Sample> = &[
    ("commits/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("server CPU us", Column::Median(|sample| sample.server_cpu_us)),
    ("log bytes", Column::Median(|sample| sample.log_bytes)),
];
