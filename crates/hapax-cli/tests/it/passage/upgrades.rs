//! Connections that go on in another protocol, byte by byte: who may have one, and how it ends.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{Played, bytes, head};
use crate::{
    operating::Scrape,
    text,
    wire::tls::{Identity, secured_at},
    world::{Connection, Gateway, PATIENCE, Raw, Setup, until},
};

const ASK: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\n\
                   upgrade: h2c, echo/1\r\nhttp2-settings: AAMAAABk\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo/1\r\n\
                      x-own: 1\r\n\r\n";

/// Opens a connection that has switched, at both its ends.
async fn switched(gateway: &Gateway, upstream: &Played) -> (Connection, Connection) {
    let mut client = Connection::open(gateway.address).await;
    client.send(ASK).await;
    let (mut server, _) = upstream.accept().await;
    server.write_all(SWITCH.as_bytes()).await.unwrap();
    let answer = head(client.socket()).await;
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    (client, Connection::on(server))
}

async fn open(gateway: &Gateway) -> Option<String> {
    Scrape::of(gateway).await.value("hapax_upgraded_connections_open")
}

#[tokio::test]
async fn the_handshake_is_passed_without_what_would_hide_requests_and_then_bytes_both_ways() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    let mut client = Connection::open(gateway.address).await;
    // What is sent before the answer is not lost.
    client.send(format!("{ASK}early")).await;
    let (mut server, asked) = upstream.accept().await;
    assert!(asked.starts_with("GET /chat HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("connection: upgrade\r\n") && asked.contains("upgrade: echo/1\r\n"));
    assert!(!asked.contains("h2c") && !asked.contains("http2-settings"), "{asked}");
    server.write_all(format!("{SWITCH}at once").as_bytes()).await.unwrap();
    bytes(&mut server, "early").await;
    let answer = head(client.socket()).await;
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
    for line in ["connection: upgrade\r\n", "upgrade: echo/1\r\n", "x-own: 1\r\n"] {
        assert!(answer.contains(line), "{line:?} is not in {answer}");
    }
    bytes(client.socket(), "at once").await;
    for round in ["GET / HTTP/1.1\r\n\r\n", "\0\x01 is not looked at"] {
        client.send(round).await;
        bytes(&mut server, round).await;
        server.write_all(round.as_bytes()).await.unwrap();
        bytes(client.socket(), round).await;
    }
    until("it to be counted", async || open(&gateway).await.as_deref() == Some("1")).await;
    drop(server);
    assert!(client.ends().await);
    until("it to be over", async || open(&gateway).await.as_deref() == Some("0")).await;
}

#[tokio::test]
async fn what_a_client_says_last_arrives_and_its_end_is_told() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    let (mut client, mut server) = switched(&gateway, &upstream).await;
    client.send("last").await;
    client.finish().await;
    let mut heard = Vec::new();
    timeout(PATIENCE, server.socket().read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(text(&heard), "last");
    server.send("and the answer to it").await;
    drop(server);
    let mut heard = Vec::new();
    timeout(PATIENCE, client.socket().read_to_end(&mut heard)).await.unwrap().unwrap();
    assert_eq!(text(&heard), "and the answer to it");
}

/// A server that does not switch goes on reading requests: what a client sends behind its wish would
/// be requests that no route has seen.
#[tokio::test]
async fn nothing_is_tunnelled_unless_the_upstream_has_switched_to_what_was_offered() {
    const SMUGGLED: &str = "POST /pay HTTP/1.1\r\nhost: a\r\nauthorization: alice\r\n\
                            content-length: 3\r\n\r\nten";
    for (name, said, heard) in [
        ("it declines", "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 2\r\n\r\nno", 426),
        (
            "another protocol",
            "HTTP/1.1 101 Fine\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
            502,
        ),
        ("no protocol", "HTTP/1.1 101 Fine\r\nconnection: upgrade\r\n\r\n", 502),
        ("not this connection", "HTTP/1.1 101 Fine\r\nupgrade: echo/1\r\n\r\n", 502),
        (
            "with a body",
            "HTTP/1.1 101 Fine\r\nconnection: upgrade\r\nupgrade: echo/1\r\n\
             content-length: 3\r\n\r\nten",
            502,
        ),
    ] {
        let upstream = Raw::start(move |_| said.as_bytes().to_vec()).await;
        let config = "[[route]]\nmatch = \"POST /pay\"\nkey = \"required\"\n";
        let gateway = Setup::new(upstream.address).config(config).start().await;
        let mut client = Connection::open(gateway.address).await;
        client.send(format!("{ASK}{SMUGGLED}")).await;
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status, heard, "{name}: {answer:?}");
        let next = client.answer().await.unwrap();
        assert_eq!(next.code().as_deref(), Some("key-missing"), "{name}: {next:?}");
        assert_eq!(upstream.heads().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn who_asks_for_it_with_anything_but_a_plain_get_is_answered_without_it() {
    let upstream = Raw::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()).await;
    let gateway = Setup::new(upstream.address).start().await;
    let wish = "connection: upgrade\r\nupgrade: websocket\r\n";
    for request in [
        format!("POST /chat HTTP/1.1\r\nhost: a\r\n{wish}content-length: 0\r\n\r\n"),
        format!("GET /chat HTTP/1.1\r\nhost: a\r\n{wish}content-length: 3\r\n\r\nten"),
        "GET /chat HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\n\r\n".to_owned(),
        "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n".to_owned(),
    ] {
        let mut client = Connection::open(gateway.address).await;
        client.send(&request).await;
        assert_eq!(client.answer().await.unwrap().text(), "ok", "{request}");
    }
    assert!(upstream.heads().iter().all(|head| !head.contains("upgrade")));
    gateway.configure("hosts = [\"shop.example\"]\n");
    gateway.signal("HUP");
    until("the reload", async || gateway.log().contains("hapax: reloaded")).await;
    let mut client = Connection::open(gateway.address).await;
    client.send(ASK).await;
    assert_eq!(client.answer().await.unwrap().code().as_deref(), Some("host-unknown"));
}

#[tokio::test]
async fn there_are_as_many_as_configured_and_none_where_none_are_wanted() {
    let upstream = Played::start().await;
    let config = "workers = 1\n[upstream]\nlong_lived = 1\nconnections = 2\n";
    let gateway = Setup::new(upstream.address()).config(config).start().await;
    let (first, server) = switched(&gateway, &upstream).await;
    let mut second = Connection::open(gateway.address).await;
    second.send(ASK).await;
    let refused = second.answer().await.unwrap();
    let code = refused.code();
    assert_eq!((refused.status, code.as_deref()), (503, Some("execution-not-started")));
    // Whatever else is asked for has its own connections.
    second.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let (mut plain, _) = upstream.accept().await;
    plain.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    assert_eq!(second.answer().await.unwrap().text(), "ok");
    drop((first, server));
    until("the first to be over", async || open(&gateway).await.as_deref() == Some("0")).await;
    switched(&gateway, &upstream).await;

    let none = Setup::new(upstream.address()).config("[upstream]\nlong_lived = 0\n").start().await;
    let mut client = Connection::open(none.address).await;
    client.send(ASK).await;
    let (mut server, asked) = upstream.accept().await;
    assert!(!asked.contains("upgrade"), "{asked}");
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), "ok");
}

#[tokio::test]
async fn one_that_is_silent_for_too_long_is_closed_at_both_ends() {
    let upstream = Played::start().await;
    let config = "[upstream]\nstream_idle = \"1s\"\n";
    let gateway = Setup::new(upstream.address()).config(config).start().await;
    let (mut client, mut server) = switched(&gateway, &upstream).await;
    assert!(client.ends().await && server.ends().await);
}

#[tokio::test]
async fn a_gateway_that_is_told_to_stop_ends_those_that_are_silent_and_stops_well() {
    let upstream = Played::start().await;
    let mut gateway = Setup::new(upstream.address()).start().await;
    let (mut client, mut server) = switched(&gateway, &upstream).await;
    gateway.signal("TERM");
    assert!(client.ends().await && server.ends().await);
    assert!(gateway.ended().await, "{}", gateway.log());
}

#[tokio::test]
async fn over_tls_a_client_of_http1_gets_one_too() {
    let (upstream, identity) = (Played::start().await, Identity::new());
    let gateway = secured_at(upstream.address(), &identity).await;
    let mut client = identity.connect(gateway.address, &[b"http/1.1"]).await.unwrap();
    client.write_all(ASK.replace("host: a", "host: localhost").as_bytes()).await.unwrap();
    let (mut server, _) = upstream.accept().await;
    server.write_all(format!("{SWITCH}hello").as_bytes()).await.unwrap();
    drop(server);
    let mut heard = Vec::new();
    let reading = timeout(PATIENCE, client.read_to_end(&mut heard)).await.unwrap();
    assert!(reading.is_ok() || !heard.is_empty(), "{reading:?}");
    let heard = String::from_utf8_lossy(&heard);
    assert!(heard.starts_with("HTTP/1.1 101 ") && heard.ends_with("\r\n\r\nhello"), "{heard}");
}
