//! A consumer on a real broker, with its effects in SQLite: one effect for each message, whatever the
//! broker delivers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax_core::{
    Scope,
    outbox::Stored,
    retry::{Backoff, Jitter, Schedule},
};
use hapax_messaging::{
    consumer::{
        Consumer, DeadLetters, HandlerError, Message, Naming, Options, REASON_HEADER, Source, Tx,
    },
    sink::{Outage, Sink, Verdict},
};
use hapax_sqlite::inbox::{Database, Transaction};
use tempfile::TempDir;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::suite::{World, send};
use crate::sink::world::turns;

macro_rules! one_effect {
    ($world:ty) => {
        $crate::source::effects::cases! { $world:
            copies_and_competing_consumers_have_one_effect,
            a_message_nobody_can_act_on_is_a_dead_letter_and_in_nobodys_way,
            a_server_killed_in_mid_work_leaves_one_effect,
        }
    };
}

macro_rules! cases {
    ($world:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::source::effects::$case::<$world>().await;
            }
        )*
    };
}

pub(crate) use {cases, one_effect};

const SOON: Duration = Duration::from_secs(120);

/// A file with a table of effects, and word of every handler that ran.
struct Ledger {
    dir: TempDir,
    runs: watch::Sender<usize>,
}

impl Ledger {
    fn new() -> Self {
        let ledger = Self { dir: TempDir::new().unwrap(), runs: watch::Sender::new(0) };
        ledger.database();
        ledger.client().execute_batch("CREATE TABLE effects (id TEXT)").unwrap();
        ledger
    }

    fn database(&self) -> Database {
        Database::open(self.dir.path().join("ledger.db")).unwrap()
    }

    fn client(&self) -> rusqlite::Connection {
        let client = rusqlite::Connection::open(self.dir.path().join("ledger.db")).unwrap();
        client.busy_timeout(Duration::from_secs(10)).unwrap();
        client
    }

    /// How many effects each message had.
    fn effects(&self) -> BTreeMap<String, i64> {
        let client = self.client();
        let mut read = client.prepare("SELECT id, count(*) FROM effects GROUP BY id").unwrap();
        let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Waits until this many messages had an effect.
    async fn until(&self, messages: usize) {
        let reached = async {
            while self.effects().len() < messages {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(SOON, reached).await.expect("every message has an effect in time");
    }

    async fn until_run(&self, times: usize) {
        let mut runs = self.runs.subscribe();
        let reached = runs.wait_for(|runs| *runs >= times);
        timeout(SOON, reached).await.expect("handlers run in time").unwrap();
    }
}

fn act(mut tx: Tx<Transaction>, message: &Message) -> Result<(), HandlerError> {
    tx.execute("INSERT INTO effects VALUES (?1)", [message.id.as_str()])?;
    Ok(())
}

/// Impatient, so that tests are short.
fn options() -> Options {
    let (base, cap) = (Duration::from_millis(50), Duration::from_millis(200));
    let backoff = Backoff { jitter: Jitter::Full, base, cap };
    Options {
        attempts: Schedule::new(backoff, 3).unwrap(),
        busy_pause: Duration::from_millis(100),
        heartbeat: Duration::from_millis(300),
        ..Options::default()
    }
}

fn name() -> Scope {
    Scope::parse("mailer").unwrap()
}

fn once_each(events: &[Stored]) -> BTreeMap<String, i64> {
    events.iter().map(|event| (event.id.to_string(), 1)).collect()
}

pub(crate) async fn copies_and_competing_consumers_have_one_effect<W: World>() {
    let world = W::open().await;
    let ledger = Ledger::new();
    let consumer = || {
        let runs = ledger.runs.clone();
        let handler = move |tx: Tx<Transaction>, message: Arc<Message>| {
            runs.send_modify(|runs| *runs += 1);
            async move { act(tx, &message) }
        };
        Consumer::new(name(), ledger.database(), handler).options(options())
    };
    let events = turns(&world.topic(), 10, 3);
    let (stop, stopped) = watch::channel(false);
    let until_stopped = || {
        let mut stopped = stopped.clone();
        async move { drop(stopped.wait_for(|stop| *stop).await) }
    };
    let (one, other) = (world.source().await, world.source().await);
    let sending = async {
        // Another sink, so that even a broker that drops copies sees several connections send.
        for sink in [world.sink(), world.sink()] {
            send(&sink, &events).await;
        }
        ledger.until(events.len()).await;
        // Whatever comes again comes now.
        sleep(W::PATIENCE.unwrap_or(Duration::from_millis(500)) + Duration::from_millis(500)).await;
        stop.send(true).unwrap();
    };
    let (one, other, ()) = tokio::join!(
        consumer().run(one, until_stopped()),
        consumer().run(other, until_stopped()),
        sending
    );
    one.unwrap();
    other.unwrap();
    assert_eq!(ledger.effects(), once_each(&events));
}

/// How many effects each message has, with names found like this, once so many messages had one.
pub(crate) async fn effects_of(
    source: impl Source,
    naming: Naming,
    messages: usize,
) -> BTreeMap<String, i64> {
    let ledger = Ledger::new();
    let handler = |tx, message: Arc<Message>| async move { act(tx, &message) };
    let consumer = Consumer::new(name(), ledger.database(), handler).naming(naming);
    let enough = async {
        ledger.until(messages).await;
        sleep(Duration::from_millis(500)).await;
    };
    consumer.run(source, enough).await.unwrap();
    ledger.effects()
}

/// Keeps dead letters in memory.
#[derive(Clone, Default)]
struct Letters(Arc<Mutex<Vec<Stored>>>);

impl Sink for Letters {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        self.0.lock().unwrap().extend_from_slice(events);
        Ok(vec![Verdict::Taken; events.len()])
    }
}

pub(crate) async fn a_message_nobody_can_act_on_is_a_dead_letter_and_in_nobodys_way<W: World>() {
    let world = W::open().await;
    let ledger = Ledger::new();
    let mut events = turns(&world.topic(), 5, 1);
    events[2].payload = "poison".into();
    let letters = Letters::default();
    let runs = ledger.runs.clone();
    let handler = move |tx: Tx<Transaction>, message: Arc<Message>| {
        let runs = runs.clone();
        async move {
            if message.payload == "poison" {
                runs.send_modify(|runs| *runs += 1);
                return Err("it cannot be read".into());
            }
            act(tx, &message)
        }
    };
    let consumer = Consumer::new(name(), ledger.database(), handler)
        .options(options())
        .dead_letters(DeadLetters::sink(letters.clone(), "dead"));
    send(&world.sink(), &events).await;
    let enough = async {
        ledger.until(4).await;
        ledger.until_run(3).await;
        // The broker would deliver it again if it had not been acknowledged.
        sleep(W::PATIENCE.unwrap_or(Duration::from_millis(500)) + Duration::from_millis(500)).await;
    };
    consumer.run(world.source().await, enough).await.unwrap();
    let poison = events.remove(2);
    assert_eq!(ledger.effects(), once_each(&events));
    assert_eq!(*ledger.runs.borrow(), 3, "it is tried three times");
    let letters = letters.0.lock().unwrap();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert_eq!((letters[0].topic.as_str(), &letters[0].payload), ("dead", &poison.payload));
    let reason = letters[0].headers.iter().find(|header| header.name == REASON_HEADER);
    assert!(!reason.unwrap().value.is_empty());
}

pub(crate) async fn a_server_killed_in_mid_work_leaves_one_effect<W: World>() {
    let mut world = W::alone().await;
    let ledger = Ledger::new();
    let events = turns(&world.topic(), 8, 1);
    send(&world.sink(), &events).await;
    let (open, gate) = watch::channel(false);
    let runs = ledger.runs.clone();
    let handler = move |tx: Tx<Transaction>, message: Arc<Message>| {
        let (runs, mut gate) = (runs.clone(), gate.clone());
        async move {
            runs.send_modify(|runs| *runs += 1);
            gate.wait_for(|open| *open).await?;
            act(tx, &message)
        }
    };
    let consumer = Consumer::new(name(), ledger.database(), handler).options(options());
    let source = world.source().await;
    let breaking = async {
        // SQLite lets one transaction write at a time, so one handler is in its midst.
        ledger.until_run(1).await;
        world.server().kill().await;
        open.send(true).unwrap();
        world.server().revive().await;
        ledger.until(events.len()).await;
        sleep(W::PATIENCE.unwrap_or(Duration::from_millis(500)) + Duration::from_millis(500)).await;
    };
    consumer.run(source, breaking).await.unwrap();
    assert_eq!(ledger.effects(), once_each(&events));
}
