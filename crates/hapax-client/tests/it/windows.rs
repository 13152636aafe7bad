//! Nothing is sent after its server has forgotten the key.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::response::Response;
use hapax_client::{
    CallError, Client, Warning,
    journal::{Boot, EntryStateTag, JournalClock, JournalOptions, Moment, Name},
};
use hapax_core::Timestamp;

use crate::server::{Server, answer, journalling_with};

/// A client whose journal's clock is moved by hand.
struct World {
    client: Client,
    passed: Arc<AtomicU64>,
    _directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let passed = Arc::<AtomicU64>::default();
        let client = Self::client(directory.path(), &passed);
        Self { client, passed, _directory: directory }
    }

    fn client(directory: &Path, passed: &Arc<AtomicU64>) -> Client {
        let passed = Arc::clone(passed);
        let clock = JournalClock::new(move || {
            let since = Duration::from_secs(1_000 + passed.load(Relaxed));
            let wall = Timestamp::ZERO.plus(since);
            Moment { wall, boot: Some(Boot { id: [1; 16], since }) }
        });
        journalling_with(directory, JournalOptions { clock, ..JournalOptions::default() })
    }

    async fn state(&self) -> EntryStateTag {
        let name = Name::parse("charge-42").expect("a name");
        let found = self.client.journal().expect("a journal").find(&name).await.expect("readable");
        found.expect("an entry").state.tag()
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

async fn failing_at_first(number: usize) -> Response {
    if number < 3 { answer(500, "perhaps") } else { answer(200, "charged") }
}

#[tokio::test]
async fn an_operation_is_not_sent_after_the_window_that_its_server_publishes() {
    let world = World::new();
    let server = Server::publishing(Some(HOUR), failing_at_first).await;
    let send = || world.client.operation("charge-42").post(server.at("/charges")).send();
    send().await.expect_err("no success");
    world.passed.store(2 * HOUR.as_secs(), Relaxed);
    let error = send().await.expect_err("the server has forgotten the key");
    let CallError::WindowPassed(passed) = &error else { panic!("{error:?}") };
    assert_eq!((passed.window, passed.age), (HOUR, 2 * HOUR));
    assert_eq!(error.conclusion(), Some(hapax_client::Conclusion::Unknown));
    assert_eq!(server.seen().len(), 3);
    assert_eq!(world.state().await, EntryStateTag::Unknown);
}

#[tokio::test]
async fn within_the_window_it_is_sent() {
    let world = World::new();
    let server = Server::publishing(Some(HOUR), failing_at_first).await;
    let send = || world.client.operation("charge-42").post(server.at("/charges")).send();
    send().await.expect_err("no success");
    world.passed.store(HOUR.as_secs() / 2, Relaxed);
    assert_eq!(send().await.expect("an answer").text(), "charged");
}

#[tokio::test]
async fn a_server_that_publishes_nothing_is_asked_again_at_any_time() {
    let world = World::new();
    let server = Server::start(failing_at_first).await;
    let send = || world.client.operation("charge-42").post(server.at("/charges")).send();
    send().await.expect_err("no success");
    world.passed.store(48 * HOUR.as_secs(), Relaxed);
    assert_eq!(send().await.expect("an answer").text(), "charged");
}

#[tokio::test]
async fn a_deadline_beyond_the_window_is_warned_about() {
    let world = World::new();
    let server = Server::publishing(Some(HOUR), async |_| answer(200, "charged")).await;
    let mut warned = false;
    for number in 0.. {
        let call = world.client.operation(format!("charge-{number}")).post(server.at("/charges"));
        let answer = call.deadline(2 * HOUR).send().await.expect("an answer");
        warned = matches!(answer.warnings(), [Warning::DeadlineBeyondWindow { .. }]);
        // The window is read beside the first operations.
        if warned || number > 1_000 {
            break;
        }
    }
    assert!(warned);
}
