//! The effect of a message, bare and with the record that keeps it from being had twice.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Manager, Pool};
use hapax::{
    Key, Scope,
    inbox::{
        First, Identity, Inbox as _, Message, MessageArrival, MessageEnd, MessageEntered, Proof,
        RegisteredConsumer,
    },
    postgres::{Store, transaction::deadpool::Database},
};
use tokio_postgres::{Config, NoTls};

use super::{OutboxPlan, event::payload, rounds::Rounds};
use crate::{
    arms::{Arm, EffectCounter, StoredCount},
    error::BenchError,
    figures::{BoundedFigure, Columns, SampleColumn},
    report::ReportSection,
    request,
    sample::{self, StoreGround, StoreSample},
    turns::NamedWay,
};

const TABLE: &str = "CREATE TABLE mails (id bigserial PRIMARY KEY, recipient text NOT NULL)";
const INSERT: &str = "INSERT INTO mails (recipient) VALUES ($1)";
const RETENTION: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxWay {
    Bare,
    Inbox,
}

impl InboxWay {
    const ALL: [Self; 2] = [Self::Bare, Self::Inbox];
}

impl NamedWay for InboxWay {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare insert, in a transaction",
            Self::Inbox => "hapax inbox, same transaction",
        }
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * InboxWay::ALL.len() as u64
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let what = format!("{} messages at once", plan.callers);
    let turns = rounds.take(&what, &InboxWay::ALL, async |way, config| {
        let arm = Acting::connect(&config, way, plan.callers).await?;
        let ground = StoreGround::Postgres(rounds.server);
        sample::measure(ground, plan.duration, plan.callers, arm).await
    })?;
    let title = format!("{} messages at once, each acted on in a transaction", plan.callers);
    let ratio = turns.ratio(InboxWay::Inbox, InboxWay::Bare, |sample| Some(sample.per_second));
    let what = "inbox, messages/s against the bare effect";
    Ok(turns.section(title, COLUMNS, [BoundedFigure::at_least(what, ratio, "x", 0.9)]))
}

struct Acting {
    way: InboxWay,
    pool: Pool,
    database: Database,
    consumer: RegisteredConsumer,
    effects: EffectCounter,
}

impl Acting {
    async fn connect(config: &Config, way: InboxWay, callers: usize) -> Result<Self, BenchError> {
        Store::migrate(config).await?;
        let pool = Pool::builder(Manager::new(config.clone(), NoTls)).max_size(callers).build();
        let pool = pool.map_err(|_| BenchError::PoolEmpty)?;
        let client = pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        client.batch_execute(TABLE).await?;
        let database = Database::new(pool.clone());
        let consumer = database.enlist(&Scope::parse("mailer")?, RETENTION).await?;
        Ok(Self { way, pool, database, consumer, effects: EffectCounter::default() })
    }

    async fn bare(&self, number: u64) -> Result<(), BenchError> {
        let mut client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let transaction = client.transaction().await?;
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number)]).await?;
        Ok(transaction.commit().await?)
    }

    async fn inbox(&self, number: u64) -> Result<(), BenchError> {
        let arrival = MessageArrival {
            consumer: self.consumer.clone(),
            message: Arc::new(message(number)?),
            proof: Proof::Record,
            in_turn: false,
        };
        let MessageEntered::First(First { transaction, .. }) =
            self.database.enter(&arrival).await?
        else {
            return Err(BenchError::NotFresh { found: "a message that was acted on" });
        };
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number)]).await?;
        Ok(self.database.leave(transaction, &MessageEnd::Done).await?)
    }
}

fn message(number: u64) -> Result<Message, BenchError> {
    Ok(Message {
        id: Key::parse(request::key(number))?,
        identity: Identity::Business,
        source: "orders".to_owned(),
        key: None,
        version: None,
        payload: payload(number, 0).into(),
        headers: Vec::new(),
        place: None,
    })
}

impl Arm for Acting {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        match self.way {
            InboxWay::Bare => self.bare(number).await?,
            InboxWay::Inbox => self.inbox(number).await?,
        }
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let count =
            "SELECT count(DISTINCT recipient), count(*) - count(DISTINCT recipient) FROM mails";
        let row = client.query_one(count, &[]).await?;
        let number = |at| -> Result<u64, BenchError> {
            Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
        };
        Ok(StoredCount { completed: number(0)?, others: number(1)? })
    }
}

const COLUMNS: &Columns<StoreSample> = &[
    ("messages/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|sample| Some(sample.p999_ms))),
    ("server CPU us", SampleColumn::Median(|sample| sample.server_cpu_us)),
    ("log bytes", SampleColumn::Median(|sample| sample.log_bytes)),
];
