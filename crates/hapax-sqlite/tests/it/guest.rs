//! The file belongs to another program, and Hapax is a guest in it.

use std::{sync::Barrier, thread};

use hapax_core::Store as _;
use hapax_sqlite::{MigrateError, OpenError, Store, migrate};
use rusqlite::Connection;

use crate::{
    backend::Sqlite,
    calls::{claim, load},
};

/// A program with tables, versions and marks of its own.
fn theirs(sqlite: &Sqlite, mode: &str) -> Connection {
    let connection = sqlite.client();
    connection.pragma_update(None, "journal_mode", mode).expect("set");
    connection
        .execute_batch(
            "CREATE TABLE operations (x); CREATE TABLE meta (y); INSERT INTO meta VALUES (1);
             PRAGMA user_version = 7; PRAGMA application_id = 99",
        )
        .expect("created");
    connection
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).expect("a number")
}

fn mode(connection: &Connection) -> String {
    connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("a mode")
}

#[track_caller]
fn is_untouched(connection: &Connection) {
    assert_eq!(number(connection, "PRAGMA user_version"), 7);
    assert_eq!(number(connection, "PRAGMA application_id"), 99);
    assert_eq!(number(connection, "SELECT count(*) FROM meta"), 1);
    let ours = "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'hapax%'
                AND name NOT LIKE 'sqlite%' AND name NOT IN ('operations', 'meta')";
    assert_eq!(number(connection, ours), 0, "every name begins with hapax_");
}

#[tokio::test]
async fn a_store_lives_beside_the_tables_of_another_program() {
    let sqlite = Sqlite::new();
    let theirs = theirs(&sqlite, "WAL");
    let store = sqlite.store();
    claim(&store, "a").await.expect("written");
    assert!(load(&store, "a").await.expect("readable").is_some());
    is_untouched(&theirs);
}

#[test]
fn the_journal_mode_of_a_file_in_use_is_never_changed() {
    let sqlite = Sqlite::new();
    let mut theirs = theirs(&sqlite, "DELETE");
    let refusal = Store::open(sqlite.path(), sqlite.options()).expect_err("it is refused");
    assert!(matches!(&refusal, OpenError::JournalMode { mode, .. } if mode == "delete"));
    assert!(refusal.to_string().contains("PRAGMA journal_mode = WAL"), "{refusal}");
    migrate(&mut theirs).expect("the tables do not care");
    assert_eq!(mode(&theirs), "delete");
    is_untouched(&theirs);
    theirs.pragma_update(None, "journal_mode", "WAL").expect("switched");
    drop(sqlite.store());
}

#[test]
fn a_connection_of_their_own_makes_the_same_tables() {
    let sqlite = Sqlite::new();
    let mut theirs = theirs(&sqlite, "WAL");
    let salt = migrate(&mut theirs).expect("migrated");
    assert!(sqlite.store().salt() == salt);
    assert!(migrate(&mut theirs).expect("nothing to do") == salt);
    is_untouched(&theirs);
}

#[test]
fn whoever_migrates_at_once_agrees_on_the_salt() {
    const THREADS: usize = 8;
    let (sqlite, start) = (Sqlite::new(), Barrier::new(THREADS));
    drop(theirs(&sqlite, "WAL"));
    let salts: Vec<_> = thread::scope(|scope| {
        let run = || {
            let mut connection = sqlite.client();
            start.wait();
            migrate(&mut connection).expect("migrated")
        };
        let runs: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        runs.into_iter().map(|run| run.join().expect("it ends")).collect()
    });
    assert!(salts.iter().all(|salt| salt == &salts[0]));
}

#[test]
fn newer_tables_are_refused_with_what_to_do() {
    let mut connection = Connection::open_in_memory().expect("opened");
    migrate(&mut connection).expect("migrated");
    let newer = "UPDATE hapax_meta SET value = 1000 WHERE name = 'version'";
    connection.execute(newer, []).expect("written");
    let refusal = migrate(&mut connection).expect_err("refused");
    assert!(matches!(refusal, MigrateError::NewerSchema { found: 1000, .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("upgrade this program"), "{refusal}");
}
