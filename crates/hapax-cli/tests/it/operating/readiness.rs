//! `/readyz` says whether new requests can be served, which takes writing.

use tokio_postgres::{Client, NoTls};

use super::{Scrape, alerts::fire_on};
use crate::world::{Answer, Behaviour, Database, Gateway, Setup, Upstream, ask, post, until};

/// More requests than fit into a store whose files are limited.
const REQUESTS_MAX: u32 = 3000;

async fn readiness(gateway: &Gateway) -> Answer {
    ask(gateway.admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap()
}

#[tokio::test]
async fn a_gateway_whose_disk_is_full_is_not_ready_and_still_replays() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).file_kib_max(512).start().await;
    let first = ask(gateway.address, post("/pay", "first", "ten")).await.unwrap();
    assert_eq!(first.status, 201);
    let mut sent = 0;
    until("the disk to be full", async || {
        for _ in 0..20 {
            sent += 1;
            assert!(sent < REQUESTS_MAX, "it never was: {}", gateway.log());
            let body = "x".repeat(2000);
            ask(gateway.address, post("/pay", &format!("k{sent}"), &body)).await;
        }
        readiness(&gateway).await.status == 503
    })
    .await;
    let answer = readiness(&gateway).await;
    assert!(answer.text().contains(r#""reason":"store""#), "{}", answer.text());
    let again = ask(gateway.address, post("/pay", "first", "ten")).await.unwrap();
    assert_eq!((again.status, again.is_replay()), (201, true), "what is stored is still answered");
    let alive = ask(gateway.admin, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(alive.status, 200);
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn a_gateway_whose_server_reads_and_does_not_write_is_not_ready() {
    let (database, upstream) =
        (Database::create().await, Upstream::start(Behaviour::default()).await);
    let gateway = Setup::new(upstream.address).store(&database.url).start().await;
    let well = Scrape::of(&gateway).await;
    let client = connect(&database.url).await;
    let full = "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
        CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON hapax.operations
        FOR EACH STATEMENT EXECUTE FUNCTION public.full();";
    client.batch_execute(full).await.unwrap();
    until("it not to be ready", async || readiness(&gateway).await.status == 503).await;
    let said = readiness(&gateway).await;
    assert!(said.text().contains("no space left"), "{}", said.text());
    let refused = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!(refused.code().as_deref(), Some("store-unavailable"));
    let unwell = Scrape::of(&gateway).await;
    fire_on(&[well, unwell], &[("HapaxUndecided", "severity=\"critical\"")]);
    client.batch_execute("DROP TRIGGER full_disk ON hapax.operations").await.unwrap();
    until("it to be ready again", async || readiness(&gateway).await.status == 200).await;
}

#[tokio::test]
async fn a_gateway_whose_server_became_read_only_is_not_ready() {
    let (database, upstream) =
        (Database::create().await, Upstream::start(Behaviour::default()).await);
    let gateway = Setup::new(upstream.address).store(&database.url).start().await;
    let client = connect(&database.url).await;
    let name = database.url.rsplit_once('/').unwrap().1;
    let switch = |to: &str| {
        format!(
            "BEGIN READ WRITE; ALTER DATABASE {name} SET default_transaction_read_only = {to}; COMMIT;
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        )
    };
    client.batch_execute(&switch("on")).await.unwrap();
    until("it not to be ready", async || readiness(&gateway).await.status == 503).await;
    client.batch_execute(&switch("off")).await.unwrap();
    until("it to be ready again", async || readiness(&gateway).await.status == 200).await;
}
