//! Finishing what somebody began and did not finish.

use std::{sync::Arc, time::Duration};

use hapax_client::{Client, ResumeReport};
use tokio::sync::Semaphore;

use crate::server::{Server, answer, journalling};

/// A server that never answers the first `stuck` requests, and how many of them arrived.
async fn stuck_for(stuck: usize) -> (Server, Arc<Semaphore>) {
    let arrived = Arc::new(Semaphore::new(0));
    let counted = Arc::clone(&arrived);
    let server = Server::start(move |number| {
        let counted = Arc::clone(&counted);
        async move {
            if number < stuck {
                counted.add_permits(1);
                std::future::pending::<()>().await;
            }
            answer(200, "charged")
        }
    });
    (server.await, arrived)
}

/// Begins operations and drops them once they have arrived.
async fn begin_and_drop(client: &Client, server: &Server, names: &[&str], arrived: &Semaphore) {
    for name in names {
        let send =
            client.operation(*name).post(server.at("/charges")).body(name.to_string()).send();
        tokio::select! {
            ended = send => panic!("{ended:?}"),
            arrived = arrived.acquire() => arrived.expect("open").forget(),
        }
    }
}

/// What was dropped is free as soon as the journal has noted that.
async fn resumed(client: &Client, count: usize) -> ResumeReport {
    let mut all = ResumeReport::default();
    while all.done.len() < count {
        let summary = client.resume().await.expect("a journal");
        assert!(summary.left.is_empty() && summary.unknown.is_empty(), "{summary:?}");
        all.done.extend(summary.done);
        tokio::task::yield_now().await;
    }
    all
}

#[tokio::test]
async fn what_was_dropped_is_finished_by_a_resume_with_the_same_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, arrived) = stuck_for(1).await;
    let client = journalling(directory.path());
    begin_and_drop(&client, &server, &["charge-42"], &arrived).await;
    let summary = resumed(&client, 1).await;
    assert_eq!(summary.done[0].as_str(), "charge-42");
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].key()), (2, seen[1].key()));
    let again = client.operation("charge-42").post(server.at("/charges")).body("charge-42");
    assert!(again.send().await.expect("an answer").recorded());
}

#[tokio::test]
async fn a_resume_finishes_everything_that_is_pending() {
    let directory = tempfile::tempdir().expect("a directory");
    let names: Vec<_> = (0..20).map(|number| format!("charge-{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (server, arrived) = stuck_for(names.len()).await;
    let client = journalling(directory.path());
    begin_and_drop(&client, &server, &names, &arrived).await;
    let mut done: Vec<_> = resumed(&client, 20).await.done.into_iter().collect();
    done.sort();
    done.dedup();
    assert_eq!((done.len(), server.seen().len()), (20, 40));
}

#[tokio::test]
async fn the_background_resumer_finishes_it_and_can_be_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, arrived) = stuck_for(1).await;
    let client = journalling(directory.path());
    begin_and_drop(&client, &server, &["charge-42"], &arrived).await;
    let resumer = client.resumer(Duration::from_millis(100));
    while server.seen().len() < 2 {
        tokio::task::yield_now().await;
    }
    let send =
        || client.operation("charge-42").post(server.at("/charges")).body("charge-42").send();
    assert_eq!(send().await.expect("an answer").text(), "charged");
    resumer.stop().await;
    assert_eq!(server.seen().len(), 2);
}
