//! What is too much or too slow.

use std::time::Duration;

use tokio::{
    io::AsyncReadExt,
    time::{Instant, timeout},
};

use super::{Expected::Cut, ROUTES, World, head, key, request, row};
use crate::world::{Answer, Connection, post, until};

const HASTY: &str = r#"
[limits]
head_timeout = "1s"
body_timeout = "1s"
idle_timeout = "2s"

[[route]]
match = "POST /pay"
receive_within = "1s"
"#;

/// Sends one byte at a time until the server says something or closes; gives back when that was,
/// and the answer if there was one.
async fn drip(connection: &mut Connection, byte: &str) -> (Duration, Option<Answer>) {
    let began = Instant::now();
    loop {
        let socket = connection.socket();
        let heard = tokio::io::AsyncBufReadExt::fill_buf(socket);
        if timeout(Duration::from_millis(100), heard).await.is_ok() {
            return (began.elapsed(), connection.answer().await);
        }
        assert!(began.elapsed() < crate::world::PATIENCE, "it goes on for ever");
        connection.send(byte).await;
    }
}

#[tokio::test]
async fn a_head_beyond_its_limits_is_refused() {
    let world = World::start(ROUTES).await;
    let many: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    let large = format!("x-large: {}\r\n", "x".repeat(64 << 10));
    for (name, lines) in [("101 headers", many), ("64 KiB", large)] {
        world.check(&row(name, request("/pay", lines), Cut(431))).await;
    }
    let path = format!("/{}", "x".repeat(70 << 10));
    world.check(&row("long path", request(&path, key("k")), Cut(431))).await;
}

#[tokio::test]
async fn a_head_that_comes_slowly_is_cut() {
    let world = World::start(HASTY).await;
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send("POST /pay HTTP/1.1\r\nhost: a\r\nx-slow: ").await;
    let (after, answer) = drip(&mut connection, "x").await;
    assert!(after >= Duration::from_millis(900) && after < Duration::from_secs(10), "{after:?}");
    assert_eq!(answer, None);
    let mut silent = Connection::open(world.gateway.address).await;
    assert!(silent.ends().await, "a connection that says nothing");
}

#[tokio::test]
async fn a_body_that_comes_slowly_is_refused_and_its_key_stays_free() {
    let world = World::start(HASTY).await;
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send(head("/pay", key("k"), "content-length: 1000\r\n", "")).await;
    let (after, answer) = drip(&mut connection, "x").await;
    assert!(after >= Duration::from_millis(900) && after < Duration::from_secs(10), "{after:?}");
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (408, Some("body-too-slow")));
    assert!(connection.ends().await);
    assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0));
    assert_eq!(world.ask(request("/pay", key("k"))).await.status, 201);
}

/// Bodies that fall behind their pace, where the time for a whole one is long.
const PACED: &str = r#"
[limits]
body_timeout = "1s"
body_rate = "1KiB"

[[route]]
match = "POST /pay"
"#;

#[tokio::test]
async fn a_body_that_stalls_or_drips_is_too_slow_protected_or_not() {
    let world = World::start(PACED).await;
    for (path, lines) in [("/pay", key("k")), ("/unprotected", Vec::new())] {
        for framing in ["content-length: 100000\r\n", "transfer-encoding: chunked\r\n"] {
            let mut stalled = Connection::open(world.gateway.address).await;
            stalled.send(head(path, &lines, framing, "4\r\nsome\r\n")).await;
            let mut drips = Connection::open(world.gateway.address).await;
            drips.send(head(path, &lines, framing, "")).await;
            let drop = if framing.contains("chunked") { "1\r\nx\r\n" } else { "x" };
            let (after, drip) = drip(&mut drips, drop).await;
            assert!(after < Duration::from_secs(10), "{path}, {framing}: {after:?}");
            for (mut connection, answer) in [(drips, drip), (stalled, None)] {
                let answer = match answer {
                    Some(answer) => answer,
                    None => connection.answer().await.unwrap(),
                };
                let said = (answer.status, answer.code());
                assert_eq!(said, (408, Some("body-too-slow".to_owned())), "{path}, {framing}");
                assert!(connection.ends().await, "{path}, {framing}");
            }
        }
    }
    assert_eq!((world.upstream.total(), world.claimed().await.len()), (0, 0));
    assert_eq!(world.ask(request("/pay", key("k"))).await.status, 201, "its key is free");
}

#[tokio::test]
async fn an_unused_connection_is_closed() {
    let world = World::start(HASTY).await;
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send(post("/pay", "k", "ten")).await;
    assert_eq!(connection.answer().await.unwrap().status, 201);
    let mut rest = Vec::new();
    let closing = connection.socket().read_to_end(&mut rest);
    timeout(Duration::from_secs(10), closing).await.unwrap().unwrap();
    assert_eq!(rest, b"");
}

#[tokio::test]
async fn a_tenant_over_its_share_is_refused_and_nobody_else_is() {
    let config = "[[route]]\nmatch = \"POST /pay\"\nrate_limit = \"1/s\"\nburst = 5\n";
    let world = World::start(config).await;
    let by = |who: &str, number: usize| {
        post("/pay", &format!("k-{number}"), "ten").replace("alice", who)
    };
    let mut refused = 0;
    for number in 0..50 {
        let answer = world.ask(by("alice", number)).await;
        if answer.status == 429 {
            assert_eq!(answer.code().as_deref(), Some("rate-limited"));
            assert!(answer.header("retry-after").is_some());
            refused += 1;
        }
    }
    assert!(refused > 20, "{refused} of 50");
    assert_eq!(world.upstream.total(), 50 - refused);
    assert!(world.ask(by("alice", 0)).await.is_replay(), "a replay is free");
    assert_eq!(world.ask(by("bob", 0)).await.status, 201);
    until("a refused key to be run later", async || {
        let answer = world.ask(by("alice", 49)).await;
        answer.status == 201 && !answer.is_replay()
    })
    .await;
}
