//! `hapax.upsert`: what it says is what happened, whoever else writes at the same time.

use tokio_postgres::error::SqlState;

use crate::natural::{
    READ_COMMITTED, REPEATABLE_READ, Race, SERIALIZABLE, Somebody, check_refusals, crowd,
};

const PRICES: &str = "CREATE TABLE prices (
    shop text, item text, price numeric(10, 2) NOT NULL, seen bigint, PRIMARY KEY (shop, item))";

fn upsert(price: &str, seen: u32) -> String {
    format!(
        "SELECT hapax.upsert('prices', '{{\"shop\": \"a\", \"item\": \"x\"}}', \
         '{{\"price\": {price}, \"seen\": {seen}}}', newer => 'seen')"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_tells_what_it_took() {
    let somebody = Somebody::with(PRICES).await;
    for (price, seen, answer) in [
        ("9.5", 5, "inserted"),
        ("9.5", 5, "unchanged"),
        ("9.50", 5, "unchanged"),
        ("8", 6, "updated"),
        ("9.5", 5, "stale"),
        ("7", 6, "stale"),
        ("8", 6, "unchanged"),
    ] {
        assert_eq!(somebody.ask(&upsert(price, seen)).await, answer, "{price} at {seen}");
    }
    assert_eq!(somebody.ask("SELECT price, seen FROM prices").await, "8.00, 6");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_was_never_stored_is_older_than_any() {
    let somebody = Somebody::with(PRICES).await;
    let session = somebody.session().await;
    session.run("INSERT INTO prices VALUES ('a', 'x', 1, NULL)").await;
    assert_eq!(session.ask(&upsert("2", 1)).await, "updated");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_first_upserts_waits_and_then_knows() {
    for (first, end, answer) in [
        (upsert("9", 5), "COMMIT", "unchanged"),
        (upsert("9", 4), "COMMIT", "updated"),
        (upsert("9", 6), "COMMIT", "stale"),
        (upsert("9", 5), "ROLLBACK", "inserted"),
    ] {
        let somebody = Somebody::with(PRICES).await;
        let second = upsert("9", 5);
        let race = Race { level: READ_COMMITTED, first: &first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), answer, "{first} {end}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_that_waited_for_a_delete_inserts_anew() {
    let somebody = Somebody::with(PRICES).await;
    let (first, second) = ("DELETE FROM prices", upsert("9", 5));
    for (end, answer) in [("ROLLBACK", "unchanged"), ("COMMIT", "inserted")] {
        somebody.ask(&upsert("9", 5)).await;
        let race = Race { level: READ_COMMITTED, first, second: &second, end };
        assert_eq!(somebody.race(race).await.unwrap(), answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_with_an_older_snapshot_fails_to_serialize_and_writes_nothing() {
    for level in [REPEATABLE_READ, SERIALIZABLE] {
        let somebody = Somebody::with(PRICES).await;
        let (first, second) = (upsert("9", 5), upsert("8", 6));
        for _ in 0..2 {
            let race = Race { level, first: &first, second: &second, end: "COMMIT" };
            assert_eq!(somebody.race(race).await, Err(SqlState::T_R_SERIALIZATION_FAILURE));
            assert_eq!(somebody.ask("SELECT price, seen FROM prices").await, "9.00, 5");
            somebody.ask("UPDATE prices SET seen = 1 RETURNING seen").await;
        }
        let race = Race { level, first: &first, second: &second, end: "ROLLBACK" };
        assert_eq!(somebody.race(race).await.unwrap(), "updated");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_true_until_the_transaction_ends() {
    let somebody = Somebody::with(PRICES).await;
    let (same, newer) = (upsert("9", 5), upsert("8", 6));
    somebody.ask(&same).await;
    let race = Race { level: READ_COMMITTED, first: &same, second: &newer, end: "COMMIT" };
    assert_eq!(somebody.race(race).await.unwrap(), "updated");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_crowd_every_answer_is_what_triggers_saw() {
    let seen = "CREATE TABLE counts (n integer PRIMARY KEY, inner_state integer NOT NULL);
        CREATE TABLE seen (what text);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN INSERT INTO seen VALUES (lower(TG_OP)); RETURN NULL; END';
        CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON counts
            FOR EACH ROW EXECUTE FUNCTION note()";
    let somebody = Somebody::with(seen).await;
    let calls = (0..8).map(|client| {
        let call = |at| match (client + at) % 5 {
            0 => "WITH gone AS (DELETE FROM counts WHERE n = 1 RETURNING 1) SELECT count(*) FROM gone"
                .to_owned(),
            _ => format!("SELECT hapax.upsert('counts', '{{\"n\": 1}}', '{{\"inner_state\": {}}}')", at % 3),
        };
        (0..60).map(call).collect()
    });
    let answers = crowd(&somebody, calls.collect()).await;
    for (answer, what) in [("inserted", "insert"), ("updated", "update"), ("1", "delete")] {
        let told = answers.iter().filter(|told| *told == answer).count();
        let seen = format!("SELECT count(*) FROM seen WHERE what = '{what}'");
        assert_eq!(somebody.ask(&seen).await, told.to_string(), "{answer}");
        assert!(told > 0, "the crowd never met {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_column_can_be_given() {
    let somebody = Somebody::with(
        "CREATE EXTENSION citext SCHEMA public;
         CREATE TYPE mood AS ENUM ('sad', 'glad');
         CREATE DOMAIN mail AS public.citext CHECK (VALUE LIKE '%@%');
         CREATE DOMAIN always AS text NOT NULL;
         CREATE SCHEMA \"Odd One\";
         CREATE TABLE \"Odd One\".\"Every.thing\" (
             \"the Mail\" mail UNIQUE, mood mood, tags text[], document json, binary_document jsonb,
             point point, name text COLLATE \"C\", at timestamptz, raw bytea, never always DEFAULT '')
         PARTITION BY LIST (\"the Mail\");
         CREATE TABLE part PARTITION OF \"Odd One\".\"Every.thing\" DEFAULT",
    )
    .await;
    let session = somebody.session().await;
    session.run("SET search_path = \"Odd One\"").await;
    let fields = r#"{"mood": "glad", "tags": ["a", "b"], "document": {"x": [1]}, "binary_document": {"y": null},
                     "point": "(1,2)", "name": "Ada", "at": "2026-01-01T00:00:00Z", "raw": "\\x00ff"}"#;
    for (mail, answer) in [("A@b", "inserted"), ("a@B", "unchanged")] {
        let call = format!(
            "SELECT hapax.upsert('\"Every.thing\"', '{{\"the Mail\": \"{mail}\"}}', '{fields}')"
        );
        assert_eq!(session.ask(&call).await, answer);
    }
    let call =
        "SELECT hapax.upsert('\"Every.thing\"', '{\"the Mail\": \"a@b\"}', '{\"name\": null}')";
    assert_eq!(session.ask(call).await, "updated");
    let row = "SELECT mood, tags, binary_document, point, name, raw FROM \"Every.thing\"";
    assert_eq!(session.ask(row).await, r#"glad, {a,b}, {"y": null}, (1,2), NULL, \x00ff"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn triggers_find_what_the_caller_finds() {
    let somebody = Somebody::with(
        "CREATE SCHEMA shop; SET search_path = shop;
         CREATE TABLE items (id integer PRIMARY KEY, name text); CREATE TABLE audit (name text);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN INSERT INTO audit VALUES (NEW.name); RETURN NEW; END';
         CREATE TRIGGER note BEFORE INSERT OR UPDATE ON items FOR EACH ROW EXECUTE FUNCTION note()",
    )
    .await;
    let session = somebody.session().await;
    session.run("SET search_path = shop").await;
    for (name, answer) in [("a", "inserted"), ("b", "updated"), ("b", "unchanged")] {
        let call =
            format!("SELECT hapax.upsert('items', '{{\"id\": 1}}', '{{\"name\": \"{name}\"}}')");
        assert_eq!(session.ask(&call).await, answer);
    }
    assert_eq!(session.ask("SELECT string_agg(name, '') FROM audit").await, "ab");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_table_is_the_one_that_is_meant() {
    let somebody = Somebody::with("CREATE TABLE items (id integer PRIMARY KEY)").await;
    let session = somebody.session().await;
    session.run("CREATE TEMPORARY TABLE items (id integer PRIMARY KEY)").await;
    session.run("SET search_path = public, pg_temp").await;
    let call = "SELECT hapax.upsert('pg_temp.items', '{\"id\": 1}', '{}')";
    assert_eq!(session.ask(call).await, "inserted");
    assert_eq!(session.ask("SELECT count(*) FROM pg_temp.items").await, "1");
    assert_eq!(session.ask("SELECT count(*) FROM public.items").await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_can_do_no_more_than_it_could_without_the_function() {
    let somebody = Somebody::with(PRICES).await;
    let session = somebody.session().await;
    let role = format!("hapax_reader_{}", session.pid);
    session.run(&format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA hapax TO {role}")).await;
    session.run(&format!("GRANT SELECT ON prices TO {role}; SET ROLE {role}")).await;
    assert_eq!(session.refusal(&upsert("9", 5)).await.code, "42501");
    session.run("RESET ROLE").await;
    session.run(&format!("GRANT INSERT, UPDATE ON prices TO {role}; SET ROLE {role}")).await;
    assert_eq!(session.ask(&upsert("9", 5)).await, "inserted");
    session.run(&format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_can_be_neither_written_nor_seen_is_said_so() {
    let somebody = Somebody::with(
        "CREATE TABLE items (id integer PRIMARY KEY);
         CREATE FUNCTION drop_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
         CREATE TRIGGER drop_it BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION drop_it()",
    )
    .await;
    let call = "SELECT hapax.upsert('items', '{\"id\": 1}', '{}')";
    check_refusals(&somebody, &[(call, "HX106", "neither written nor seen")]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upsert_that_cannot_be_meant_is_refused_and_writes_nothing() {
    let somebody = Somebody::with(
        "CREATE TABLE items (id integer PRIMARY KEY, name varchar(3), twice integer GENERATED ALWAYS AS (id * 2) STORED,
                             code text, seen bigint);
         CREATE UNIQUE INDEX ON items (code) WHERE code <> '';
         CREATE VIEW seen AS SELECT * FROM items",
    )
    .await;
    check_refusals(
        &somebody,
        &[
            ("SELECT hapax.upsert(NULL, '{\"id\": 1}', '{}')", "HX101", "missing"),
            ("SELECT hapax.upsert('items', NULL, '{}')", "HX101", "missing"),
            ("SELECT hapax.upsert('items', '{}', '{}')", "HX101", "missing"),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', NULL)", "HX101", "missing"),
            ("SELECT hapax.upsert('items', '[1]', '{}')", "HX101", "missing"),
            ("SELECT hapax.upsert('items', '{\"id\": null}', '{}')", "HX101", "\"id\""),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"id\": 2}')", "HX101", "\"id\""),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"nmae\": 1}')", "HX102", "\"nmae\""),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"ctid\": 1}')", "HX102", "\"ctid\""),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"twice\": 1}')", "HX102", "\"twice\""),
            ("SELECT hapax.upsert('seen', '{\"id\": 1}', '{}')", "HX102", "is no table"),
            ("SELECT hapax.upsert('items', '{\"id\": \"one\"}', '{}')", "HX103", "does not fit"),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"name\": \"long\"}')", "HX103", "does not fit"),
            ("SELECT hapax.upsert('items', '{\"code\": \"a\"}', '{\"id\": 1}')", "HX104", "unique index"),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"seen\": null}', 'seen')", "HX101", "version"),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"seen\": 1}', 'code')", "HX101", "version"),
            ("SELECT hapax.upsert('items', '{\"id\": 1}', '{\"x\\\"; DROP TABLE items; --\": 1}')", "HX102", "DROP TABLE"),
        ],
    )
    .await;
    assert_eq!(somebody.ask("SELECT count(*) FROM items").await, "0");
}
