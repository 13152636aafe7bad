//! Streams that end, and begin again.

use std::sync::Arc;

use hapax_postgres::tail::{Tail, TailError, TailMode, TailOptions, TailReason};
use hapax_services::postgres::Mode as Stop;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

use super::{PATIENCE, Place, Scene, patient, reading_the_table, run, start, streaming};

/// Watches beside what follows: a busy test looks so late that the stream may be back.
fn watch_for_the_table(tail: &Tail) -> JoinHandle<()> {
    let tail = tail.clone();
    tokio::spawn(async move { reading_the_table(&tail).await })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_is_replaced_and_nothing_is_lost() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    for round in 0..3 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round} before')")).await;
        assert_eq!(scene.look_for(1).await, [format!("{round} before")]);
        assert_eq!(scene.cut().await, 1);
        reading_the_table(&scene.tail).await;
        let TailMode::Table(TailReason::Lost { cause }) = scene.tail.status().mode else {
            panic!()
        };
        assert!(cause.contains("administrator"), "{cause}");
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round} meanwhile')")).await;
        assert_eq!(scene.look_for(1).await, [format!("{round} meanwhile")]);
        streaming(&scene.tail).await;
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round} after')")).await;
        let before = scene.tail.status();
        assert_eq!(scene.look_for(1).await, [format!("{round} after")]);
        assert!(scene.tail.status().stream_looks > before.stream_looks, "and it is used");
    }
    assert_eq!(scene.low(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_is_dropped_is_made_again() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    let lost = watch_for_the_table(&scene.tail);
    run(&client, "DROP PUBLICATION hapax_outbox; SELECT hapax.emit('t', 'k', 'one')").await;
    assert_eq!(scene.look_for(1).await, ["one"]);
    lost.await.unwrap();
    streaming(&scene.tail).await;
    run(&client, "SELECT hapax.emit('t', 'k', 'two')").await;
    assert_eq!(scene.look_for(1).await, ["two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_tail_leaves_no_slot_behind() {
    let scene = Scene::new().await;
    let slots = "SELECT count(*) FROM pg_replication_slots WHERE database = current_database()";
    assert_eq!(scene.place.number(slots).await, 1);
    let Scene { place, tail, .. } = scene;
    let clone = tail.clone();
    drop(tail);
    assert_eq!(clone.status().mode, TailMode::Streaming);
    drop(clone);
    let gone = async { while place.number(slots).await > 0 {} };
    timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_followed_again() {
    let server = spawn_blocking(|| start("max_slot_wal_keep_size=1GB")).await.unwrap();
    let mut scene = Scene::on(Place::on(Arc::new(server)).await, patient()).await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'before')").await;
    assert_eq!(scene.look_for(1).await, ["before"]);
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'unread')").await;
    scene.place.restart(Stop::Immediate).await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'after')").await;
    assert_eq!(scene.look_for(2).await, ["unread", "after"]);
    // A crash leaves positions out.
    while !scene.reader.gaps().is_empty() {
        assert!(scene.look().await.is_empty());
    }
    streaming(&scene.tail).await;
    let lost = watch_for_the_table(&scene.tail);
    scene.place.restart(Stop::Fast).await;
    lost.await.unwrap();
    streaming(&scene.tail).await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'last')").await;
    assert_eq!(scene.look_for(1).await, ["last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_would_keep_too_much_is_given_up_by_the_server_and_made_again() {
    // Set by the file, so that it can be changed while the server runs.
    let server = Arc::new(spawn_blocking(|| start("max_wal_size=32MB")).await.unwrap());
    let place = Place::on(server).await;
    let outbox = place.outbox().await;
    let refused = Tail::follow(outbox, &place.config(), TailOptions::default()).await;
    assert!(matches!(refused.unwrap_err(), TailError::Unlimited), "it could fill the disk");
    let operator = place.client().await;
    run(&operator, "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'").await;
    run(&operator, "SELECT pg_reload_conf()").await;
    let limited = async {
        let limit = "SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size'";
        while place.number(limit).await == -1 {}
    };
    timeout(PATIENCE, limited).await.unwrap();
    let mut scene = Scene::on(place, patient()).await;
    // As long as it runs, the server keeps its log from where it began.
    let long = scene.transaction().await;
    run(&long, "CREATE TABLE long_work (n int)").await;
    let lost = async {
        while scene.tail.status().mode == TailMode::Streaming {
            run(&operator, "SELECT pg_logical_emit_message(false, 'bulk', repeat('x', 4000000))")
                .await;
            run(&operator, "SELECT pg_switch_wal()").await;
            run(&operator, "CHECKPOINT").await;
        }
    };
    timeout(PATIENCE, lost).await.unwrap();
    run(&operator, "SELECT hapax.emit('t', 'k', 'meanwhile')").await;
    assert_eq!(scene.look_for(1).await, ["meanwhile"], "the table is always there");
    run(&long, "ROLLBACK").await;
    streaming(&scene.tail).await;
    run(&operator, "SELECT hapax.emit('t', 'k', 'after')").await;
    assert_eq!(scene.look_for(1).await, ["after"]);
}
