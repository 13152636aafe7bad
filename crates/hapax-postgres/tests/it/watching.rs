//! A settle in one process is heard in another.

use std::time::Duration;

use hapax_core::{Store, store::Write};

use crate::{
    backend::Postgres,
    reference::{claim, complete, completion, operation},
};

/// Long enough that only a lost hint takes it.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_in_another_process_hears_of_a_settle() {
    let database = Postgres::empty().await;
    let (here, there) = (database.store().await, database.store().await);
    here.commit(vec![Write::Claim(claim("watched", 1))]).await;
    let id = operation("watched").id();
    // The first hint comes when the listener has connected.
    tokio::time::timeout(PATIENCE, there.watch(id)).await.unwrap();
    let watching = tokio::spawn(async move { there.watch(id).await });
    while database.number("SELECT count(*) FROM hapax.operations WHERE watched").await == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!watching.is_finished());
    here.commit(vec![Write::Settle(completion("watched", 1, b"done"))]).await;
    tokio::time::timeout(PATIENCE, watching).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_what_is_settled_or_absent_ends_at_once() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "done", b"").await;
    tokio::time::timeout(PATIENCE, store.watch(operation("done").id())).await.unwrap();
    tokio::time::timeout(PATIENCE, store.watch(operation("absent").id())).await.unwrap();
}
