//! What comes through the stream.

use hapax_core::outbox::{Lane, OutboxLog as _, ReadLimits, poll};
use hapax_postgres::tail::TailOptions;
use tokio::time::timeout;

use super::{PATIENCE, Place, Scene, patient, run};

#[tokio::test(flavor = "multi_thread")]
async fn events_come_through_the_stream_and_not_from_the_table() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    for round in 0..20 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round}')")).await;
        assert_eq!(scene.look().await, [round.to_string()]);
    }
    let status = scene.tail.status();
    assert_eq!((status.stream_looks, status.table_looks), (20, 0));
    assert_eq!(scene.low(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_wakes_whoever_waits_though_nobody_rang() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    // It also rings when the stream begins and when rings of others are listened for, once each.
    for round in 0..5 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round}')")).await;
        let woken = async {
            loop {
                scene.tail.rung().await;
                let seen = scene.look().await;
                if !seen.is_empty() {
                    break seen;
                }
            }
        };
        assert_eq!(timeout(PATIENCE, woken).await.unwrap(), [round.to_string()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_committed_before_the_stream_began_comes_from_the_table() {
    let place = Place::new().await;
    place.outbox().await;
    let client = place.client().await;
    run(&client, "SELECT hapax.emit('t', 'k', 'before')").await;
    let mut scene = Scene::on(place, patient()).await;
    run(&client, "SELECT hapax.emit('t', 'k', 'after')").await;
    assert_eq!(scene.look().await, ["before", "after"]);
    assert_eq!(scene.tail.status().table_looks, 1);
    run(&client, "SELECT hapax.emit('t', 'k', 'later')").await;
    assert_eq!(scene.look().await, ["later"]);
    let status = scene.tail.status();
    assert_eq!((status.stream_looks, status.table_looks), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_and_binary_events_come_as_the_table_has_them() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    run(
        &client,
        r#"
        SELECT hapax.emit('t', 'toasted', convert_to(string_agg(md5(n::text), ''), 'UTF8'))
        FROM generate_series(1, 32768) AS n;
        SELECT hapax.emit('t', 'compressed', convert_to(repeat('x', 1048576), 'UTF8'));
        SELECT hapax.emit('t', 'binary', decode('00ff7f80c3285c', 'hex'), '{}', 'application/octet-stream');
        SELECT hapax.emit('t', E'\u00e9\n''"', '', '{"b": "\" \\ \n \ud83d\ude00", "aa": "", "a": "1"}');
        "#,
    )
    .await;
    let limits = ReadLimits::default();
    let streamed = poll(&scene.tail, "sink", &mut scene.reader, limits).await.unwrap().unwrap();
    assert_eq!((streamed.events.len(), scene.tail.status().table_looks), (4, 0));
    scene.restart().await;
    let outbox = scene.place.outbox().await;
    let read = poll(&outbox, "sink", &mut scene.reader, limits).await.unwrap().unwrap();
    assert_eq!(streamed.events, read.events);
    assert!(read.events.iter().all(|one| one.event.lane == Lane::of("t", &one.event.key)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_ten_thousand_events_comes_whole_and_in_order() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, "SELECT hapax.emit('t', 'k', n::text::bytea) FROM generate_series(1, 10000) AS n")
        .await;
    let seen = scene.look_for(10_000).await;
    assert!(seen.iter().map(|text| text.parse::<i32>().unwrap()).eq(1..=10_000));
    assert_eq!(scene.tail.status().table_looks, 0);
    assert_eq!(scene.low(), 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_no_room_for_comes_from_the_table() {
    let options = TailOptions { window_events: 100, ..patient() };
    let mut scene = Scene::on(Place::new().await, options).await;
    let client = scene.client().await;
    run(&client, "SELECT hapax.emit('t', 'k', n::text::bytea) FROM generate_series(1, 5000) AS n")
        .await;
    let seen = scene.look_for(5000).await;
    assert!(seen.iter().map(|text| text.parse::<i32>().unwrap()).eq(1..=5000));
    let before = scene.tail.status();
    assert!(before.table_looks > 0);
    run(&client, "SELECT hapax.emit('t', 'k', 'next')").await;
    assert_eq!(scene.look().await, ["next"]);
    let status = scene.tail.status();
    assert_eq!(status.table_looks, before.table_looks, "whoever has caught up is streamed to");
    let options = TailOptions { window_bytes: 1, ..patient() };
    let mut scene = Scene::on(Place::new().await, options).await;
    run(&scene.client().await, "SELECT hapax.emit('t', 'k', 'one')").await;
    assert_eq!(scene.look_for(1).await, ["one"], "even with room for none");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_emptied_is_nothing_to_the_stream() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    for round in 0..3 {
        run(&client, &format!("SELECT hapax.emit('t', 'k', '{round}')")).await;
        assert_eq!(scene.look_until_complete().await, [round.to_string()]);
        super::turn_over(&scene.place).await;
        while scene.tail.retire(1000).await.unwrap().events == 0 {}
    }
    run(&client, "SELECT hapax.emit('t', 'k', 'last')").await;
    assert_eq!(scene.look_until_complete().await, ["last"]);
    assert_eq!(scene.place.number("SELECT count(*) FROM hapax.outbox").await, 1);
    assert!(scene.tail.status().stream_looks >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_a_newer_format_is_left_to_the_table() {
    let mut scene = Scene::new().await;
    let client = scene.client().await;
    run(&client, "SELECT hapax.emit('t', 'k', 'one')").await;
    run(
        &client,
        "INSERT INTO hapax.outbox SELECT nextval('hapax.outbox_positions'), at, gen_random_uuid(), segment, \
         lane, 99, topic, key, content_type, headers, payload FROM hapax.outbox",
    )
    .await;
    run(&client, "SELECT hapax.emit('t', 'k', 'three')").await;
    let refused = poll(&scene.tail, "sink", &mut scene.reader, ReadLimits::default()).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("newer"), "{text}");
}
