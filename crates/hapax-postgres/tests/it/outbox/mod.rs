//! The outbox as a relay reads it: the suite for all of them, and what is PostgreSQL's own.

mod controls;
mod gaps;
mod segments;
mod waking;

use hapax_core::{
    Owner,
    outbox::{
        Destination, Event, OutboxLog as _, ReadLimits, Reader, RelayLease, Start, Topics, poll,
    },
};
use hapax_postgres::{Outbox, OutboxOptions};
use hapax_verify::conformance::{Backend as _, outbox::OutboxBackend};
use tokio_postgres::Client;

use crate::backend::Postgres;

hapax_verify::outbox_conformance!(Log);

/// A database with the schema in it.
struct Log(Postgres);

impl OutboxBackend for Log {
    type Outbox = Outbox;

    async fn create() -> Self {
        Self(Postgres::migrated().await)
    }

    async fn open(&self) -> Outbox {
        open(&self.0).await
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

async fn open(postgres: &Postgres) -> Outbox {
    Outbox::connect(&postgres.config(), OutboxOptions::default()).await.unwrap()
}

/// The next event goes to the next segment.
pub(crate) async fn turn_over(postgres: &Postgres) {
    let next = "SELECT setval('hapax.outbox_positions', \
                ((coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0) >> 16) + 1) << 16)";
    postgres.number(next).await;
}

/// Emits through the SQL function, as any language does; keys in order, so that nobody waits for
/// anybody who waits.
pub(crate) async fn emit(client: &Client, events: &[Event]) {
    let mut events = events.to_vec();
    events.sort_by(|one, other| (one.topic(), one.key()).cmp(&(other.topic(), other.key())));
    for event in &events {
        let names: Vec<_> = event.headers().iter().map(|header| &*header.name).collect();
        let values = event.headers().iter().map(|header| String::from_utf8_lossy(&header.value));
        let values: Vec<_> = values.collect();
        let text = "SELECT hapax.emit($1, $2, $3::bytea, coalesce((SELECT jsonb_object_agg(h.name, h.value) \
                    FROM unnest($4::text[], $5::text[]) AS h(name, value)), '{}'), $6)";
        let (topic, key, payload) = (event.topic(), event.key(), &event.payload()[..]);
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&topic, &key, &payload, &names, &values, &event.payload_type()];
        client.execute(text, &params).await.unwrap();
    }
}

/// A database with one destination that wants everything, and somebody who reads for it.
struct Scene {
    postgres: Postgres,
    outbox: Outbox,
    reader: Reader,
}

impl Scene {
    async fn new() -> Self {
        let postgres = Postgres::empty().await;
        let outbox = open(&postgres).await;
        let sink = Destination::new("sink", Topics::all()).unwrap();
        outbox.register(sink, Start::Beginning).await.unwrap();
        let mut scene = Self { postgres, outbox, reader: Reader::new() };
        scene.restart().await;
        scene
    }

    /// Reads from what is stored, as a new relay would.
    async fn restart(&mut self) {
        let span = std::time::Duration::from_secs(30);
        let lease = RelayLease { destination: "sink".to_owned(), owner: Owner(1), span };
        self.reader = Reader::new();
        for leased in self.outbox.lease(lease).await.unwrap().unwrap().lanes {
            self.reader.add(leased);
        }
    }

    /// What one look brings, acknowledged at once.
    async fn look(&mut self) -> Vec<String> {
        let batch = poll(&self.outbox, "sink", &mut self.reader, ReadLimits::default()).await;
        let events = batch.unwrap().unwrap().events;
        for delivery in &events {
            self.reader.acknowledge(delivery.event.lane, delivery.event.position);
        }
        let progress = self.reader.progress();
        let lost = self.outbox.acknowledge("sink", progress.clone()).await.unwrap();
        assert!(lost.is_empty());
        self.reader.stored(&progress, &lost);
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).unwrap();
        events.iter().map(|delivery| text(&delivery.event.payload)).collect()
    }

    /// Looks until nothing is missing any more.
    async fn look_until_complete(&mut self) -> Vec<String> {
        let mut seen = self.look().await;
        while !self.reader.gaps().is_empty() {
            seen.extend(self.look().await);
        }
        seen
    }

    /// The lowest position that is not final in every lane.
    fn low(&self) -> i64 {
        self.reader.lanes().map(|held| held.low).min().unwrap()
    }

    /// A session with an open transaction.
    async fn transaction(&self) -> Client {
        let client = self.postgres.client().await;
        client.batch_execute("BEGIN").await.unwrap();
        client
    }
}

/// Runs this, which answers nothing.
async fn run(client: &Client, text: &str) {
    client.batch_execute(text).await.unwrap();
}
