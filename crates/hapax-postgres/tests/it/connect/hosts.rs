//! Several hosts, of which one takes writes.

use std::fs;

use hapax_core::Store as _;
use hapax_postgres::{Address, OpenError, Options, Store};
use hapax_services::postgres::{Mode, Server, Settings};
use tokio::net::TcpListener;

use super::port;
use crate::{backend, reference::complete};

/// A port that nobody listens at.
async fn closed() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

fn among(ports: &[u16], parameters: &str) -> Address {
    let hosts: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    format!("postgres://postgres@{}/postgres?{parameters}", hosts.join(",")).parse().unwrap()
}

/// Has a server that was stopped in order come back as a standby, which waits for a primary.
fn demote(server: &mut Server) {
    server.stop(Mode::Fast).unwrap();
    fs::write(server.data_dir().join("standby.signal"), "").unwrap();
    server.resume().unwrap();
}

async fn reached(address: &Address) -> u16 {
    let (client, connection) = address.connect().await.unwrap();
    tokio::spawn(connection);
    let row = client.query_one("SELECT inet_server_port()", &[]).await.unwrap();
    u16::try_from(row.get::<_, i32>(0)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_that_takes_writes_is_found_and_found_again() {
    let (mut first, mut second) =
        (Server::start(Settings::default()).unwrap(), Server::start(Settings::default()).unwrap());
    let ports = [closed().await, port(&first), port(&second)];
    for server in [&first, &second] {
        Store::migrate(&server.url().parse::<Address>().unwrap()).await.unwrap();
    }
    demote(&mut first);
    let address = among(&ports, "");
    assert_eq!(reached(&address).await, ports[2], "the closed one and the standby are passed over");
    assert_eq!(reached(&among(&ports, "target_session_attrs=any")).await, ports[1]);
    assert_eq!(reached(&among(&ports, "target_session_attrs=primary")).await, ports[2]);

    let store = Store::connect(&address, Options::default()).await.unwrap();
    complete(&store, "before", b"1").await;
    second.stop(Mode::Immediate).unwrap();
    let standby: tokio_postgres::Config = first.url().parse().unwrap();
    let standby = backend::connect(&standby).await;
    standby.query_one("SELECT pg_promote()", &[]).await.unwrap();
    // What was sent on a connection that is gone has no answer; what comes later goes to the new primary.
    while store.clock().await.is_err() {}
    complete(&store, "after", b"2").await;
    assert_eq!(reached(&address).await, ports[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_which_none_will_do_are_told_one_by_one() {
    let mut standby = Server::start(Settings::default()).unwrap();
    demote(&mut standby);
    let read_only = [port(&standby), port(&standby)];
    let refused = Store::connect(&among(&read_only, ""), Options::default()).await.unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly), "{refused:?}");
    let alone = Store::connect(&among(&read_only[..1], ""), Options::default()).await.unwrap_err();
    assert!(matches!(alone, OpenError::ReadOnly), "{alone:?}");
    let mixed = [closed().await, port(&standby)];
    let refused = Store::connect(&among(&mixed, ""), Options::default()).await.unwrap_err();
    let told = hapax_core::OneLine::of(&refused).to_string();
    assert!(told.contains(&format!("nobody answers at 127.0.0.1:{}", mixed[0])), "{told}");
    assert!(told.contains(&format!("127.0.0.1:{} takes no writes", mixed[1])), "{told}");
}
