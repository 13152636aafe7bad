use std::net::TcpStream;

use hapax_services::{
    ServiceError,
    pgbouncer::{PoolMode, Pooler},
    postgres::{Server, Settings},
};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

async fn ask(client: &Client, query: &str) -> Option<String> {
    let answer = client.simple_query(query).await.ok()?;
    answer.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        row.get(0).map(str::to_owned)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_share_a_connection_between_transactions_and_not_within_one() {
    let server = Server::start(Settings::default()).unwrap();
    for (mode, is_shared) in [(PoolMode::Transaction, true), (PoolMode::Session, false)] {
        let pooler = Pooler::start(&server.url(), mode).unwrap();
        let one = connect(pooler.url()).await.unwrap();
        let other = connect(pooler.url()).await.unwrap();
        assert_eq!(ask(&one, "SELECT 1").await.as_deref(), Some("1"));
        let pid = "SELECT pg_backend_pid()";
        let (ones, others) = (ask(&one, pid).await, ask(&other, pid).await);
        assert_eq!(ones == others, is_shared, "{mode:?}");
        one.batch_execute("BEGIN").await.unwrap();
        assert_ne!(ask(&one, pid).await, ask(&other, pid).await, "{mode:?}");
    }
}

#[test]
fn dropping_a_pooler_stops_it() {
    let server = Server::start(Settings::default()).unwrap();
    let pooler = Pooler::start(&server.url(), PoolMode::Transaction).unwrap();
    let url = pooler.url().to_owned();
    let address = url.strip_prefix("postgres://postgres@").unwrap().strip_suffix("/postgres");
    assert!(TcpStream::connect(address.unwrap()).is_ok());
    drop(pooler);
    assert!(TcpStream::connect(address.unwrap()).is_err());
}

#[test]
fn what_is_no_address_is_refused_before_anything_is_started() {
    for url in ["", "postgres://postgres", "mysql://a@b:1/c", "postgres://a@b:1/c d=e"] {
        let refusal = Pooler::start(url, PoolMode::Transaction).unwrap_err();
        assert!(matches!(refusal, ServiceError::Address { .. }), "{url}: {refusal}");
    }
}
