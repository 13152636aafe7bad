//! The effect of a message, bare and with the record that keeps it from being had twice.

use std::{ops::Range, sync::Arc, time::Duration};

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
    load::float,
    report::ReportSection,
    request,
    sample::{self, StoreGround, StoreSample},
    turns::NamedWay,
};

const TABLE: &str = "CREATE TABLE mails (id bigserial PRIMARY KEY, recipient text NOT NULL)";
const INSERT: &str = "INSERT INTO mails (recipient) VALUES ($1)";
/// As any other language asks, with every other argument left out.
const FIRST: &str = "SELECT hapax.first_delivery('mailer', $1, $2::bytea)";
const RETENTION: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxWay {
    Bare,
    Inbox,
    Function,
    Together,
}

/// How many messages share a transaction where they do.
const TOGETHER: u64 = 4;

impl InboxWay {
    const ALL: [Self; 4] = [Self::Bare, Self::Inbox, Self::Function, Self::Together];

    /// How many messages a transaction has.
    fn messages(self) -> u64 {
        match self {
            Self::Bare | Self::Inbox | Self::Function => 1,
            Self::Together => TOGETHER,
        }
    }
}

impl NamedWay for InboxWay {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare insert, in a transaction",
            Self::Inbox => "hapax inbox, same transaction",
            Self::Function => "hapax.first_delivery, same transaction",
            Self::Together => "hapax inbox, four in a transaction",
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
        let sample = sample::measure(ground, plan.duration, plan.callers, arm).await?;
        Ok(for_each_message(sample, way))
    })?;
    let title = format!("{} transactions at once, in which messages are acted on", plan.callers);
    let against_bare = |way| turns.ratio(way, InboxWay::Bare, |sample| Some(sample.per_second));
    let [alone, function, together] =
        [InboxWay::Inbox, InboxWay::Function, InboxWay::Together].map(against_bare);
    let bounds = [
        BoundedFigure::at_least("inbox, messages/s against the bare effect", alone, "x", 0.75),
        BoundedFigure::at_least("the same, by hapax.first_delivery", function, "x", 0.7),
        BoundedFigure::at_least("the same, four in a transaction", together, "x", 1.3),
    ];
    Ok(turns.section(title, COLUMNS, bounds))
}

/// What was measured for transactions, told for their messages; latencies stay those of transactions.
fn for_each_message(sample: StoreSample, way: InboxWay) -> StoreSample {
    let messages = float(way.messages());
    StoreSample {
        per_second: sample.per_second * messages,
        cpu_us: sample.cpu_us / messages,
        server_cpu_us: sample.server_cpu_us.map(|spent| spent / messages),
        log_bytes: sample.log_bytes.map(|bytes| bytes / messages),
        ..sample
    }
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
        let MessageEntered::First(First { transaction, .. }) =
            self.database.enter(&self.arrival(number)?).await?
        else {
            return Err(BenchError::NotFresh { found: "a message that was acted on" });
        };
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number)]).await?;
        Ok(self.database.leave(transaction, &MessageEnd::Done).await?)
    }

    async fn function(&self, number: u64) -> Result<(), BenchError> {
        let mut client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let transaction = client.transaction().await?;
        let (first, insert) =
            (transaction.prepare_cached(FIRST).await?, transaction.prepare_cached(INSERT).await?);
        let (id, content) = (request::key(number), payload(number, 0));
        let is_first: bool = transaction.query_one(&first, &[&id, &content]).await?.try_get(0)?;
        if !is_first {
            return Err(BenchError::NotFresh { found: "a message that was acted on" });
        }
        transaction.execute(&insert, &[&id]).await?;
        Ok(transaction.commit().await?)
    }

    async fn together(&self, numbers: Range<u64>) -> Result<(), BenchError> {
        let arrivals: Result<Vec<_>, _> =
            numbers.clone().map(|number| self.arrival(number)).collect();
        let Some(transaction) = self.database.enter_all(&arrivals?).await? else {
            return Err(BenchError::NotFresh { found: "a message that was acted on" });
        };
        let insert = transaction.prepare_cached(INSERT).await?;
        for number in numbers {
            transaction.execute(&insert, &[&request::key(number)]).await?;
        }
        Ok(self.database.leave(transaction, &MessageEnd::Done).await?)
    }

    fn arrival(&self, number: u64) -> Result<MessageArrival, BenchError> {
        Ok(MessageArrival {
            consumer: self.consumer.clone(),
            message: Arc::new(message(number)?),
            proof: Proof::Record,
            in_turn: false,
        })
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
            InboxWay::Function => self.function(number).await?,
            InboxWay::Together => {
                self.together(number * TOGETHER..(number + 1) * TOGETHER).await?;
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
        let count =
            "SELECT count(DISTINCT recipient), count(*) - count(DISTINCT recipient) FROM mails";
        let row = client.query_one(count, &[]).await?;
        let number = |at| -> Result<u64, BenchError> {
            Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
        };
        let (messages, twice) = (number(0)?, number(1)?);
        let completed = messages / self.way.messages();
        Ok(StoredCount { completed, others: twice + messages % self.way.messages() })
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
