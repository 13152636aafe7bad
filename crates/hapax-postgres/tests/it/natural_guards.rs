//! `hapax.transition`, `hapax.update_versioned` and `hapax.set_if`: one of many wins, and all know it.

use tokio_postgres::error::SqlState;

use crate::natural::{
    READ_COMMITTED, REPEATABLE_READ, Race, SERIALIZABLE, Somebody, check_refusals, crowd,
};

const ORDERS: &str = "CREATE TYPE state AS ENUM ('new', 'paid', 'sent', 'cancelled');
    CREATE TABLE orders (id bigint PRIMARY KEY, state state, version integer NOT NULL DEFAULT 1,
                         credit numeric, note text);
    INSERT INTO orders (id, state, credit) VALUES (1, 'new', 100.00), (2, NULL, NULL)";

fn transition(id: u32, from: &str, to: &str) -> String {
    format!(
        "SELECT * FROM hapax.transition('orders', '{{\"id\": {id}}}', 'state', '{{{from}}}', '{to}')"
    )
}

fn update(id: u32, note: &str, expected: u32) -> String {
    format!(
        "SELECT * FROM hapax.update_versioned('orders', '{{\"id\": {id}}}', '{{\"note\": \"{note}\"}}', \
         'version', {expected})"
    )
}

fn set(id: u32, expected: &str, wanted: &str) -> String {
    format!(
        "SELECT * FROM hapax.set_if('orders', '{{\"id\": {id}}}', 'credit', {expected}, {wanted})"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_tells_whether_it_moved_and_where_it_is() {
    let somebody = Somebody::with(ORDERS).await;
    for (call, answer) in [
        (transition(1, "paid", "sent"), "refused, new"),
        (transition(1, "new", "paid"), "moved, paid"),
        (transition(1, "new", "paid"), "already_there, paid"),
        (transition(1, "new,paid", "cancelled"), "moved, cancelled"),
        (transition(1, "new,paid", "sent"), "refused, cancelled"),
        (transition(1, "", "sent"), "refused, cancelled"),
        (transition(2, "new", "paid"), "refused, NULL"),
        (transition(3, "new", "paid"), "missing, NULL"),
    ] {
        assert_eq!(somebody.ask(&call).await, answer, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transition_that_waited_sees_what_the_other_did() {
    for (first, end, answer) in [
        (transition(1, "new", "paid"), "COMMIT", "already_there, paid"),
        (transition(1, "new", "cancelled"), "COMMIT", "refused, cancelled"),
        (transition(1, "new", "cancelled"), "ROLLBACK", "moved, paid"),
        ("DELETE FROM orders".to_owned(), "COMMIT", "missing, NULL"),
    ] {
        let somebody = Somebody::with(ORDERS).await;
        let second = transition(1, "new", "paid");
        let race = Race { level: READ_COMMITTED, first: &first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), answer, "{first} {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_with_an_older_snapshot_fails_to_serialize() {
    for level in [REPEATABLE_READ, SERIALIZABLE] {
        for call in [transition(1, "new", "paid"), update(1, "a", 1), set(1, "'100'", "'90'")] {
            let somebody = Somebody::with(ORDERS).await;
            let race = Race { level, first: &call, second: &call, end: "COMMIT" };
            let answer = somebody.race(race).await;
            assert_eq!(answer, Err(SqlState::T_R_SERIALIZATION_FAILURE), "{level} {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_crowd_one_moves_it() {
    let somebody = Somebody::with(ORDERS).await;
    let call = transition(1, "new", "paid");
    let answers = crowd(&somebody, vec![vec![call]; 12]).await;
    let count = |answer| answers.iter().filter(|told| *told == answer).count();
    assert_eq!((count("moved, paid"), count("already_there, paid")), (1, 11));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_is_made_only_over_the_version_that_was_seen() {
    let somebody = Somebody::with(ORDERS).await;
    for (call, answer) in [
        (update(1, "a", 1), "updated, 2"),
        (update(1, "b", 1), "stale, 2"),
        (update(1, "b", 2), "updated, 3"),
        (update(3, "b", 2), "missing, NULL"),
    ] {
        assert_eq!(somebody.ask(&call).await, answer, "{call}");
    }
    assert_eq!(somebody.ask("SELECT note, version FROM orders WHERE id = 1").await, "b, 3");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_update_of_a_crowd_is_lost() {
    let somebody = Somebody::with(ORDERS).await;
    let mut writers = Vec::new();
    for _ in 0..6 {
        let session = somebody.session().await;
        writers.push(tokio::spawn(async move {
            let mut written = 0;
            while written < 10 {
                let seen = session.ask("SELECT version FROM orders WHERE id = 1").await;
                let answer = session.ask(&update(1, "x", seen.parse().unwrap())).await;
                written += u32::from(answer.starts_with("updated"));
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(somebody.ask("SELECT version FROM orders WHERE id = 1").await, "61");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_is_set_over_the_expected_one_alone() {
    let somebody = Somebody::with(ORDERS).await;
    for (call, answer) in [
        (set(1, "'100'", "'90'"), "set, 90"),
        (set(1, "'100'", "'90'"), "already_set, 90"),
        (set(1, "'100'", "'80'"), "changed, 90"),
        (set(1, "'90'", "NULL"), "set, NULL"),
        (set(1, "NULL", "'\"70.5\"'"), "set, 70.5"),
        (set(2, "'1'", "'2'"), "changed, NULL"),
        (set(2, "NULL", "NULL"), "already_set, NULL"),
        (set(3, "NULL", "'1'"), "missing, NULL"),
    ] {
        assert_eq!(somebody.ask(&call).await, answer, "{call}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_was_set_meanwhile_is_seen_after_the_wait() {
    for (first, end, answer) in [
        (set(1, "'100'", "'90'"), "COMMIT", "already_set, 90"),
        (set(1, "'100'", "'80'"), "COMMIT", "changed, 80"),
        (set(1, "'100'", "'80'"), "ROLLBACK", "set, 90"),
    ] {
        let somebody = Somebody::with(ORDERS).await;
        let second = set(1, "'100'", "'90'");
        let race = Race { level: READ_COMMITTED, first: &first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), answer, "{first} {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_cannot_be_meant_is_refused_and_writes_nothing() {
    let somebody = Somebody::with(ORDERS).await;
    let before = somebody.ask("SELECT jsonb_agg(o) FROM orders AS o").await;
    check_refusals(
        &somebody,
        &[
            (&transition(1, "NULL", "paid"), "HX101", "missing"),
            ("SELECT hapax.transition('orders', '{\"id\": 1}', NULL, '{new}', 'paid')", "HX101", "missing"),
            ("SELECT hapax.transition('orders', '{\"id\": 1}', 'state', NULL, 'paid')", "HX101", "missing"),
            ("SELECT hapax.transition('orders', '{\"id\": 1}', 'state', '{new}', NULL)", "HX101", "missing"),
            (&transition(1, "new", "payed"), "HX103", "does not fit"),
            ("SELECT hapax.transition('orders', '{\"id\": 1}', 'sate', '{new}', 'paid')", "HX102", "\"sate\""),
            ("SELECT hapax.transition('orders', '{\"version\": 1}', 'state', '{new}', 'paid')", "HX104", "2 rows"),
            ("SELECT hapax.update_versioned('orders', '{\"version\": 1}', '{\"note\": 1}', 'version', 1)", "HX104", "2 rows"),
            ("SELECT hapax.update_versioned('orders', '{\"id\": 1}', '{}', 'version', 1)", "HX101", "missing"),
            ("SELECT hapax.update_versioned('orders', '{\"id\": 1}', '{\"version\": 2}', 'version', 1)", "HX101", "missing"),
            ("SELECT hapax.update_versioned('orders', '{\"id\": 1}', '{\"note\": 1}', 'version', NULL)", "HX101", "missing"),
            ("SELECT hapax.update_versioned('orders', '{\"id\": 1}', '{\"note\": 1}', 'revision', 1)", "HX102", "\"revision\""),
            ("SELECT hapax.update_versioned('orders', '{\"id\": 1}', '{\"note\": 1}', 'credit', 1)", "HX103", "numeric"),
            (&set(1, "'\"much\"'", "'1'"), "HX103", "does not fit"),
            (&set(1, "'1'", "'\"much\"'"), "HX103", "does not fit"),
            ("SELECT hapax.set_if('orders', '{\"id\": 1}', NULL, '1', '2')", "HX101", "missing"),
            ("SELECT hapax.set_if('orders', '{\"version\": 1}', 'note', '1', '2')", "HX104", "2 rows"),
        ],
    )
    .await;
    assert_eq!(somebody.ask("SELECT jsonb_agg(o) FROM orders AS o").await, before);
}
