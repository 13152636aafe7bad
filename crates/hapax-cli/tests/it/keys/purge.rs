//! `hapax keys purge`, for stores that no engine looks after.

use hapax::{Store, Timestamp, sqlite};
use tokio_postgres::NoTls;

use super::{File, json, keys, populate, refused};
use crate::{text, world::Database};

#[tokio::test]
async fn records_of_the_sql_functions_are_purged_up_to_the_limit_and_then_all() {
    let database = Database::migrated().await;
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    assert_eq!(json(&keys(&database.url, &["purge", "--json"]))["deleted"], 0);
    let record = "SELECT b.operation, hapax.finish(b.operation, b.fence) \
                  FROM generate_series(1, 5) AS n, hapax.begin('acme', 'pay', n::text, ''::bytea) AS b";
    client.batch_execute(record).await.unwrap();
    let messages = "SELECT hapax.first_delivery('mailer', n::text, retention => '1 day') \
                    FROM generate_series(1, 4) AS n";
    client.batch_execute(messages).await.unwrap();
    assert_eq!(json(&keys(&database.url, &["purge", "--json"]))["deleted"], 0);
    let later = "CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint LANGUAGE sql VOLATILE AS \
                 'SELECT (date_part(''epoch'', clock_timestamp() + interval ''2 days'') * 1000000)::bigint'";
    client.batch_execute(later).await.unwrap();
    // A clock that nobody watched is taken at its word.
    client.batch_execute("DELETE FROM hapax.clock_mark").await.unwrap();
    assert_eq!(json(&keys(&database.url, &["purge", "--limit", "2", "--json"]))["deleted"], 2);
    let done = text(&keys(&database.url, &["purge"]).stdout);
    assert_eq!(done, "7 removed, 0 reduced to tombstones, 0 timed out\n");
    let left = client.query_one("SELECT count(*) FROM hapax.inbox", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0, "messages are records too");
}

#[tokio::test]
async fn what_is_in_flight_or_in_doubt_is_kept() {
    let file = File { directory: tempfile::tempdir().unwrap() };
    let clock = sqlite::Clock::new(|| Timestamp::ZERO);
    let options = sqlite::Options { clock, ..sqlite::Options::default() };
    populate(sqlite::Store::open(file.path(), options).unwrap()).await;
    // A clock that nobody watched is taken at its word.
    let connection = rusqlite::Connection::open(file.path()).unwrap();
    connection.execute("DELETE FROM hapax_meta WHERE name LIKE 'clock_%'", []).unwrap();
    drop(connection);
    let done = text(&file.keys(&["purge"]).stdout);
    assert_eq!(done, "1 removed, 0 reduced to tombstones, 0 timed out\n");
    let left = sqlite::Store::open(file.path(), sqlite::Options::default()).unwrap();
    let page = hapax::store::Page { after: None, limit: 10 };
    assert_eq!(left.list(hapax::store::Filter::default(), page).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_purge_needs_the_store_itself_and_a_limit_that_is_one() {
    let file = File::new().await;
    let (code, said) = refused(&file.keys(&["purge", "--admin", "http://127.0.0.1:1"]));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("purges by itself"), "{said}");
    assert_eq!(refused(&file.keys(&["purge", "--limit", "0"])).0, 2);
}
