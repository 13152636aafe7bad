//! A commit whose answer is lost is read again, and answered from what is there.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use hapax_engine::transactional::{TransactionOptions, Transactional};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_postgres::Config;

use super::{
    doors::Door,
    through_every_door,
    world::{World, is_replayed, is_stored},
};

through_every_door!(
    a_commit_that_arrived_is_answered_as_such,
    a_commit_that_did_not_arrive_is_made_again,
);

async fn a_commit_that_arrived_is_answered_as_such<D: Door>() {
    let world = through_a_bad_wire::<D>(Cut::AfterTheCommit).await;
    let answered = world.pay("k", 201).await;
    assert!(is_stored(&answered), "{answered:?}");
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 1));
    assert!(is_replayed(&world.pay("k", 201).await));
}

async fn a_commit_that_did_not_arrive_is_made_again<D: Door>() {
    let world = through_a_bad_wire::<D>(Cut::BeforeTheCommit).await;
    let answered = world.pay("k", 201).await;
    assert!(is_stored(&answered), "{answered:?}");
    assert_eq!((world.payments().await, world.events().await, world.calls()), (1, 1, 2));
    assert!(is_replayed(&world.pay("k", 201).await));
}

#[derive(Clone, Copy, PartialEq)]
enum Cut {
    BeforeTheCommit,
    AfterTheCommit,
}

/// A world whose driver speaks through a proxy that cuts the first connection at its first COMMIT.
async fn through_a_bad_wire<D: Door>(cut: Cut) -> World<D> {
    let mut world = World::<D>::new().await;
    let mut config = world.postgres.config();
    let address = proxy(&config, cut).await;
    let mut through = Config::new();
    through.user("postgres").dbname(config.get_dbname().unwrap());
    through.host("127.0.0.1").port(address);
    config = through;
    let database = D::open(&config, None);
    world.hapax = Transactional::new(database, TransactionOptions::default());
    world
}

async fn proxy(config: &Config, cut: Cut) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = ("127.0.0.1", config.get_ports()[0]);
    let armed = Arc::new(AtomicBool::new(true));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(carry(client, server, cut, Arc::clone(&armed)));
        }
    });
    port
}

/// Carries bytes both ways, up to the first COMMIT of all connections.
async fn carry(mut client: TcpStream, mut server: TcpStream, cut: Cut, armed: Arc<AtomicBool>) {
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(len @ 1..) = read else { return };
                let sent = &from_client[..len];
                let commits = sent.windows(6).any(|window| window == b"COMMIT");
                if commits && armed.swap(false, Ordering::SeqCst) {
                    if cut == Cut::AfterTheCommit {
                        server.write_all(sent).await.unwrap();
                        // Its answer is read, and kept from the client.
                        let _ = server.read(&mut from_server).await;
                    }
                    return;
                }
                if server.write_all(sent).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(len @ 1..) = read else { return };
                if client.write_all(&from_server[..len]).await.is_err() { return }
            }
        }
    }
}
