//! Streams that are there, and late or early.

use std::{process::Command, sync::Arc, time::Duration};

use hapax_postgres::tail::{TailMode, TailOptions, TailReason};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{PATIENCE, Place, Scene, patient, run, start, streaming};

const SENDER: &str = "SELECT pid::bigint FROM pg_stat_replication AS r \
                      JOIN pg_stat_activity AS a USING (pid) WHERE a.datname = current_database()";

/// Stops the process that streams until this is dropped.
struct Frozen(i64);

impl Frozen {
    async fn sender(place: &Place) -> Self {
        let pid = place.number(SENDER).await;
        signal("-STOP", pid);
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", self.0);
    }
}

fn signal(name: &str, pid: i64) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_stream_is_not_waited_for_and_taken_up_again() {
    let mut scene = Scene::on(Place::new().await, TailOptions::default()).await;
    let client = scene.client().await;
    let frozen = Frozen::sender(&scene.place).await;
    for round in 0..5 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round}')")).await;
        assert_eq!(scene.look_for(1).await, [round.to_string()]);
    }
    assert_eq!(scene.tail.status().mode, TailMode::Table(TailReason::Behind));
    drop(frozen);
    streaming(&scene.tail).await;
    let before = scene.tail.status();
    while scene.tail.status().stream_looks == before.stream_looks {
        run(&client, "SELECT hapax.emit('t', 'k', 'next')").await;
        assert_eq!(scene.look_for(1).await, ["next"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_falls_silent_is_replaced() {
    let heartbeat_every = Duration::from_millis(300);
    let options = TailOptions { heartbeat_every, ..TailOptions::default() };
    let mut scene = Scene::on(Place::new().await, options).await;
    let frozen = Frozen::sender(&scene.place).await;
    let lost = |mode: &TailMode| matches!(mode, TailMode::Table(TailReason::Lost { .. }));
    timeout(PATIENCE, scene.tail.until(lost)).await.unwrap();
    streaming(&scene.tail).await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'one')").await;
    assert_eq!(scene.look_for(1).await, ["one"]);
    drop(frozen);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_outbox_keeps_nothing_of_a_busy_servers_log() {
    let heartbeat_every = Duration::from_millis(100);
    let scene = Scene::on(Place::new().await, TailOptions { heartbeat_every, ..patient() }).await;
    let client = scene.client().await;
    run(&client, "CREATE TABLE work AS SELECT n FROM generate_series(1, 20000) AS n").await;
    let written = scene.place.number("SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint").await;
    let confirmed = async {
        let slot = "SELECT (confirmed_flush_lsn - '0/0')::bigint FROM pg_replication_slots \
                    WHERE database = current_database()";
        while scene.place.number(slot).await < written {}
    };
    timeout(PATIENCE, confirmed).await.unwrap();
    // What the last checkpoint or snapshot of the server needs is kept in any case.
    let measured = async {
        while scene.tail.status().kept_bytes == 0 {
            sleep(heartbeat_every).await;
        }
    };
    timeout(PATIENCE, measured).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_standby_is_not_shown_before_it_is_visible() {
    let server = spawn_blocking(|| start("max_slot_wal_keep_size=1GB")).await.unwrap();
    let mut scene = Scene::on(Place::on(Arc::new(server)).await, patient()).await;
    let (operator, writer) = (scene.client().await, scene.client().await);
    run(&operator, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    run(&operator, "SELECT pg_reload_conf()").await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let writing = tokio::spawn(async move {
        loop {
            run(&writer, "SELECT hapax.emit('t', 'k', 'one')").await;
        }
    });
    // The server takes its time to read its settings; what commits until then is not what is meant.
    let mut before = 0;
    let waits = async {
        while scene.place.number(waiting).await == 0 {
            before += scene.look().await.len();
        }
    };
    timeout(PATIENCE, waits).await.unwrap();
    let visible = scene.place.number("SELECT count(*) FROM hapax.outbox").await;
    let streamed = "SELECT count(*) FROM pg_replication_slots AS s \
                    WHERE s.confirmed_flush_lsn >= pg_current_wal_flush_lsn()";
    let came = async { while scene.place.number(streamed).await == 0 {} };
    timeout(PATIENCE, came).await.unwrap();
    let limits = hapax_core::outbox::ReadLimits::default();
    for _ in 0..5 {
        let look = hapax_core::outbox::poll(&scene.tail, "sink", &mut scene.reader, limits);
        before += look.await.unwrap().unwrap().events.len();
    }
    assert_eq!(i64::try_from(before).unwrap(), visible, "it may still be forgotten");
    run(&operator, "ALTER SYSTEM RESET synchronous_standby_names").await;
    run(&operator, "SELECT pg_reload_conf()").await;
    assert!(!scene.look_for(1).await.is_empty());
    writing.abort();
}
