//! Consumers on a real Kafka, with their effects in SQLite.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hapax_core::Scope;
use hapax_messaging::{
    consumer::{Consumer, HandlerError, Message, Options, ProgressStorage, Tx},
    sink::{Kafka as KafkaSink, KafkaOptions as SinkOptions},
    source::kafka::Kafka,
};
use hapax_sqlite::inbox::{Database, Transaction};
use tempfile::TempDir;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{SOON, join, send};
use crate::{
    servers::Own,
    sink::{
        kafka::cluster::Topic,
        world::{sent, turns},
    },
    source::{effects::one_effect, suite::World},
};

one_effect!(Orders);

/// A topic and the group of those who consume it.
pub(crate) struct Orders(Topic);

impl World for Orders {
    type Sink = KafkaSink;
    type Source = Kafka;

    const PATIENCE: Option<Duration> = None;
    const COUNTS: bool = false;

    async fn open() -> Self {
        Self(Topic::on_shared(&[]).await)
    }

    async fn alone() -> Self {
        Self(Topic::alone().await)
    }

    fn server(&mut self) -> &mut Own {
        self.0.own.as_mut().unwrap()
    }

    fn topic(&self) -> String {
        self.0.name.clone()
    }

    fn sink(&self) -> KafkaSink {
        self.0.sink(SinkOptions::default())
    }

    async fn source(&self) -> Kafka {
        join(&self.0).await
    }
}

/// A file with a table of effects, in the order they were committed in.
struct Ledger(TempDir);

impl Ledger {
    fn new() -> Self {
        let ledger = Self(TempDir::new().unwrap());
        ledger.database();
        ledger.client().execute_batch("CREATE TABLE effects (id TEXT, key TEXT)").unwrap();
        ledger
    }

    fn database(&self) -> Database {
        Database::open(self.0.path().join("ledger.db")).unwrap()
    }

    fn client(&self) -> rusqlite::Connection {
        let client = rusqlite::Connection::open(self.0.path().join("ledger.db")).unwrap();
        client.busy_timeout(Duration::from_secs(10)).unwrap();
        client
    }

    /// The ids of each key.
    fn effects(&self) -> BTreeMap<String, Vec<String>> {
        let client = self.client();
        let mut read = client.prepare("SELECT key, id FROM effects ORDER BY rowid").unwrap();
        let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut effects: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, id) in rows.map(Result::unwrap) {
            effects.entry(key).or_default().push(id);
        }
        effects
    }

    /// Waits for so many effects.
    async fn until(&self, count: usize) {
        let reached = async {
            while self.effects().values().map(Vec::len).sum::<usize>() < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, reached).await.expect("there are enough effects in time");
    }
}

async fn act(mut tx: Tx<Transaction>, message: Arc<Message>) -> Result<(), HandlerError> {
    // Long enough for members to come and go in its midst.
    sleep(Duration::from_millis(10)).await;
    tx.execute(
        "INSERT INTO effects VALUES (?1, ?2)",
        [message.id.as_str(), message.key.as_deref().unwrap_or_default()],
    )?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_in_the_database_give_one_effect_in_order_while_members_come_and_go() {
    let topic = Topic::on_shared(&[]).await;
    let ledger = Ledger::new();
    let events = turns(&topic.name, 12, 8);
    send(&topic, &events).await;
    let consumer = || {
        let options = Options { progress: ProgressStorage::Offsets, ..Options::default() };
        Consumer::new(Scope::parse("mailer").unwrap(), ledger.database(), act).options(options)
    };
    let (first, second) = (join(&topic).await, watch::channel(false));
    let (stop_second, mut second_stopped) = second;
    let coming_and_going = async {
        ledger.until(10).await;
        let second = join(&topic).await;
        let until_stopped = async { drop(second_stopped.wait_for(|stop| *stop).await) };
        consumer().run(second, until_stopped).await.unwrap();
    };
    // The first leaves in the midst of its work, and the second goes on alone.
    let leaving = consumer().run(first, ledger.until(40));
    let done = async {
        ledger.until(events.len()).await;
        stop_second.send(true).unwrap();
    };
    let (left, (), ()) = tokio::join!(leaving, coming_and_going, done);
    left.unwrap();
    assert_eq!(ledger.effects(), sent(&events));
}
