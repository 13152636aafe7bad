//! Whatever writers do and whatever becomes of the stream: everything comes, each key in order, and
//! all of it is final in the end.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use fastrand::Rng;
use hapax_core::outbox::{EventBatch, OutboxLog as _, ReadLimits, poll};
use hapax_postgres::tail::TailOptions;
use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::Client;

use super::{PATIENCE, Place, Scene, run};

const WRITERS: u64 = 6;
const TRANSACTIONS: usize = 40;
const KEYS: u8 = 5;

#[tokio::test(flavor = "multi_thread")]
async fn every_event_comes_in_order_and_is_final_in_the_end() {
    for (seed, window_events) in [(1, 50_000), (2, 20), (3, 3)] {
        timeout(PATIENCE, history(seed, window_events)).await.unwrap();
    }
}

async fn history(seed: u64, window_events: usize) {
    let mut rng = Rng::with_seed(seed);
    // Looks do with what there is, so that old answers are given too.
    let patience = std::time::Duration::from_millis(1);
    let options = TailOptions { window_events, patience, ..TailOptions::default() };
    let mut scene = Scene::on(Place::new().await, options).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (client, name) = (scene.client().await, format!("{}_{writer}", scene.place.name));
        writers.spawn(write(client, Rng::with_seed(seed * 1000 + writer), name));
    }
    let mut seen = Deliveries::default();
    let mut quiet = 0;
    while quiet < 20 || !scene.reader.gaps().is_empty() {
        while writers.try_join_next().is_some() {}
        match rng.u8(..) {
            0..3 => {
                seen.in_hand.clear();
                scene.restart().await;
            }
            3..5 => _ = scene.cut().await,
            _ => {}
        }
        let rows = [2, 10, 2000][rng.usize(..3)];
        let limits = ReadLimits { rows, ..ReadLimits::default() };
        let batch = poll(&scene.tail, "sink", &mut scene.reader, limits).await.unwrap().unwrap();
        quiet = if batch.events.is_empty() && writers.is_empty() { quiet + 1 } else { 0 };
        seen.take(batch);
        seen.acknowledge(&mut scene, &mut rng).await;
    }
    seen.acknowledge_all(&mut scene).await;
    let text = "SELECT position, key FROM hapax.outbox ORDER BY position";
    let rows = scene.client().await.query(text, &[]).await.unwrap();
    let mut committed: HashMap<String, Vec<i64>> = HashMap::new();
    for row in &rows {
        committed.entry(row.get(1)).or_default().push(row.get(0));
    }
    assert_eq!(seen.first, committed, "seed {seed}: all of it, each key in order");
    let last: i64 = rows.last().unwrap().get(0);
    assert!(scene.reader.lanes().all(|held| held.low == last), "and all of it is final");
    assert!(scene.tail.status().stream_looks > 0, "the stream had a part in it");
}

/// What was delivered.
#[derive(Default)]
struct Deliveries {
    known: HashSet<i64>,
    /// By key, in the order in which each came first.
    first: HashMap<String, Vec<i64>>,
    in_hand: Vec<(hapax_core::outbox::Lane, i64)>,
}

impl Deliveries {
    fn take(&mut self, batch: EventBatch) {
        if batch.restarted {
            self.in_hand.clear();
        }
        for delivery in batch.events {
            let event = delivery.event;
            self.in_hand.push((event.lane, event.position));
            if self.known.insert(event.position) {
                self.first.entry(event.key).or_default().push(event.position);
            }
        }
    }

    /// Some of what is in hand, in any order.
    async fn acknowledge(&mut self, scene: &mut Scene, rng: &mut Rng) {
        rng.shuffle(&mut self.in_hand);
        let some = rng.usize(..=self.in_hand.len());
        self.acknowledge_from(scene, some).await;
    }

    async fn acknowledge_all(&mut self, scene: &mut Scene) {
        self.acknowledge_from(scene, 0).await;
    }

    async fn acknowledge_from(&mut self, scene: &mut Scene, from: usize) {
        for (lane, position) in self.in_hand.drain(from..) {
            scene.reader.acknowledge(lane, position);
        }
        let progress = scene.reader.progress();
        let lost = scene.tail.acknowledge("sink", progress.clone()).await.unwrap();
        scene.reader.stored(&progress, &lost);
    }
}

/// Emits, and commits, rolls back, or prepares and then either.
async fn write(client: Client, mut rng: Rng, name: String) {
    let client = Arc::new(client);
    for _ in 0..TRANSACTIONS {
        let durable = if rng.u8(..4) == 0 { "off" } else { "on" };
        run(&client, &format!("BEGIN; SET LOCAL synchronous_commit = {durable}")).await;
        let mut keys: Vec<u8> = (0..rng.u8(1..4)).map(|_| rng.u8(..KEYS)).collect();
        keys.sort_unstable();
        for key in keys {
            run(&client, &format!("SELECT hapax.emit('t', 'k{key}', '{{}}')")).await;
            if rng.u8(..8) == 0 {
                run(&client, "SAVEPOINT s; SELECT hapax.emit('t', 'k9', '{}'); ROLLBACK TO s")
                    .await;
            }
        }
        for _ in 0..rng.u8(..4) {
            tokio::task::yield_now().await;
            run(&client, "SELECT").await;
        }
        let end = if rng.u8(..4) == 0 { "ROLLBACK" } else { "COMMIT" };
        if durable == "on" && rng.u8(..6) == 0 {
            run(&client, &format!("PREPARE TRANSACTION '{name}'")).await;
            run(&client, &format!("{end} PREPARED '{name}'")).await;
        } else {
            run(&client, end).await;
        }
    }
}
