//! A journal that fails, at each of its writes.

use std::{path::Path, time::Duration};

use hapax_client::{
    CallError, Client, Warning,
    journal::{Boot, EntryStateTag, JournalClock, JournalOptions, Moment, Name},
};
use hapax_core::{Faults, Injected, Timestamp};

use crate::server::{Server, answer, journalling, journalling_with};

fn failing_at(directory: &Path, fault: &'static str) -> Client {
    let faults =
        Faults::new(move |place| if place == fault { Err(Injected { place }) } else { Ok(()) });
    journalling_with(directory, JournalOptions { faults, ..JournalOptions::default() })
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |_| answer(200, "charged")).await;
    let client = failing_at(directory.path(), "journal.begin");
    let error = client.operation("charge-42").post(server.at("/charges")).send().await;
    let error = error.expect_err("no journal");
    assert!(matches!(error, CallError::Journal(_)), "{error:?}");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_down_is_returned_with_a_warning_and_asked_for_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |_| answer(200, "charged")).await;
    let key = {
        let client = failing_at(directory.path(), "journal.settle");
        let call = client.operation("charge-42").post(server.at("/charges"));
        let answer = call.send().await.expect("an answer");
        assert!(matches!(answer.warnings(), [Warning::NotRecorded(_)]), "{answer:?}");
        let name = Name::parse("charge-42").expect("a name");
        let found = client.journal().expect("a journal").find(&name).await.expect("readable");
        assert_eq!(found.expect("an entry").state.tag(), EntryStateTag::Pending);
        answer.key().expect("a key").to_owned()
    };
    // Its lease is that of a process that died.
    let later = journalling_with(directory.path(), after_a_reboot());
    let summary = later.resume().await.expect("a journal");
    assert_eq!(summary.done.len(), 1, "{summary:?}");
    let seen = server.seen();
    assert_eq!((seen.len(), seen[1].key()), (2, format!("\"{key}\"").as_str()));
    assert!(journalling(directory.path()).resume().await.expect("a journal").done.is_empty());
}

/// Another start of the machine, which no lease outlives.
fn after_a_reboot() -> JournalOptions {
    let since = Duration::from_secs(3_600);
    let wall = Timestamp::ZERO.plus(Duration::from_secs(4_000_000_000));
    let clock = JournalClock::new(move || Moment { wall, boot: Some(Boot { id: [9; 16], since }) });
    JournalOptions { clock, ..JournalOptions::default() }
}
