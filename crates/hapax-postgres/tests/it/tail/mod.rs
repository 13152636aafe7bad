//! The outbox by logical replication: the suite for all outboxes, and what a stream can meet.

mod authentication;
mod gaps;
mod loss;
mod random;
mod refusals;
mod slow;
mod stream;

use std::{
    mem::ManuallyDrop,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use hapax_core::{
    Owner,
    outbox::{
        Destination, Event, OutboxLog as _, ReadLimits, Reader, RelayLease, Start, Topics, poll,
    },
};
use hapax_postgres::{
    Outbox, OutboxOptions,
    tail::{Tail, TailMode, TailOptions},
};
use hapax_services::postgres::{Mode as Stop, Server, Settings};
use hapax_verify::conformance::{Backend as _, outbox::OutboxBackend};
use tokio::time::timeout;
use tokio_postgres::Client;

use crate::{
    backend::Postgres,
    outbox::{emit, turn_over},
};

hapax_verify::outbox_conformance!(Log);

const PATIENCE: Duration = Duration::from_secs(60);

/// A database on a server whose log can be followed. It goes with the server: while a stream ends,
/// a database cannot be dropped.
struct Place {
    postgres: ManuallyDrop<Postgres>,
    /// Kept for as long as it is needed here.
    server: Arc<Server>,
}

impl Place {
    async fn new() -> Self {
        Self::on(shared()).await
    }

    async fn on(server: Arc<Server>) -> Self {
        let postgres = Postgres::empty_on(server.url().parse().unwrap()).await;
        Self { postgres: ManuallyDrop::new(postgres), server }
    }

    /// Stops the server, which nobody else may use, and starts it again.
    async fn restart(&mut self, how: Stop) {
        let server = Arc::get_mut(&mut self.server).unwrap();
        tokio::task::block_in_place(|| server.restart(how)).unwrap();
    }

    async fn outbox(&self) -> Outbox {
        Outbox::connect(&self.config(), OutboxOptions::default()).await.unwrap()
    }

    /// An outbox that is followed already.
    async fn tail(&self, options: TailOptions) -> Tail {
        let tail = Tail::follow(self.outbox().await, &self.config(), options).await.unwrap();
        streaming(&tail).await;
        tail
    }
}

impl Deref for Place {
    type Target = Postgres;

    fn deref(&self) -> &Postgres {
        &self.postgres
    }
}

/// Looks wait for the stream for as long as it takes, so that it answers them all.
fn patient() -> TailOptions {
    TailOptions { patience: PATIENCE, ..TailOptions::default() }
}

async fn streaming(tail: &Tail) {
    timeout(PATIENCE, tail.until(|mode| *mode == TailMode::Streaming)).await.unwrap();
}

async fn reading_the_table(tail: &Tail) {
    timeout(PATIENCE, tail.until(|mode| *mode != TailMode::Streaming)).await.unwrap();
}

/// A server for all tests that run at the same time; transactions can be prepared on it.
pub(crate) fn shared() -> Arc<Server> {
    static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = known.upgrade() {
        return server;
    }
    let server = Arc::new(start("max_slot_wal_keep_size=1GB"));
    *known = Arc::downgrade(&server);
    server
}

fn start(setting: &str) -> Server {
    let logical = ["wal_level=logical", "max_replication_slots=80", "max_wal_senders=80", setting];
    let others = ["max_prepared_transactions=20", "synchronous_commit=on"];
    let config = logical.iter().chain(&others).map(|&setting| setting.to_owned()).collect();
    Server::start(Settings { config, ..Settings::default() }).unwrap()
}

struct Log(Place);

impl OutboxBackend for Log {
    type Outbox = Tail;

    async fn create() -> Self {
        let place = Place::new().await;
        place.outbox().await;
        Self(place)
    }

    async fn open(&self) -> Tail {
        self.0.tail(patient()).await
    }

    async fn emit(&self, events: Vec<Event>) {
        let client = self.0.client().await;
        client.batch_execute("BEGIN").await.unwrap();
        emit(&client, &events).await;
        client.batch_execute("COMMIT").await.unwrap();
    }

    async fn roll_back(&self, events: Vec<Event>) {
        let client = self.0.client().await;
        client.batch_execute("BEGIN").await.unwrap();
        emit(&client, &events).await;
        client.batch_execute("ROLLBACK").await.unwrap();
    }

    async fn step_clock(&self, micros: i64) {
        self.0.step_clock(micros).await;
    }

    async fn turn_over(&self) {
        turn_over(&self.0).await;
    }
}

/// A database with one destination that wants everything, and somebody who follows it.
struct Scene {
    place: Place,
    tail: Tail,
    reader: Reader,
}

impl Scene {
    async fn new() -> Self {
        Self::on(Place::new().await, patient()).await
    }

    async fn on(place: Place, options: TailOptions) -> Self {
        let tail = place.tail(options).await;
        let sink = Destination::new("sink", Topics::all()).unwrap();
        tail.register(sink, Start::Beginning).await.unwrap();
        let mut scene = Self { place, tail, reader: Reader::new() };
        scene.restart().await;
        scene
    }

    /// Reads from what is stored, as a new relay would.
    async fn restart(&mut self) {
        let (destination, owner) = ("sink".to_owned(), Owner(1));
        let lease = RelayLease { destination, owner, span: PATIENCE };
        self.reader = Reader::new();
        for leased in self.tail.lease(lease).await.unwrap().unwrap().lanes {
            self.reader.add(leased);
        }
    }

    /// What one look brings, acknowledged at once; nothing if the server does not answer.
    async fn look(&mut self) -> Vec<String> {
        let batch = poll(&self.tail, "sink", &mut self.reader, ReadLimits::default()).await;
        let Ok(batch) = batch else { return Vec::new() };
        let events = batch.unwrap().events;
        for delivery in &events {
            self.reader.acknowledge(delivery.event.lane, delivery.event.position);
        }
        let progress = self.reader.progress();
        if let Ok(lost) = self.tail.acknowledge("sink", progress.clone()).await {
            assert!(lost.is_empty());
            self.reader.stored(&progress, &lost);
        }
        let text = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
        events.iter().map(|delivery| text(&delivery.event.payload)).collect()
    }

    /// Asks who writes, however often that was asked.
    async fn list(&mut self) {
        if self.reader.inquire_at_once() {
            let writers = self.tail.writers().await.unwrap();
            self.reader.listed(&writers);
        }
    }

    /// Looks until so many have come.
    async fn look_for(&mut self, count: usize) -> Vec<String> {
        let mut seen = Vec::new();
        let looking = async {
            while seen.len() < count {
                seen.extend(self.look().await);
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, looking).await.unwrap();
        seen
    }

    /// Looks until nothing is missing any more.
    async fn look_until_complete(&mut self) -> Vec<String> {
        let mut seen = self.look().await;
        while !self.reader.gaps().is_empty() {
            seen.extend(self.look().await);
        }
        seen
    }

    /// The lowest position that is final in every lane.
    fn low(&self) -> i64 {
        self.reader.lanes().map(|held| held.low).min().unwrap()
    }

    async fn client(&self) -> Client {
        self.place.client().await
    }

    /// A session with an open transaction.
    async fn transaction(&self) -> Client {
        let client = self.client().await;
        run(&client, "BEGIN").await;
        client
    }

    /// Ends the connection that streams, as an operator may; how many there were.
    async fn cut(&self) -> i64 {
        let text = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication AS r \
                    JOIN pg_stat_activity AS a USING (pid) WHERE a.datname = current_database()";
        self.place.number(text).await
    }
}

/// Runs this, which answers nothing.
async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap();
}
