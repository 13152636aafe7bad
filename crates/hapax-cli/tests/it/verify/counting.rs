//! Effects that are counted beside the API.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use rusqlite::Connection;
use tokio::runtime::Handle;

use super::{Verifier, started};
use crate::world::{Database, Raw};

/// A server that pays for the marker in its path: once for each key if it is honest.
pub(super) async fn server(
    is_honest: bool,
    pay: impl Fn(&str, &str) + Send + Sync + 'static,
) -> Raw {
    let keys: Mutex<HashSet<String>> = Mutex::default();
    Raw::start(move |head| {
        // It is asked, too, whether it speaks HTTP/2.
        let Some(path) = head.strip_prefix("POST /payments/") else {
            return b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                .to_vec();
        };
        let marker = path.split(' ').next().unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("Idempotency-Key: "));
        let key = key.unwrap_or_default();
        let is_new = keys.lock().unwrap().insert(key.to_owned());
        if is_new || key.is_empty() || !is_honest {
            tokio::task::block_in_place(|| pay(marker, key));
        }
        b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\npaid".to_vec()
    })
    .await
}

/// One that keeps payments in this file.
async fn server_with_file(file: PathBuf, is_honest: bool) -> Raw {
    let database = Connection::open(file).unwrap();
    database.execute("CREATE TABLE payments (ref TEXT, key TEXT)", ()).unwrap();
    let database = Mutex::new(database);
    server(is_honest, move |marker, key| {
        let database = database.lock().unwrap();
        database.execute("INSERT INTO payments VALUES (?1, ?2)", (marker, key)).unwrap();
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_in_a_sqlite_file_counts() {
    for (is_honest, exit) in [(true, 0), (false, 1)] {
        let verifier = Verifier::new();
        let server = server_with_file(verifier.path("shop.db"), is_honest).await;
        let url = format!("http://{}/payments/{{marker}}", server.address);
        let statement = "SELECT count(*) FROM payments WHERE ref = $1";
        let store = ["--count-sql", statement, "--count-store", "sqlite:shop.db"];
        let ended = verifier.run(&[&["POST", &url, "--only", "V01"], &store[..]].concat());
        assert_eq!(ended.exit, Some(exit), "{ended:?}");
        assert!(ended.out.contains("(O2)"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_in_postgres_counts() {
    let database = Database::create().await;
    let (client, connection) =
        tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE payments (ref TEXT)").await.unwrap();
    let client = Arc::new(client);
    for (is_honest, exit) in [(true, 0), (false, 1)] {
        let (client, runtime) = (client.clone(), Handle::current());
        let server = server(is_honest, move |marker, _| {
            let paying = async {
                client.execute("INSERT INTO payments VALUES ($1)", &[&marker]).await.unwrap()
            };
            assert_eq!(runtime.block_on(paying), 1);
        });
        let server = server.await;
        let url = format!("http://{}/payments/{{marker}}", server.address);
        let statement = "SELECT count(*) FROM payments WHERE ref = $1";
        let store = ["--count-sql", statement, "--count-store", "env:COUNTED"];
        let args = [&["POST", &url, "--only", "V01"], &store[..]].concat();
        let output = Verifier::new().command(&args).env("COUNTED", &database.url).output().unwrap();
        let ended = super::VerifyOutcome::of(&output);
        assert_eq!(ended.exit, Some(exit), "{ended:?}");
        assert!(ended.out.contains("(O2)"), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_writes() {
    let verifier = Verifier::new();
    let server = server_with_file(verifier.path("shop.db"), true).await;
    let url = format!("http://{}/payments/{{marker}}", server.address);
    let database = Database::create().await;
    let (client, connection) =
        tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE payments (ref TEXT)").await.unwrap();
    for (statement, store) in [
        ("INSERT INTO payments VALUES ($1, '') RETURNING 1", "sqlite:shop.db"),
        ("INSERT INTO payments VALUES ($1) RETURNING 1::bigint", &database.url),
    ] {
        let store = ["--count-sql", statement, "--count-store", store];
        let ended = verifier.run(&[&["POST", &url, "--only", "V01"], &store[..]].concat());
        assert_eq!(ended.exit, Some(3), "{ended:?}");
        let told = format!("{}{}", ended.out, ended.err);
        assert!(told.contains("read") && told.contains("--count-sql"), "{ended:?}");
    }
    let rows = client.query_one("SELECT count(*) FROM payments", &[]).await.unwrap();
    assert_eq!(rows.get::<_, i64>(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_counts() {
    let (_running, url) = started("no-idempotency").await;
    let body = super::BODY;
    let count = format!("curl -sS '{url}?ref={{marker}}' | grep -o '\"id\"' | wc -l");
    let ended = Verifier::new().run(&[
        "POST",
        &url,
        "--json",
        body,
        "--credential",
        super::ALICE,
        "--count-command",
        &count,
        "--only",
        "V01",
    ]);
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    assert!(ended.out.contains("one key had 2 effects"), "{ended:?}");
}
