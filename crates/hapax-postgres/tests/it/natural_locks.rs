//! `hapax.lock_key`: one at a time for a natural key, and nobody's transaction is spoilt.

use hapax_services::pgbouncer::{PoolMode, Pooler};
use tokio_postgres::error::SqlState;

use crate::natural::{
    READ_COMMITTED, REPEATABLE_READ, Race, SERIALIZABLE, Somebody, check_refusals,
};

fn lock(key: &str, wait: &str) -> String {
    format!("SELECT hapax.lock_key('seat', '{key}', '{wait}')")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_is_not_had_and_the_transaction_goes_on() {
    let somebody = Somebody::with("CREATE TABLE marks (n integer)").await;
    let (first, second) = (somebody.session().await, somebody.session().await);
    first.run("BEGIN").await;
    assert_eq!(first.ask(&lock("12A", "0")).await, "t");
    assert_eq!(first.ask(&lock("12A", "0")).await, "t", "whoever has it has it");
    second.run("SET lock_timeout = '7s'; BEGIN; INSERT INTO marks VALUES (1)").await;
    assert_eq!(second.ask(&lock("12B", "0")).await, "t");
    for wait in ["0", "20 milliseconds"] {
        assert_eq!(second.ask(&lock("12A", wait)).await, "f");
        assert_eq!(second.ask("SHOW lock_timeout").await, "7s");
    }
    second.run("COMMIT").await;
    assert_eq!(second.ask("SELECT count(*) FROM marks").await, "1");
    first.run("COMMIT").await;
    assert_eq!(second.ask(&lock("12A", "0")).await, "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_has_it_when_the_other_ends() {
    let somebody = Somebody::with("").await;
    let (first, second) = (lock("12A", "0"), lock("12A", "60 seconds"));
    for end in ["COMMIT", "ROLLBACK"] {
        let race = Race { level: READ_COMMITTED, first: &first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), "t");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_taken_after_a_wait_is_kept_until_the_end_and_the_timeout_is_the_callers() {
    let somebody = Somebody::with("").await;
    let (first, second, third) =
        (somebody.session().await, somebody.session().await, somebody.session().await);
    first.run("BEGIN").await;
    first.ask(&lock("12A", "0")).await;
    second.run("SET lock_timeout = '7s'; BEGIN").await;
    let pid = second.pid;
    let waiting = second.later(&lock("12A", "60 seconds"));
    somebody.until_blocked(pid).await;
    first.run("COMMIT").await;
    let (second, answer) = waiting.await.unwrap();
    assert_eq!(answer.unwrap(), "t");
    assert_eq!(second.ask("SHOW lock_timeout").await, "7s");
    assert_eq!(third.ask(&lock("12A", "0")).await, "f");
    second.run("COMMIT").await;
    assert_eq!(third.ask(&lock("12A", "0")).await, "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_seen_after_the_wait_depends_on_the_isolation_level() {
    let somebody = Somebody::with("CREATE TABLE seats (taken text)").await;
    for (level, seen) in [(READ_COMMITTED, "1"), (REPEATABLE_READ, "1"), (SERIALIZABLE, "2")] {
        let (first, second) = (somebody.session().await, somebody.session().await);
        first.run(&format!("BEGIN; INSERT INTO seats VALUES ('12A'); {}", lock("12A", "0"))).await;
        second.run(&format!("BEGIN ISOLATION LEVEL {level}")).await;
        let pid = second.pid;
        let waiting = second.later(&lock("12A", "60 seconds"));
        somebody.until_blocked(pid).await;
        first.run("COMMIT").await;
        let (second, answer) = waiting.await.unwrap();
        assert_eq!(answer.unwrap(), "t");
        assert_eq!(second.ask("SELECT count(*) FROM seats").await, seen, "{level}");
        // Or the server might free its lock only after the next has asked for it.
        second.run("COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_taken_crosswise_are_a_deadlock_and_one_of_the_two_is_told() {
    let somebody = Somebody::with("").await;
    let (first, second) = (somebody.session().await, somebody.session().await);
    first.run("BEGIN").await;
    second.run("BEGIN").await;
    first.ask(&lock("12A", "0")).await;
    second.ask(&lock("12B", "0")).await;
    let first = first.later(&lock("12B", "60 seconds"));
    let second = second.later(&lock("12A", "60 seconds"));
    let answers = [second.await.unwrap(), first.await.unwrap()];
    let told = |answer: &Result<String, SqlState>| answer.as_ref().err().cloned();
    let told: Vec<_> = answers.iter().filter_map(|(_, answer)| told(answer)).collect();
    assert_eq!(told, [SqlState::T_R_DEADLOCK_DETECTED]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_transaction_mode_may_stand_between() {
    let somebody = Somebody::with("CREATE TABLE seats (seat text PRIMARY KEY, who text)").await;
    let pooler = Pooler::start(&somebody.url(), PoolMode::Transaction).unwrap();
    let config = pooler.url().parse().unwrap();
    let (first, second) = (somebody.session_at(&config).await, somebody.session_at(&config).await);
    let take = "SELECT hapax.upsert('seats', '{\"seat\": \"12A\"}', '{\"who\": \"Ada\"}')";
    first.run("BEGIN").await;
    assert_eq!(first.ask(&lock("12A", "1 second")).await, "t");
    assert_eq!(second.ask(&lock("12A", "20 milliseconds")).await, "f");
    assert_eq!(first.ask(take).await, "inserted");
    first.run("COMMIT").await;
    assert_eq!(second.ask(&lock("12A", "0")).await, "t");
    assert_eq!(second.ask(take).await, "unchanged");
    assert_eq!(second.ask("SHOW lock_timeout").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn spaces_and_keys_do_not_run_into_each_other() {
    let somebody = Somebody::with("").await;
    let (first, second) = (somebody.session().await, somebody.session().await);
    first.run("BEGIN; SELECT hapax.lock_key('ab', 'c')").await;
    assert_eq!(second.ask("SELECT hapax.lock_key('a', 'bc', '0')").await, "t");
    assert_eq!(second.ask("SELECT hapax.lock_key('ab', 'c', '0')").await, "f");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_lock_whatever_encoding_a_client_speaks() {
    let somebody = Somebody::with("").await;
    let (first, second) = (somebody.session().await, somebody.session().await);
    first.run("SET client_encoding = 'LATIN1'; BEGIN").await;
    assert_eq!(first.ask("SELECT hapax.lock_key('seat', chr(233), '0')").await, "t");
    assert_eq!(second.ask("SELECT hapax.lock_key('seat', chr(233), '0')").await, "f");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_cannot_be_meant_is_refused() {
    let somebody = Somebody::with("").await;
    check_refusals(
        &somebody,
        &[
            ("SELECT hapax.lock_key(NULL, 'a')", "HX101", "missing"),
            ("SELECT hapax.lock_key('a', NULL)", "HX101", "missing"),
            ("SELECT hapax.lock_key('a', 'b', NULL)", "HX101", "missing"),
            ("SELECT hapax.lock_key('a', 'b', '-1 second')", "HX101", "out of bounds"),
            ("SELECT hapax.lock_key('a', 'b', '61 seconds')", "HX101", "out of bounds"),
        ],
    )
    .await;
}
