//! Uploads that take their time, and the connections to the upstream.

use std::time::Duration;

use crate::{
    wire::World,
    world::{Connection, post, until},
};

/// Eight connections to the upstream: two for protected requests, and three of the rest for
/// uploads.
const FEW: &str = r#"
workers = 1

[upstream]
connections = 8
connect_timeout = "1s"

[limits]
body_timeout = "30s"
"#;

const UPLOAD: &str = "POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";

async fn upload(world: &World, beginning: &str) -> Connection {
    let mut upload = Connection::open(world.gateway.address).await;
    upload.send(format!("{UPLOAD}{beginning}")).await;
    upload
}

/// Requests of others: protected, read only, and with a body that is there.
async fn others_are_served(world: &World, round: &str) {
    let whole = "POST /whole HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nten";
    for _ in 0..3 {
        assert_eq!(world.ask(whole).await.status, 201, "{round}");
        let looked = world.ask("GET /by-key/none HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(looked.status, 404, "{round}");
    }
    let keyed = world.ask(post("/pay", round, "ten")).await;
    assert_eq!((keyed.status, keyed.is_replay()), (201, false), "{round}");
}

#[tokio::test]
async fn slow_uploads_leave_connections_to_everybody_else() {
    let world = World::start(FEW).await;
    let mut slow = Vec::new();
    for _ in 0..16 {
        slow.push(upload(&world, "x").await);
    }
    until("some to reach the upstream", async || world.upstream.heads().len() == 3).await;
    for round in ["first", "second"] {
        others_are_served(&world, round).await;
        for upload in &mut slow {
            upload.send("x").await;
        }
    }
    let begun = world.upstream.heads().iter().filter(|head| head.contains("/upload")).count();
    assert_eq!(begun, 3, "the others had to wait");
}

#[tokio::test]
async fn an_upload_without_a_byte_takes_no_connection() {
    let world = World::start(FEW).await;
    let mut silent = Vec::new();
    for _ in 0..16 {
        silent.push(upload(&world, "").await);
    }
    others_are_served(&world, "meanwhile").await;
    assert!(world.upstream.heads().iter().all(|head| !head.contains("/upload")));
    silent[0].send("x".repeat(100_000)).await;
    assert_eq!(silent[0].answer().await.unwrap().status, 201, "it may still come");
}

#[tokio::test]
async fn an_upload_that_falls_behind_gives_its_connection_back() {
    let world = World::start(&FEW.replace("30s", "1s")).await;
    let mut slow = Vec::new();
    for _ in 0..3 {
        slow.push(upload(&world, "x").await);
    }
    let began = tokio::time::Instant::now();
    for upload in &mut slow {
        assert_eq!(upload.answer().await.unwrap().status, 408);
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    let mut next = upload(&world, &"x".repeat(50_000)).await;
    next.send("x".repeat(50_000)).await;
    assert_eq!(next.answer().await.unwrap().status, 201);
}
