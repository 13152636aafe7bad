//! Events written by many callers, each committed by itself.

use deadpool_postgres::{Manager, Pool};
use hapax::{
    Event,
    postgres::{Store, transaction::deadpool::Database},
};
use tokio_postgres::{Config, NoTls};

use super::{OutboxPlan, event::payload, plain, rounds::Rounds};
use crate::{
    arms::{Arm, EffectCounter, StoredCount},
    error::BenchError,
    figures::{BoundedFigure, Columns, SampleColumn},
    report::ReportSection,
    sample::{self, StoreGround, StoreSample},
    turns::NamedWay,
};

/// Keys that events are written for: few enough that some wait for each other.
const KEYS: u64 = 10_000;

/// How an event is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EnqueueWay {
    Insert,
    EmitInRust,
    Emit,
    Notify,
}

impl EnqueueWay {
    const ALL: [Self; 4] = [Self::Insert, Self::EmitInRust, Self::Emit, Self::Notify];
}

impl NamedWay for EnqueueWay {
    fn label(self) -> &'static str {
        match self {
            Self::Insert => "plain insert",
            Self::EmitInRust => "emitted in Rust",
            Self::Emit => "hapax.emit",
            Self::Notify => "insert with a NOTIFY trigger",
        }
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * EnqueueWay::ALL.len() as u64
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let what = format!("{} callers", plan.callers);
    let turns = rounds.take(&what, &EnqueueWay::ALL, async |way, config| {
        let arm = Writing::connect(&config, way, plan.callers).await?;
        let ground = StoreGround::Postgres(rounds.server);
        sample::measure(ground, plan.duration, plan.callers, arm).await
    })?;
    let title = format!("Events written by {} callers, each committed by itself", plan.callers);
    let figures = [(EnqueueWay::EmitInRust, 0.90), (EnqueueWay::Emit, 0.70)].map(|(way, asked)| {
        let ratio = turns.ratio(way, EnqueueWay::Insert, |sample| Some(sample.per_second));
        let what = format!("{}, commits/s against a plain insert", way.label());
        BoundedFigure::at_least(&what, ratio, "x", asked)
    });
    Ok(turns.section(title, COLUMNS, figures))
}

struct Writing {
    way: EnqueueWay,
    pool: Pool,
    database: Database,
    effects: EffectCounter,
}

impl Writing {
    async fn connect(config: &Config, way: EnqueueWay, callers: usize) -> Result<Self, BenchError> {
        match way {
            EnqueueWay::Emit | EnqueueWay::EmitInRust => Store::migrate(config).await?,
            EnqueueWay::Insert => plain::prepare(config, plain::Plain::Delete, false).await?,
            EnqueueWay::Notify => plain::prepare(config, plain::Plain::Delete, true).await?,
        }
        let pool = Pool::builder(Manager::new(config.clone(), NoTls)).max_size(callers).build();
        let pool = pool.map_err(|_| BenchError::PoolEmpty)?;
        let database = Database::new(pool.clone());
        Ok(Self { way, pool, database, effects: EffectCounter::default() })
    }

    async fn execute(&self, text: &str, key: &str, payload: &[u8]) -> Result<(), BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let statement = client.prepare_cached(text).await?;
        client.execute(&statement, &[&key, &payload]).await?;
        Ok(())
    }
}

impl Arm for Writing {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let (key, payload) = ((number % KEYS).to_string(), payload(number % KEYS, number / KEYS));
        match self.way {
            EnqueueWay::Insert | EnqueueWay::Notify => {
                self.execute(plain::INSERT, &key, &payload).await?;
            }
            EnqueueWay::Emit => {
                self.execute("SELECT hapax.emit('orders', $1, $2::bytea)", &key, &payload).await?;
            }
            EnqueueWay::EmitInRust => {
                let event = Event::new("orders", key, payload)?;
                self.database.emit(vec![event]).await?;
            }
        }
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let count = match self.way {
            EnqueueWay::Insert | EnqueueWay::Notify => "SELECT count(*), 0::bigint FROM plain",
            EnqueueWay::Emit | EnqueueWay::EmitInRust => {
                "SELECT count(DISTINCT position), count(*) - count(DISTINCT position) FROM hapax.outbox"
            }
        };
        let row = client.query_one(count, &[]).await?;
        let number = |at| -> Result<u64, BenchError> {
            Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
        };
        Ok(StoredCount { completed: number(0)?, others: number(1)? })
    }
}

const COLUMNS: &Columns<StoreSample> = &[
    ("commits/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|sample| Some(sample.p999_ms))),
    ("server CPU us", SampleColumn::Median(|sample| sample.server_cpu_us)),
    ("log bytes", SampleColumn::Median(|sample| sample.log_bytes)),
];
