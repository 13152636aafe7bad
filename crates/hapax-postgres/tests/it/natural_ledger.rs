//! `hapax.post`: each entry once, and no account below its floor.

use tokio_postgres::error::SqlState;

use crate::natural::{
    READ_COMMITTED, REPEATABLE_READ, Race, SERIALIZABLE, Somebody, check_refusals, crowd,
};

const LEDGER: &str = "CREATE TABLE ledger (
    account text, entry text, amount numeric(12, 2) NOT NULL, memo text, PRIMARY KEY (account, entry))";

fn post(entry: &str, amount: i32, floor: &str) -> String {
    format!(
        "SELECT * FROM hapax.post('ledger', '{{\"account\": \"ada\", \"entry\": \"{entry}\"}}', \
         '{{\"amount\": {amount}}}', floor => {floor})"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_posted_once_and_never_below_the_floor() {
    let somebody = Somebody::with(LEDGER).await;
    for (call, answer) in [
        (post("in", 100, "NULL"), "posted, NULL"),
        (post("in", 100, "NULL"), "already_posted, NULL"),
        (post("in", 100, "0"), "already_posted, 100.00"),
        (post("in", 90, "0"), "differs, 100.00"),
        (post("out", -70, "0"), "posted, 30.00"),
        (post("out", -70, "0"), "already_posted, 30.00"),
        (post("more", -31, "0"), "below_floor, 30.00"),
        (post("rest", -30, "0"), "posted, 0.00"),
        (post("fee", -5, "NULL"), "posted, NULL"),
        (post("some", 1, "0"), "posted, -4.00"),
    ] {
        assert_eq!(somebody.ask(&call).await, answer, "{call}");
    }
    assert_eq!(somebody.ask("SELECT sum(amount), count(*) FROM ledger").await, "-4.00, 5");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_postings_waits_and_then_knows() {
    for (first, second, end, answer) in [
        (post("a", -70, "0"), post("b", -70, "0"), "COMMIT", "below_floor, 30.00"),
        (post("a", -70, "0"), post("b", -70, "0"), "ROLLBACK", "posted, 30.00"),
        (post("a", -70, "0"), post("a", -70, "0"), "COMMIT", "already_posted, 30.00"),
        (post("a", 5, "NULL"), post("a", 5, "NULL"), "COMMIT", "already_posted, NULL"),
        (post("a", 5, "NULL"), post("a", 6, "NULL"), "COMMIT", "differs, NULL"),
        (post("a", 5, "NULL"), post("a", 6, "NULL"), "ROLLBACK", "posted, NULL"),
    ] {
        let somebody = Somebody::with(LEDGER).await;
        somebody.ask(&post("in", 100, "NULL")).await;
        let race = Race { level: READ_COMMITTED, first: &first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), answer, "{second} {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deposits_do_not_wait_for_each_other_nor_for_a_withdrawal() {
    let somebody = Somebody::with(LEDGER).await;
    somebody.ask(&post("in", 100, "NULL")).await;
    let (first, second) = (somebody.session().await, somebody.session().await);
    first.run(&format!("BEGIN; {}", post("a", -70, "0"))).await;
    second.run("SET lock_timeout = '1ms'").await;
    assert_eq!(second.ask(&post("b", 10, "NULL")).await, "posted, NULL");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_takes_out_exactly_what_was_in() {
    let somebody = Somebody::with(LEDGER).await;
    somebody.ask(&post("in", 100, "NULL")).await;
    // Everybody tries every withdrawal twice.
    let calls = (0..8).map(|client| {
        let call = |at: i32| post(&format!("out {}", (client * 5 + at) % 30), -7, "0");
        (0..60).map(call).collect()
    });
    let answers = crowd(&somebody, calls.collect()).await;
    let posted = answers.iter().filter(|answer| answer.starts_with("posted")).count();
    assert_eq!(posted, 14);
    assert_eq!(somebody.ask("SELECT sum(amount), count(*) FROM ledger").await, "2.00, 15");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_are_equal_share_a_floor_however_they_are_written() {
    let somebody = Somebody::with(
        "CREATE EXTENSION citext;
         CREATE TABLE ledger (id uuid UNIQUE, who citext, cents bigint)",
    )
    .await;
    let post = |id: u32, who: &str, cents: i32| {
        format!(
            "SELECT * FROM hapax.post('ledger', '{{\"id\": \"00000000-0000-0000-0000-00000000000{id}\"}}',
             '{{\"who\": \"{who}\", \"cents\": {cents}}}', 0, account => 'who', amount => 'cents')"
        )
    };
    assert_eq!(somebody.ask(&post(1, "Ada", 100)).await, "posted, 100");
    let (first, second) = (post(2, "ada", -70), post(3, "ADA", -70));
    let race = Race { level: READ_COMMITTED, first: &first, second: &second, end: "COMMIT" };
    assert_eq!(somebody.race(race).await.unwrap(), "below_floor, 30");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_floor_is_refused_where_an_older_snapshot_would_let_it_be_broken() {
    let somebody = Somebody::with(LEDGER).await;
    let session = somebody.session().await;
    for level in [REPEATABLE_READ, SERIALIZABLE] {
        session.run(&format!("BEGIN ISOLATION LEVEL {level}")).await;
        let refusal = session.refusal(&post("a", 1, "0")).await;
        assert_eq!((refusal.code.as_str(), refusal.hint.is_empty()), ("HX105", false));
        session.run("ROLLBACK").await;
        let (call, end) = (post(level, 1, "NULL"), "COMMIT");
        let race = Race { level, first: &call, second: &call, end };
        assert_eq!(somebody.race(race).await, Err(SqlState::T_R_SERIALIZATION_FAILURE));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_cannot_be_meant_is_refused_and_writes_nothing() {
    let somebody = Somebody::with(LEDGER).await;
    let key = r#"'{"account": "ada", "entry": "1"}'"#;
    let post = |arguments: &str| format!("SELECT * FROM hapax.post('ledger', {key}, {arguments})");
    check_refusals(
        &somebody,
        &[
            (&post("'{}'"), "HX101", "account or the amount"),
            (&post(r#"'{"amount": null}'"#), "HX101", "account or the amount"),
            (&post(r#"'{"amount": 1}', account => 'owner'"#), "HX101", "account or the amount"),
            (&post(r#"'{"amount": 1}', amount => 'sum'"#), "HX102", "\"sum\""),
            (&post(r#"'{"amount": 1}', amount => 'memo'"#), "HX103", "text"),
            (&post(r#"'{"amount": "much"}'"#), "HX103", "does not fit"),
            (&post(r#"'{"amount": "NaN"}'"#), "HX103", "no finite number"),
            (&post(r#"'{"amount": 1}', floor => 'NaN'"#), "HX103", "no finite number"),
            (
                r#"SELECT hapax.post('ledger', '{"entry": "1"}', '{"account": "a", "amount": 1}')"#,
                "HX104",
                "unique index",
            ),
        ],
    )
    .await;
    assert_eq!(somebody.ask("SELECT count(*) FROM ledger").await, "0");
}
