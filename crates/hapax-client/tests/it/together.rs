//! Several tasks and several clients that ask for the same operation.

use std::sync::Arc;

use hapax_client::CallError;
use tokio::sync::Semaphore;

use crate::server::{Server, answer, journalling};

/// A server that answers when it is let, and whoever lets it.
async fn slow() -> (Server, Arc<Semaphore>) {
    let go = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&go);
    let server = Server::start(move |_| {
        let gate = Arc::clone(&gate);
        async move {
            let _go = gate.acquire().await;
            answer(200, "charged")
        }
    });
    (server.await, go)
}

async fn until_seen(server: &Server, count: usize) {
    while server.seen().len() < count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn several_tasks_of_one_client_send_an_operation_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, go) = slow().await;
    let client = journalling(directory.path());
    let send = || client.operation("charge-42").post(server.at("/charges")).body("5").send();
    let waiting: Vec<_> = (0..8).map(|_| tokio::spawn(send())).collect();
    until_seen(&server, 1).await;
    let other = client.operation("charge-42").post(server.at("/charges")).body("6").send().await;
    assert!(matches!(other, Err(CallError::NameReused { .. })), "{other:?}");
    go.add_permits(1);
    let mut recorded = 0;
    for task in waiting {
        let answer = task.await.expect("a task").expect("an answer");
        assert_eq!(answer.text(), "charged");
        recorded += usize::from(answer.recorded());
    }
    assert_eq!((server.seen().len(), recorded), (1, 7));
}

#[tokio::test]
async fn another_client_is_told_that_the_operation_is_being_pursued() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, go) = slow().await;
    let (one, other) = (journalling(directory.path()), journalling(directory.path()));
    let first = tokio::spawn(one.operation("charge-42").post(server.at("/charges")).send());
    until_seen(&server, 1).await;
    let error = other.operation("charge-42").post(server.at("/charges")).send().await;
    let error = error.expect_err("somebody else has it");
    assert!(matches!(error, CallError::Held { .. }), "{error:?}");
    assert_eq!(other.resume().await.expect("a journal").held.len(), 1);
    go.add_permits(1);
    first.await.expect("a task").expect("an answer");
    let answer = other.operation("charge-42").post(server.at("/charges")).send().await;
    assert!(answer.expect("an answer").recorded());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn when_the_task_that_pursues_it_is_dropped_a_waiting_one_goes_on_with_its_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let (server, go) = slow().await;
    let client = journalling(directory.path());
    let send = || client.operation("charge-42").post(server.at("/charges")).send();
    let first = tokio::spawn(send());
    until_seen(&server, 1).await;
    let second = tokio::spawn(send());
    first.abort();
    let _ = first.await;
    until_seen(&server, 2).await;
    go.add_permits(2);
    assert_eq!(second.await.expect("a task").expect("an answer").text(), "charged");
    assert_eq!(server.seen()[0].key(), server.seen()[1].key());
}
