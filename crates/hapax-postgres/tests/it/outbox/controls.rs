//! The usual queries, shown to fail where ours does not: if one of these ever passes, the scenes
//! above no longer show anything.

use tokio_postgres::Client;

use super::run;
use crate::backend::Postgres;

/// A table as most have it, with an id and the transaction's.
async fn usual() -> (Postgres, Client) {
    let postgres = Postgres::empty().await;
    let client = postgres.client().await;
    run(
        &client,
        "CREATE TABLE usual (id bigserial PRIMARY KEY, xid xid8 DEFAULT pg_current_xact_id(), payload text)",
    )
    .await;
    (postgres, client)
}

async fn payloads(client: &Client, text: &str) -> Vec<String> {
    client.query(text, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

const BY_TRANSACTION: &str = "SELECT payload FROM usual \
     WHERE xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, id";

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_over_ids_loses_what_commits_late() {
    let (postgres, reader) = usual().await;
    let late = postgres.client().await;
    run(&late, "BEGIN; INSERT INTO usual (payload) VALUES ('late')").await;
    run(&postgres.client().await, "INSERT INTO usual (payload) VALUES ('quick')").await;
    let read = "SELECT max(id) FROM usual";
    let cursor: i64 = reader.query_one(read, &[]).await.unwrap().get(0);
    run(&late, "COMMIT").await;
    let above = format!("SELECT payload FROM usual WHERE id > {cursor}");
    assert!(payloads(&reader, &above).await.is_empty(), "it is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn ordering_by_transaction_swaps_a_keys_events() {
    let (postgres, reader) = usual().await;
    let (first, second) = (postgres.client().await, postgres.client().await);
    run(&first, "BEGIN; SELECT pg_current_xact_id()").await;
    run(&second, "BEGIN; SELECT pg_current_xact_id()").await;
    run(&second, "INSERT INTO usual (payload) VALUES ('one'); COMMIT").await;
    run(&first, "INSERT INTO usual (payload) VALUES ('two'); COMMIT").await;
    while payloads(&reader, BY_TRANSACTION).await.len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(payloads(&reader, BY_TRANSACTION).await, ["two", "one"], "the second comes first");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_the_oldest_transaction_stalls_on_strangers() {
    let (postgres, reader) = usual().await;
    let stranger = Postgres::empty().await;
    let foreign = stranger.client().await;
    run(&foreign, "BEGIN; CREATE TABLE foreign_work (n int)").await;
    run(&postgres.client().await, "INSERT INTO usual (payload) VALUES ('one')").await;
    for _ in 0..20 {
        assert!(payloads(&reader, BY_TRANSACTION).await.is_empty(), "another database stalls it");
    }
    run(&foreign, "ROLLBACK").await;
}
