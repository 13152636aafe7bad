//! Connections that are open and ask for nothing.

use std::time::Duration;

use tokio::{
    net::TcpStream,
    time::{interval, timeout},
};

use super::{
    fields,
    frames::{END_STREAM, Fate, Frames, head, ping},
    stream,
};
use crate::{
    wire::World,
    world::{Behaviour, Connection, PATIENCE, Setup, Upstream, ask, post},
};

const HASTY: &str = r#"
[limits]
head_timeout = "1s"
idle_timeout = "2s"
admin_connections = 8
"#;

/// Pings until the connection ends.
async fn ping_on(mut frames: Frames) {
    let mut pause = interval(Duration::from_millis(100));
    let pinging = async {
        loop {
            pause.tick().await;
            frames.send(&ping()).await;
            let fate = timeout(Duration::from_millis(1), frames.fate(u32::MAX)).await;
            if let Ok(Fate::Closed | Fate::GoneAway(_)) = fate {
                return;
            }
        }
    };
    timeout(PATIENCE, pinging).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_only_pings_is_closed_as_unused() {
    let world = World::start(HASTY).await;
    for to in [world.gateway.address, world.gateway.admin] {
        ping_on(Frames::open(to).await).await;
        let mut used = Frames::open(to).await;
        used.send(&head(stream(0), END_STREAM, &fields("/unprotected", &[]))).await;
        assert!(matches!(used.fate(stream(0)).await, Fate::Answered(_)));
        ping_on(used).await;
    }
}

#[tokio::test]
async fn the_admin_side_waits_for_nobody_either() {
    let world = World::start(HASTY).await;
    let mut silent = Connection::open(world.gateway.admin).await;
    let mut slow = Connection::open(world.gateway.admin).await;
    slow.send("GET /metrics HTTP/1.1\r\nhost: ").await;
    let mut unused = Connection::open(world.gateway.admin).await;
    unused.send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(unused.answer().await.unwrap().status, 200);
    for (name, connection) in
        [("silent", &mut silent), ("slow", &mut slow), ("unused", &mut unused)]
    {
        assert!(connection.ends().await, "{name}");
    }
}

#[tokio::test]
async fn operators_have_so_many_connections_and_the_next_hears_why() {
    let world = World::start("[limits]\nadmin_connections = 8\n").await;
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut connection = Connection::open(world.gateway.admin).await;
        connection.send("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(connection.answer().await.unwrap().status, 200);
        open.push(connection);
    }
    let mut ninth = Connection::open(world.gateway.admin).await;
    assert_eq!(ninth.answer().await.unwrap().status, 503);
    assert_eq!(world.ask(post("/pay", "k", "ten")).await.status, 201);
}

#[tokio::test]
async fn clients_and_operators_do_not_take_each_others_files() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[limits]\nadmin_connections = 32\n[upstream]\nconnections = 64\n";
    let setup = Setup::new(upstream.address).config(config).open_files_max(256);
    let gateway = setup.start().await;
    let mut clients = Vec::new();
    for _ in 0..300 {
        clients.push(TcpStream::connect(gateway.address).await.unwrap());
    }
    let ready = ask(gateway.admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(ready.status, 200, "clients have taken all they may");
    drop(clients);
    let mut operators = Vec::new();
    for _ in 0..300 {
        operators.push(TcpStream::connect(gateway.admin).await.unwrap());
    }
    crate::world::until("a client to be served", async || {
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await;
        answer.is_some_and(|answer| answer.status == 201)
    })
    .await;
}
