//! Positions that are given and not yet, or never, committed.

use super::{Scene, run};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_read_late_and_not_lost() {
    let mut scene = Scene::new().await;
    let late = scene.transaction().await;
    run(&late, "SELECT hapax.emit('t', 'late', 'late')").await;
    let quick = scene.postgres.client().await;
    run(&quick, "SELECT hapax.emit('t', 'quick', 'quick')").await;
    assert_eq!(scene.look().await, ["quick"], "it waits for nobody else's key");
    for _ in 0..5 {
        assert!(scene.look().await.is_empty());
    }
    assert_eq!(scene.low(), 0, "nothing above the missing one is final");
    run(&late, "COMMIT").await;
    assert_eq!(scene.look().await, ["late"]);
    assert_eq!(scene.low(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_restarts_while_one_is_missing_does_not_lose_it() {
    let mut scene = Scene::new().await;
    let late = scene.transaction().await;
    run(&late, "SELECT hapax.emit('t', 'late', 'late')").await;
    run(&scene.postgres.client().await, "SELECT hapax.emit('t', 'quick', 'quick')").await;
    assert_eq!(scene.look().await, ["quick"]);
    scene.restart().await;
    run(&late, "COMMIT").await;
    assert_eq!(scene.look().await, ["late", "quick"], "what was not final is read again, in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_key_keep_their_order_whoever_began_first() {
    let mut scene = Scene::new().await;
    // The one that began first, and has the lower transaction id, touches the key last.
    let first = scene.transaction().await;
    run(&first, "SELECT pg_current_xact_id()").await;
    let second = scene.transaction().await;
    run(&second, "SELECT pg_current_xact_id(); SELECT hapax.emit('t', 'k', 'one')").await;
    run(&second, "COMMIT").await;
    run(&first, "SELECT hapax.emit('t', 'k', 'two'); COMMIT").await;
    assert_eq!(scene.look().await, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_never_emits_stalls_nothing() {
    let mut scene = Scene::new().await;
    let stranger = scene.transaction().await;
    run(&stranger, "CREATE TABLE foreign_work (n int); INSERT INTO foreign_work VALUES (1)").await;
    let emitting = scene.postgres.client().await;
    run(&emitting, "SELECT hapax.emit('t', 'k', 'one')").await;
    run(&emitting, "BEGIN; SELECT hapax.emit('t', 'k', 'never'); ROLLBACK").await;
    run(&emitting, "SELECT hapax.emit('t', 'k', 'two')").await;
    assert_eq!(scene.look_until_complete().await, ["one", "two"]);
    assert_eq!(scene.low(), 3, "what was rolled back is known never to come");
    run(&stranger, "ROLLBACK").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_of_an_earlier_segment_keeps_no_later_gap_alive() {
    let mut scene = Scene::new().await;
    let long = scene.transaction().await;
    run(&long, "SELECT hapax.emit('t', 'long', 'long')").await;
    super::turn_over(&scene.postgres).await;
    let quick = scene.postgres.client().await;
    run(&quick, "BEGIN; SELECT hapax.emit('t', 'k', 'never'); ROLLBACK").await;
    run(&quick, "SELECT hapax.emit('t', 'k', 'one')").await;
    let never = 65_537;
    assert_eq!(scene.look().await, ["one"]);
    assert!(scene.reader.gaps().contains(never) && scene.reader.gaps().contains(1));
    while scene.reader.gaps().contains(never) {
        assert!(scene.look().await.is_empty());
    }
    assert!(scene.reader.gaps().contains(1), "the long one may still commit");
    run(&long, "COMMIT").await;
    assert_eq!(scene.look_until_complete().await, ["long"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_crosses_into_a_segment_is_announced_for_it() {
    let mut scene = Scene::new().await;
    let crossing = scene.transaction().await;
    run(&crossing, "SELECT hapax.emit('t', 'k', 'one')").await;
    super::turn_over(&scene.postgres).await;
    run(&crossing, "SELECT hapax.emit('t', 'k', 'two')").await;
    run(&scene.postgres.client().await, "SELECT hapax.emit('t', 'other', 'other')").await;
    for _ in 0..5 {
        scene.look().await;
    }
    assert!(scene.reader.gaps().contains(1) && scene.reader.gaps().contains(65_537));
    run(&crossing, "COMMIT").await;
    assert_eq!(scene.look_until_complete().await, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_savepoint_that_is_rolled_back_leaves_a_gap_that_dies() {
    let mut scene = Scene::new().await;
    let writer = scene.transaction().await;
    run(&writer, "SAVEPOINT s; SELECT hapax.emit('t', 'k', 'never'); ROLLBACK TO s").await;
    let other = scene.postgres.client().await;
    run(&other, "SELECT hapax.emit('t', 'k', 'one')").await;
    assert_eq!(scene.look_until_complete().await, ["one"], "its lock went with the savepoint");
    run(&writer, "SELECT hapax.emit('t', 'k', 'two'); COMMIT").await;
    assert_eq!(scene.look_until_complete().await, ["two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reconnected_reader_begins_again_from_what_is_stored() {
    let mut scene = Scene::new().await;
    let late = scene.transaction().await;
    run(&late, "SELECT hapax.emit('t', 'late', 'late')").await;
    let quick = scene.postgres.client().await;
    run(&quick, "SELECT hapax.emit('t', 'quick', 'quick')").await;
    assert_eq!(scene.look().await, ["quick"]);
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE \
                '%One snapshot%' AND datname = current_database() AND pid <> pg_backend_pid()";
    assert_eq!(scene.postgres.number(kill).await, 1);
    let limits = hapax_core::outbox::ReadLimits::default();
    let restarted = loop {
        let polled = hapax_core::outbox::poll(&scene.outbox, "sink", &mut scene.reader, limits);
        if let Ok(batch) = polled.await {
            break batch.unwrap();
        }
    };
    assert!(restarted.restarted, "the server may have forgotten what was not on disk");
    assert_eq!(scene.look().await, ["quick"], "what was not final comes again");
    run(&late, "COMMIT").await;
    assert_eq!(scene.look().await, ["late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_the_sequence_is_a_gap_that_dies() {
    let mut scene = Scene::new().await;
    let client = scene.postgres.client().await;
    run(&client, "SELECT hapax.emit('t', 'k', 'one')").await;
    run(&client, "SELECT setval('hapax.outbox_positions', 1000000000000)").await;
    run(&client, "SELECT hapax.emit('t', 'k', 'two')").await;
    assert_eq!(scene.look().await, ["one", "two"]);
    assert!(scene.reader.gaps().len() <= 3);
    assert!(scene.look_until_complete().await.is_empty());
    assert_eq!(scene.low(), 1_000_000_000_001);
}
