//! Who asks is not written to disk, and nothing is sent without it.

use std::path::Path;

use hapax_client::{CallError, Client};
use http::header::AUTHORIZATION;

use crate::server::{Server, answer, builder, journalling};

const SECRET: &str = "Bearer s3cr3t-t0k3n";

/// Whether the journal, its log included, holds the secret.
fn is_on_disk(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).expect("a directory");
    files.map(|file| file.expect("a file").path()).any(|path| {
        let bytes = std::fs::read(path).expect("a readable file");
        bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
    })
}

/// An operation that was begun with a credential of its own, and left unknown.
async fn left_unknown(client: &Client, server: &Server, keep: bool) {
    let call = client.operation("charge-42").post(server.at("/charges"));
    let call = call.header(AUTHORIZATION, SECRET);
    let call = if keep { call.keep_credentials() } else { call };
    call.send().await.expect_err("no success");
}

async fn server() -> Server {
    Server::start(async |number| match number {
        0..3 => answer(500, "perhaps"),
        _ => answer(200, "charged"),
    })
    .await
}

#[tokio::test]
async fn credentials_are_sent_and_not_written_to_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server().await;
    let client = journalling(directory.path());
    left_unknown(&client, &server, false).await;
    assert_eq!(server.seen()[0].headers[AUTHORIZATION], SECRET);
    assert!(!is_on_disk(directory.path()));

    let error = client.take_up("charge-42").send().await.expect_err("nobody knows the token");
    let CallError::CredentialsMissing { headers, .. } = &error else { panic!("{error:?}") };
    assert_eq!(headers, &[AUTHORIZATION]);
    assert_eq!(server.seen().len(), 3, "nothing was sent without it");
}

#[tokio::test]
async fn a_client_that_has_the_credentials_takes_up_what_was_begun_with_them() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server().await;
    left_unknown(&journalling(directory.path()), &server, false).await;
    let client =
        builder().header(AUTHORIZATION, SECRET).journal(directory.path().join("client.db"));
    let client = client.build().expect("a client");
    let answer = client.take_up("charge-42").send().await.expect("an answer").expect("a name");
    assert_eq!(answer.text(), "charged");
    assert_eq!(server.seen()[3].headers[AUTHORIZATION], SECRET);
    assert!(!is_on_disk(directory.path()));
}

#[tokio::test]
async fn credentials_are_kept_where_the_caller_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let server = server().await;
    let client = journalling(directory.path());
    left_unknown(&client, &server, true).await;
    assert!(is_on_disk(directory.path()));
    client.take_up("charge-42").send().await.expect("an answer").expect("a name");
    assert_eq!(server.seen()[3].headers[AUTHORIZATION], SECRET);
}
