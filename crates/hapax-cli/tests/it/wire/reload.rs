//! Signals: a new file, a wrong file, and the end.

use std::time::Duration;

use super::{ROUTES, World, key, request};
use crate::world::{Behaviour, Connection, Setup, Upstream, ask, post, until};

async fn reloaded(world: &World, toml: &str, said: &str) {
    let before = world.gateway.log().matches(said).count();
    world.gateway.configure(toml);
    world.gateway.signal("HUP");
    until(said, async || world.gateway.log().matches(said).count() > before).await;
}

#[tokio::test]
async fn a_new_file_counts_for_the_next_request_on_an_open_connection() {
    let world = World::start("").await;
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send(request("/pay", "")).await;
    assert_eq!(connection.answer().await.unwrap().status, 201);
    reloaded(&world, ROUTES, "hapax: reloaded").await;
    connection.send(request("/pay", "")).await;
    let refused = connection.answer().await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (400, Some("key-missing")));
    connection.send(request("/pay", key("k"))).await;
    assert_eq!(connection.answer().await.unwrap().status, 201);
}

#[tokio::test]
async fn a_wrong_file_is_refused_and_changes_nothing() {
    let world = World::start(ROUTES).await;
    let mut connection = Connection::open(world.gateway.address).await;
    for wrong in ["retension = \"1h\"", "not toml", "[tls]\ncertificate = \"a\"\nkey = \"b\"\n"] {
        reloaded(&world, wrong, "not reloaded, everything stays as it was").await;
        connection.send(request("/pay", "")).await;
        let refused = connection.answer().await.unwrap();
        assert_eq!((refused.status, refused.code().as_deref()), (400, Some("key-missing")));
    }
    connection.send(request("/pay", key("k"))).await;
    assert_eq!(connection.answer().await.unwrap().status, 201);
}

#[tokio::test]
async fn told_to_stop_it_takes_no_connections_while_it_finishes() {
    let takes = Duration::from_secs(2);
    let upstream = Upstream::start(Behaviour { takes, ..Behaviour::default() }).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    let mut idle = Connection::open(gateway.address).await;
    let asking = tokio::spawn(ask(gateway.address, post("/pay", "k", "ten")));
    until("the request to arrive", async || upstream.total() == 1).await;
    gateway.signal("TERM");
    let address = gateway.address;
    until("new connections to be refused", async || {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
    assert!(!asking.is_finished(), "it was refused while the request was under way");
    assert!(idle.ends().await, "an unused connection is not waited for");
    assert_eq!(asking.await.unwrap().unwrap().status, 201);
    assert!(gateway.ended().await);
}
