//! `hapax migrate` on real stores.

use std::{
    fs,
    process::{Command, Output},
};

use hapax::{postgres, sqlite};
use tokio_postgres::{Client, NoTls};

use crate::{hapax, text, world::Database};

/// What the program said, once it said that all is well.
fn said(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn migrate(store: &str, more: &[&str]) -> Output {
    hapax(&[&["migrate", "--store", store], more].concat())
}

async fn connect(database: &Database) -> Client {
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_schema_is_created_once_and_then_left_alone() {
    let database = Database::create().await;
    let newest = postgres::VERSION;
    for _ in 0..2 {
        let foreseen = said(&migrate(&database.url, &["--dry-run"]));
        assert!(foreseen.contains(&format!("would be created, version {newest}")), "{foreseen}");
    }
    let done = said(&migrate(&database.url, &[]));
    assert!(done.contains(&format!("was created, version {newest}")), "{done}");
    for more in [&[][..], &["--dry-run"]] {
        let done = said(&migrate(&database.url, more));
        assert!(done.contains(&format!("is up to date, version {newest}")), "{done}");
    }
}

#[tokio::test]
async fn a_schema_that_was_never_released_is_left_as_it_is() {
    let database = Database::create().await;
    let client = connect(&database).await;
    client.batch_execute(&postgres::script(0)).await.unwrap();
    client.batch_execute("UPDATE hapax.meta SET version = 9").await.unwrap();
    for more in [&[][..], &["--dry-run"]] {
        let refusal = refused(&migrate(&database.url, more));
        assert!(refusal.contains("DROP SCHEMA hapax CASCADE"), "{refusal}");
    }
}

#[tokio::test]
async fn what_is_printed_does_the_same_when_somebody_else_runs_it() {
    let database = Database::create().await;
    let printed = said(&migrate(&database.url, &["--print"]));
    assert!(said(&migrate(&database.url, &["--dry-run"])).contains("would be created"));
    connect(&database).await.batch_execute(&printed).await.unwrap();
    assert!(said(&migrate(&database.url, &[])).contains("is up to date"));
    let printed = said(&migrate(&database.url, &["--print"]));
    assert!(printed.lines().all(|line| line.starts_with("--")), "{printed}");
}

#[tokio::test]
async fn without_a_store_all_that_a_new_database_needs_is_printed() {
    let output = Command::new(env!("CARGO_BIN_EXE_hapax"))
        .args(["migrate", "--print", "--role", "postgres"])
        .env_remove("HAPAX_STORE")
        .output();
    let printed = said(&output.unwrap());
    assert!(printed.starts_with("-- The schema of Hapax, version "), "{printed}");
    let database = Database::create().await;
    let client = connect(&database).await;
    client.batch_execute(&printed).await.unwrap();
    assert!(said(&migrate(&database.url, &["--dry-run"])).contains("is up to date"));
    // Run a second time it changes nothing.
    assert!(client.batch_execute(&printed).await.is_err());
    client.batch_execute("ROLLBACK").await.unwrap();
    assert!(said(&migrate(&database.url, &["--dry-run"])).contains("is up to date"));
}

#[test]
fn without_a_store_nothing_but_printing_is_possible() {
    for more in [&[][..], &["--dry-run"], &["--role", "somebody"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        let output = command.arg("migrate").args(more).env_remove("HAPAX_STORE").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(text(&output.stderr).contains("--store <URL>"), "{more:?}");
    }
}

#[tokio::test]
async fn a_role_may_call_the_functions_and_read_no_table() {
    let database = Database::create().await;
    let client = connect(&database).await;
    let role = format!("Hapax's \"caller\" {}", std::process::id());
    let name = role.replace('"', "\"\"");
    client.batch_execute(&format!("CREATE ROLE \"{name}\"")).await.unwrap();
    let printed = said(&migrate(&database.url, &["--print", "--role", &role]));
    client.batch_execute(&printed).await.unwrap();
    said(&migrate(&database.url, &["--role", &role]));

    client.batch_execute(&format!("SET ROLE \"{name}\"")).await.unwrap();
    client.batch_execute("SELECT * FROM hapax.status('acme', 'POST /pay', '1')").await.unwrap();
    client.batch_execute("SELECT hapax.lock_key('seat', '1')").await.unwrap();
    let refusal = client.batch_execute("SELECT * FROM hapax.operations").await.unwrap_err();
    assert_eq!(refusal.code().unwrap().code(), "42501");
    let end = format!("RESET ROLE; DROP OWNED BY \"{name}\"; DROP ROLE \"{name}\"");
    client.batch_execute(&end).await.unwrap();

    let refusal = refused(&migrate(&database.url, &["--role", "nobody at all"]));
    assert!(refusal.contains("check that it exists"), "{refusal}");
}

#[test]
fn a_server_that_is_not_there_is_said_so() {
    let refusal = refused(&migrate("postgres://nobody@127.0.0.1:1/nothing", &[]));
    assert!(refusal.contains("cannot connect"), "{refusal}");
}

#[test]
fn a_file_is_made_once_and_not_at_all_by_a_look() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hapax.db");
    let store = format!("sqlite:{}", file.display());
    let newest = sqlite::VERSION;
    let foreseen = said(&migrate(&store, &["--dry-run"]));
    assert!(foreseen.contains(&format!("would be created, version {newest}")), "{foreseen}");
    let printed = said(&migrate(&store, &["--print"]));
    assert!(!file.exists());
    assert!(said(&migrate(&store, &[])).contains("was created"));
    assert!(said(&migrate(&store, &[])).contains("is up to date"));

    let other = directory.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch(&printed).unwrap();
    assert!(said(&migrate(&format!("sqlite:{}", other.display()), &[])).contains("is up to date"));
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is_but_for_the_tables_beside() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.db");
    let shop = rusqlite::Connection::open(&file).unwrap();
    shop.execute_batch("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (7)").unwrap();
    let store = format!("sqlite:{}", file.display());
    assert!(said(&migrate(&store, &["--dry-run"])).contains("would be created"));
    assert!(said(&migrate(&store, &[])).contains("was created"));
    assert!(said(&migrate(&store, &[])).contains("is up to date"));
    let mode = shop.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(mode.unwrap(), "delete");
    let order = shop.query_row("SELECT id FROM orders", [], |row| row.get::<_, i64>(0));
    assert_eq!(order.unwrap(), 7);
}

#[test]
fn what_cannot_be_migrated_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letter.txt");
    fs::write(&file, "Dear Sir or Madam, this is a letter and not a database. ".repeat(20))
        .unwrap();
    let store = format!("sqlite:{}", file.display());
    for (store, more, words) in [
        ("memory:", &[][..], "has no schema"),
        ("nonsense", &[], "no store's address"),
        (store.as_str(), &["--role", "somebody"], "SQLite has no roles"),
        (store.as_str(), &[], "cannot be read"),
        (store.as_str(), &["--dry-run"], "cannot be read"),
    ] {
        let refusal = refused(&migrate(store, more));
        assert!(refusal.contains(words), "{store} {more:?}: {refusal}");
    }
}
