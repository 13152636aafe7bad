//! Segments: filled in turn, emptied whole, and never a dead row.

use hapax_core::outbox::OutboxLog as _;

use super::{Scene, run, turn_over};

const ROWS: &str = "SELECT count(*) FROM hapax.outbox";

#[tokio::test(flavor = "multi_thread")]
async fn a_held_snapshot_leaves_no_dead_row_in_the_log() {
    let mut scene = Scene::new().await;
    let held = scene.postgres.client().await;
    run(&held, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM hapax.outbox").await;
    let client = scene.postgres.client().await;
    // The held snapshot has locks on every segment, so none is emptied; none has anything dead.
    for _ in 0..3 {
        run(&client, "SELECT hapax.emit('t', 'k', 'x') FROM generate_series(1, 100)").await;
        assert_eq!(scene.look_until_complete().await.len(), 100);
        turn_over(&scene.postgres).await;
        assert_eq!(scene.outbox.retire(1000).await.unwrap().events, 0, "a reader is in the way");
    }
    run(&held, "ROLLBACK").await;
    let dead = "SELECT coalesce(sum(n_dead_tup + n_tup_upd + n_tup_del), 0)::bigint \
                FROM pg_stat_all_tables WHERE schemaname = 'hapax' AND relname ~ '^outbox_[0-9]+$'";
    assert_eq!(scene.postgres.number(dead).await, 0);
    let mut retired = 0;
    while retired < 300 {
        retired += scene.outbox.retire(1000).await.unwrap().events;
    }
    assert_eq!(scene.postgres.number(ROWS).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ring_is_used_again_while_old_events_are_still_needed() {
    let mut scene = Scene::new().await;
    let client = scene.postgres.client().await;
    for round in 0..20 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round}')")).await;
        turn_over(&scene.postgres).await;
        assert_eq!(scene.outbox.retire(1000).await.unwrap().events, 0, "nobody has it yet");
    }
    let expected: Vec<_> = (0..20).map(|round| round.to_string()).collect();
    assert_eq!(scene.look_until_complete().await, expected);
    run(&client, "SELECT hapax.emit('t', 'k', 'last')").await;
    while scene.postgres.number(ROWS).await > 2 {
        scene.outbox.retire(1000).await.unwrap();
    }
    scene.restart().await;
    assert_eq!(scene.look_until_complete().await, ["last"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_too_large_together_are_refused() {
    let scene = Scene::new().await;
    let client = scene.postgres.client().await;
    for (bytes, refused) in [(16_383, false), (16_384, true)] {
        let text = format!(
            "SELECT hapax.emit('t', 'k', '', jsonb_build_object('h', repeat('x', {bytes})))"
        );
        let answer = client.batch_execute(&text).await;
        let code = answer.err().and_then(|error| error.code().map(|code| code.code().to_owned()));
        assert_eq!(code.as_deref(), refused.then_some("HX004"), "{bytes}");
    }
}
