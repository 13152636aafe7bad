//! Named operations: what is in the journal, and when.

use hapax_client::{
    CallError, Client, Proxies, ReqwestOptions,
    journal::{EntryStateTag, Name},
};
use rusqlite::{Connection, OpenFlags};

use crate::server::{Server, answer, journalling};

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

#[tokio::test]
async fn the_operation_is_on_disk_before_its_first_byte_arrives() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("client.db");
    let looked = file.clone();
    let server = Server::start(move |_| {
        let file = looked.clone();
        async move {
            let journal = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY);
            let found = journal.and_then(|journal| {
                journal.query_row(
                    "SELECT state || ' ' || key FROM hapax_calls_readable WHERE name = 'charge-42'",
                    [],
                    |row| row.get::<_, String>(0),
                )
            });
            match found {
                Ok(_) => answer(200, "written before"),
                Err(_) => answer(400, "not written yet"),
            }
        }
    })
    .await;
    let client = journalling(directory.path());
    let answer = client.operation("charge-42").post(server.at("/charges")).send().await;
    assert_eq!(answer.expect("an answer").text(), "written before");
}

#[tokio::test]
async fn a_recorded_refusal_is_returned_without_sending_anything() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |_| answer(402, "no money")).await;
    let client = journalling(directory.path());
    for recorded in [false, true] {
        let error = client.operation("charge-42").post(server.at("/charges")).send().await;
        let error = error.expect_err("a refusal");
        let CallError::Refused(answer) = &error else { panic!("{error}") };
        assert_eq!((answer.text().as_str(), answer.recorded()), ("no money", recorded));
    }
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_name_that_belongs_to_another_request_is_refused_and_nothing_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |_| answer(200, "ok")).await;
    let client = journalling(directory.path());
    let send = |body: &'static str| {
        client.operation("charge-42").post(server.at("/charges")).body(body).send()
    };
    send("5").await.expect("an answer");
    let error = send("6").await.expect_err("another request");
    assert!(matches!(error, CallError::NameReused { .. }), "{error:?}");
    let call = client.operation("charge-42").post(server.at("/charges")).body("5").key("mine");
    let error = call.send().await.expect_err("another key");
    assert!(matches!(error, CallError::NameReused { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn what_is_unknown_stays_in_the_journal_and_is_asked_again_with_the_same_key() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |number| match number {
        0..3 => answer(500, "perhaps"),
        _ => answer(200, "charged"),
    })
    .await;
    let client = journalling(directory.path());
    let send = || client.operation("charge-42").post(server.at("/charges")).send();
    let error = send().await.expect_err("no success");
    assert!(matches!(error, CallError::Unknown(_)), "{error:?}");
    let journal = client.journal().expect("a journal");
    let entry = journal.find(&name("charge-42")).await.expect("readable").expect("an entry");
    assert_eq!((entry.state.tag(), entry.attempts), (EntryStateTag::Unknown, 3));
    let reason = entry.state.reason().expect("a reason");
    assert!(reason.contains("500"), "{reason}");
    let answer = send().await.expect("an answer");
    assert_eq!((answer.attempts(), answer.key()), (4, error.key()));
    assert!(server.seen().iter().all(|seen| seen.key() == server.seen()[0].key()));
}

#[tokio::test]
async fn an_operation_can_be_asked_for_again_by_its_name_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |number| match number {
        0..3 => answer(500, "perhaps"),
        _ => answer(200, "charged"),
    })
    .await;
    let client = journalling(directory.path());
    let call = client.operation("charge-42").post(server.at("/charges")).header("x-shop", "7");
    call.body("5").send().await.expect_err("no success");
    let answer = client.take_up("charge-42").send().await.expect("a success").expect("a name");
    assert_eq!(answer.text(), "charged");
    assert_eq!(server.seen()[3].headers["x-shop"], "7");
    assert!(client.take_up("nobody").send().await.expect("no such name").is_none());
}

#[tokio::test]
async fn an_operation_with_a_name_is_tried_as_often_as_its_deadline_allows() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = Server::start(async |number| match number {
        0..5 => answer(503, "not now"),
        _ => answer(200, "charged"),
    })
    .await;
    let connections = ReqwestOptions { proxies: Proxies::Never, ..ReqwestOptions::default() };
    let client = Client::builder().connections(connections).journal(directory.path().join("c.db"));
    let client = client.build().expect("a client");
    let answer = client.operation("charge-42").post(server.at("/charges")).send().await;
    assert_eq!(answer.expect("an answer").attempts(), 6);
}
