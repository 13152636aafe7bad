//! The effect of a message, bare and with the record that keeps it from being had twice.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::{Manager, Pool};
use hapax::{
    Key, Scope,
    inbox::{Arrival, Consumer, End, Entered, First, Identity, Inbox as _, Message, Proof},
    postgres::{Store, transaction::deadpool::Database},
};
use tokio_postgres::{Config, NoTls};

use super::{OutboxPlan, event::payload, rounds::Rounds};
use crate::bench::{
    arms::{Arm, Effects, Stored},
    error::BenchError,
    figures::{Claim, Column, Columns},
    report::Section,
    request,
    sample::{self, Ground, Sample},
    turns::Named,
};

const TABLE: &str = "CREATE TABLE mails (id bigserial PRIMARY KEY, recipient text NOT NULL)";
const INSERT: &str = "INSERT INTO mails (recipient) VALUES ($1)";
const RETENTION: Duration = Duration::from_secs(7 * 86_400);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Inbox,
}

impl Way {
    const ALL: [Self; 2] = [Self::Bare, Self::Inbox];
}

impl Named for Way {
    fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare insert, in a transaction",
            Self::Inbox => "hapax inbox, same transaction",
        }
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * Way::ALL.len() as u64
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<Section, BenchError> {
    let what = format!("{} messages at once", plan.callers);
    let turns = rounds.take(&what, &Way::ALL, async |way, config| {
        let arm = Acting::connect(&config, way, plan.callers).await?;
        let ground = Ground::Postgres(rounds.server);
        sample::measure(ground, plan.duration, plan.callers, arm).await
    })?;
    let title = format!("{} messages at once, each acted on in a transaction", plan.callers);
    let ratio = turns.ratio(Way::Inbox, Way::Bare, |sample| Some(sample.per_second));
    let what = "inbox, messages/s against the bare effect";
    Ok(turns.section(title, COLUMNS, [Claim::at_least(what, ratio, "x", 0.9)]))
}

struct Acting {
    way: Way,
    pool: Pool,
    database: Database,
    consumer: Consumer,
    effects: Effects,
}

impl Acting {
    async fn connect(config: &Config, way: Way, callers: usize) -> Result<Self, BenchError> {
        Store::migrate(config).await?;
        let pool = Pool::builder(Manager::new(config.clone(), NoTls)).max_size(callers).build();
        let pool = pool.map_err(|_| BenchError::PoolEmpty)?;
        let client = pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        client.batch_execute(TABLE).await?;
        let database = Database::new(pool.clone());
        let consumer = database.enlist(&Scope::parse("mailer")?, RETENTION).await?;
        Ok(Self { way, pool, database, consumer, effects: Effects::default() })
    }

    async fn bare(&self, number: u64) -> Result<(), BenchError> {
        let mut client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let transaction = client.transaction().await?;
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number)]).await?;
        Ok(transaction.commit().await?)
    }

    async fn inbox(&self, number: u64) -> Result<(), BenchError> {
        let arrival = Arrival {
            consumer: self.consumer.clone(),
            message: Arc::new(message(number)?),
            proof: Proof::Record,
            in_turn: false,
        };
        let Entered::First(First { transaction, .. }) = self.database.enter(&arrival).await? else {
            return Err(BenchError::NotFresh { found: "a message that was acted on" });
        };
        let insert = transaction.prepare_cached(INSERT).await?;
        transaction.execute(&insert, &[&request::key(number)]).await?;
        Ok(self.database.leave(transaction, &End::Done).await?)
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
            Way::Bare => self.bare(number).await?,
            Way::Inbox => self.inbox(number).await?,
        }
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &Effects {
        &self.effects
    }

    async fn stored(&self) -> Result<Stored, BenchError> {
        let client = self.pool.get().await.map_err(|_| BenchError::PoolEmpty)?;
        let count =
            "SELECT count(DISTINCT recipient), count(*) - count(DISTINCT recipient) FROM mails";
        let row = client.query_one(count, &[]).await?;
        let number = |at| -> Result<u64, BenchError> {
            Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0))
        };
        Ok(Stored { completed: number(0)?, others: number(1)? })
    }
}

const COLUMNS: &Columns<Sample> = &[
    ("messages/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", Column::Median(|sample| Some(sample.p999_ms))),
    ("server CPU us", Column::Median(|sample| sample.server_cpu_us)),
    ("log bytes", Column::Median(|sample| sample.log_bytes)),
];
