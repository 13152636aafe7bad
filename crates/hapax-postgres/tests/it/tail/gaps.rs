//! Positions that are given and not yet, or never, committed, with a stream in between.

use hapax_postgres::tail::TailOptions;

use super::{Place, Scene, patient, run};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_commits_late_is_streamed_late_and_not_lost() {
    let mut scene = Scene::new().await;
    let late = scene.transaction().await;
    run(&late, "SELECT hapax.emit('t', 'late', 'late')").await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'quick', 'quick')").await;
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
async fn an_event_below_the_window_is_found_before_the_next_of_its_key() {
    let options = TailOptions { window_events: 10, ..patient() };
    let mut scene = Scene::on(Place::new().await, options).await;
    let (late, quick) = (scene.transaction().await, scene.client().await);
    run(&late, "SELECT hapax.emit('t', 'late', 'late')").await;
    for round in 0..30 {
        run(&quick, &format!("SELECT hapax.emit('t', 'quick', '{round}')")).await;
        assert_eq!(scene.look_for(1).await, [round.to_string()]);
    }
    let before = scene.tail.status();
    assert!(before.stream_looks >= 30, "a gap below does not send all to the table");
    run(&late, "COMMIT").await;
    run(&quick, "SELECT hapax.emit('t', 'late', 'next')").await;
    assert_eq!(scene.look_for(2).await, ["late", "next"]);
    assert!(scene.reader.gaps().is_empty());
    assert_eq!(scene.low(), 32);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_open_when_the_stream_began_is_not_lost() {
    let place = Place::new().await;
    place.outbox().await;
    let (late, mut scene) = (place.client().await, Scene::on(place, patient()).await);
    run(&late, "BEGIN; SELECT hapax.emit('t', 'k', 'early')").await;
    assert!(scene.cut().await > 0);
    // The next stream begins when this transaction has ended: meanwhile the table is read.
    run(&scene.client().await, "SELECT hapax.emit('t', 'quick', 'quick')").await;
    assert_eq!(scene.look_for(1).await, ["quick"]);
    run(&late, "COMMIT").await;
    assert_eq!(scene.look_for(1).await, ["early"]);
    super::streaming(&scene.tail).await;
    run(&late, "SELECT hapax.emit('t', 'k', 'later')").await;
    assert_eq!(scene.look_for(1).await, ["later"]);
    assert_eq!(scene.low(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rolled_back_dies_and_what_was_prepared_does_not() {
    let mut scene = Scene::new().await;
    let (prepared, client) = (scene.transaction().await, scene.client().await);
    let name = &scene.place.name.clone();
    run(&prepared, "SELECT hapax.emit('t', 'p', 'prepared')").await;
    run(&prepared, &format!("PREPARE TRANSACTION '{name}'")).await;
    run(&client, "BEGIN; SELECT hapax.emit('t', 'k', 'never'); ROLLBACK").await;
    run(&client, "SELECT hapax.emit('t', 'k', 'one')").await;
    assert_eq!(scene.look().await, ["one"]);
    for _ in 0..5 {
        assert!(scene.look().await.is_empty());
    }
    assert!(scene.reader.gaps().contains(1), "the prepared one may still commit");
    run(&client, &format!("COMMIT PREPARED '{name}'")).await;
    assert_eq!(scene.look_until_complete().await, ["prepared"]);
    assert_eq!(scene.low(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_is_not_on_disk_is_not_given_up() {
    let mut scene = Scene::new().await;
    let (late, quick) = (scene.client().await, scene.client().await);
    run(&late, "SET synchronous_commit = off").await;
    for round in 1..=20 {
        run(&late, "BEGIN; SELECT hapax.emit('t', 'late', 'late')").await;
        run(&quick, "SELECT hapax.emit('t', 'quick', 'quick')").await;
        assert_eq!(scene.look_for(1).await, ["quick"]);
        scene.list().await;
        run(&late, "COMMIT").await;
        scene.list().await;
        assert_eq!(scene.look().await, ["late"], "nobody has it any more: this look decides");
        assert_eq!(scene.low(), 2 * round);
    }
}
