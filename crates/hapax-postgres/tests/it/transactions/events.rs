//! Events that a transaction emits in Rust, beside those of the SQL function.

use std::sync::Arc;

use hapax_core::Event;
use tokio::sync::Semaphore;

use super::{
    doors::{BoxError, Door},
    through_every_door,
    world::{World, answer, is_stored, options, somebody_waits},
};
use crate::outbox::turn_over;

through_every_door!(
    events_that_do_not_fit_into_a_segment_are_written_into_the_next_together,
    a_process_that_was_away_finds_the_segment_that_is_written_now,
    an_event_takes_the_lock_that_sql_takes_for_its_key,
    a_writer_is_announced_before_it_has_its_key_or_its_position,
    events_of_nobodys_transaction_are_written_together,
);

async fn emit<D: Door>(world: &World<D>, key: &str, events: usize) {
    let emitted = world.run(key, move |mut tx, key| async move {
        for at in 0..events {
            D::emit(&mut tx, Event::new("t", key.as_str(), at.to_string()).unwrap());
        }
        Ok::<_, BoxError>(answer(201))
    });
    assert!(is_stored(&emitted.await));
}

const MISPLACED: &str = "SELECT count(*) FROM hapax.outbox WHERE segment <> (position >> 16) & 15 OR lane <> hapax.outbox_lane(topic, key)";

async fn events_that_do_not_fit_into_a_segment_are_written_into_the_next_together<D: Door>() {
    let world = World::<D>::new().await;
    world.postgres.number("SELECT setval('hapax.outbox_positions', 65533)").await;
    emit(&world, "k", 300).await;
    let told = "SELECT count(*) FROM (SELECT convert_from(payload, 'UTF8')::int8 AS at, \
                row_number() OVER (ORDER BY position) - 1 AS place FROM hapax.outbox) AS e WHERE at = place";
    assert_eq!(world.postgres.number(told).await, 300);
    assert_eq!(world.postgres.number(MISPLACED).await, 0);
    let next = "SELECT count(*) FROM hapax.outbox WHERE segment = 1";
    assert_eq!(world.postgres.number(next).await, 300);
}

async fn a_process_that_was_away_finds_the_segment_that_is_written_now<D: Door>() {
    let world = World::<D>::new().await;
    for at in 0..3 {
        emit(&world, &format!("k{at}"), 1).await;
        for _ in 0..7 {
            turn_over(&world.postgres).await;
        }
    }
    assert_eq!((world.events().await, world.postgres.number(MISPLACED).await), (3, 0));
}

async fn an_event_takes_the_lock_that_sql_takes_for_its_key<D: Door>() {
    let world = Arc::new(World::<D>::with(options(), None).await);
    let other = world.postgres.client().await;
    other.batch_execute("BEGIN; SELECT hapax.emit('t', 'same', 'first')").await.unwrap();
    let own = Arc::clone(&world);
    let emitting = tokio::spawn(async move { emit(&own, "same", 1).await });
    somebody_waits(&world).await;
    other.batch_execute("COMMIT").await.unwrap();
    emitting.await.unwrap();
    let order = "SELECT convert_from(payload, 'UTF8') FROM hapax.outbox ORDER BY position";
    let rows = other.query(order, &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<String>>(), ["first", "0"]);
}

async fn a_writer_is_announced_before_it_has_its_key_or_its_position<D: Door>() {
    let world = Arc::new(World::<D>::with(options(), None).await);
    let other = world.postgres.client().await;
    other.batch_execute("BEGIN; SELECT hapax.emit('t', 'same', 'first')").await.unwrap();
    let (own, emitted) = (Arc::clone(&world), Arc::new(Semaphore::new(0)));
    let told = Arc::clone(&emitted);
    tokio::spawn(async move {
        emit(&own, "same", 1).await;
        told.add_permits(1);
    });
    somebody_waits(&world).await;
    let announced = "SELECT count(DISTINCT pid) FROM pg_locks WHERE relation = 'hapax.outbox_0'::regclass \
                     AND mode = 'RowExclusiveLock' AND granted";
    let last = "SELECT pg_sequence_last_value('hapax.outbox_positions')";
    assert_eq!(world.postgres.number(announced).await, 2);
    assert_eq!(world.postgres.number(last).await, 1);
    other.batch_execute("ROLLBACK").await.unwrap();
    emitted.acquire().await.unwrap().forget();
    assert_eq!(world.postgres.number(last).await, 2);
}

async fn events_of_nobodys_transaction_are_written_together<D: Door>() {
    let world = World::<D>::new().await;
    let database = D::open(&world.postgres.config(), None);
    world.postgres.number("SELECT setval('hapax.outbox_positions', 65300)").await;
    let mut expected = 0;
    for events in [0, 1, 200, 300] {
        let events: Vec<_> =
            (0..events).map(|at| Event::new("t", "k", at.to_string()).unwrap()).collect();
        expected += i64::try_from(events.len()).unwrap();
        D::emit_alone(&database, events).await.unwrap();
        assert_eq!(world.events().await, expected);
    }
    assert_eq!(world.postgres.number(MISPLACED).await, 0);
    let swapped = "SELECT count(*) FROM (SELECT convert_from(payload, 'UTF8')::int8 AS at, \
                   lag(convert_from(payload, 'UTF8')::int8) OVER (ORDER BY position) AS before FROM hapax.outbox) AS e \
                   WHERE at <> before + 1 AND at <> 0";
    assert_eq!(world.postgres.number(swapped).await, 0);
}
