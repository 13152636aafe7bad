//! Requests meant for somebody else, or pretending to be somebody else.

use super::{
    Expected::{Closed, Refused},
    ROUTES, World, fresh, key, request, row,
};
use crate::{
    http2,
    world::{Connection, post},
};

fn to(target: &str, hosts: &str) -> Vec<u8> {
    let lines = "authorization: alice\r\nidempotency-key: k\r\ncontent-length: 3\r\n";
    format!("POST {target} HTTP/1.1\r\n{hosts}{lines}\r\nten").into_bytes()
}

#[tokio::test]
async fn the_upstream_is_named_by_the_configuration_alone() {
    let world = World::start(&format!("hosts = [\"gateway\"]\n{ROUTES}")).await;
    let (unclear, unknown) = (Refused(400, "host-unclear"), Refused(421, "host-unknown"));
    for row in [
        row("no host", to("/pay", ""), unclear),
        row("two hosts", to("/pay", "host: gateway\r\nhost: gateway\r\n"), unclear),
        row("absolute, other host", to("http://evil/pay", "host: gateway\r\n"), unclear),
        row("absolute, foreign", to("http://evil/pay", "host: evil\r\n"), unknown),
        row("foreign host", to("/pay", "host: evil\r\n"), unknown),
        row("foreign host with port", to("/pay", "host: evil:80\r\n"), unknown),
        row("known host as user", to("/pay", "host: gateway@evil\r\n"), unclear),
        row("empty host", to("/pay", "host:\r\n"), unknown),
    ] {
        world.check(&row).await;
    }
    let answer = world.ask(to("http://gateway/pay", "host: gateway\r\n")).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let seen = world.upstream.heads();
    let inner = format!("\"host\": \"{}\"", world.upstream.address);
    assert!(seen.iter().all(|head| head.contains(&inner)), "{seen:?}");
}

#[tokio::test]
async fn a_connection_never_becomes_a_tunnel() {
    let world = World::start(ROUTES).await;
    let smuggled = String::from_utf8(request("/pay", key("smuggled"))).unwrap();
    let connect = format!("CONNECT evil:443 HTTP/1.1\r\nhost: evil:443\r\n\r\n{smuggled}");
    let mut connection = Connection::open(world.gateway.address).await;
    connection.send(connect).await;
    let answer = connection.answer().await.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (501, Some("method-refused")));
    assert!(world.upstream.heads().iter().all(|head| !head.contains("evil")));
}

/// RFC 9110 7.8: a server may ignore it. Java's own client and `curl --http2` send it.
#[tokio::test]
async fn the_wish_for_another_protocol_is_ignored_and_not_passed_on() {
    let world = World::start(ROUTES).await;
    let mut connection = Connection::open(world.gateway.address).await;
    for (name, lines) in [
        (
            "HTTP/2",
            "upgrade: h2c\r\nhttp2-settings: AAMAAABk\r\nconnection: Upgrade, HTTP2-Settings\r\n",
        ),
        ("settings alone", "http2-settings: AAMAAABk\r\n"),
        ("not named", "upgrade: h2c, websocket\r\nhttp2-settings: AAMAAABk\r\n"),
    ] {
        let keyed = request("/pay", format!("idempotency-key: {}\r\n{lines}", fresh()));
        for replayed in [false, true] {
            connection.send(&keyed).await;
            let answer = connection.answer().await.unwrap();
            assert_eq!((answer.status, answer.is_replay()), (201, replayed), "{name}");
        }
        connection.send(format!("GET /by-key/k HTTP/1.1\r\nhost: a\r\n{lines}\r\n")).await;
        assert_eq!(connection.answer().await.unwrap().status, 404, "{name}, nothing protected");
        for head in world.upstream.heads() {
            assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
        }
    }
    let wish = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n";
    let keyed = request("/pay", format!("idempotency-key: {}\r\n{wish}", fresh()));
    for replayed in [false, true] {
        connection.send(&keyed).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, replayed), "what is protected");
    }
    let heads = world.upstream.heads();
    assert!(heads.iter().all(|head| !head.contains("upgrade")), "{heads:?}");
    assert_eq!(heads.len(), 7);
}

#[tokio::test]
async fn nobody_is_shown_what_the_gateway_sends() {
    let world = World::start(ROUTES).await;
    for (name, lines) in [("plain", ""), ("with a key", "idempotency-key: k\r\n")] {
        let head = format!("TRACE /pay HTTP/1.1\r\nhost: a\r\nauthorization: alice\r\n{lines}\r\n");
        world.check(&row(name, head, Refused(501, "method-refused"))).await;
    }
    let mut newer = http2::Client::open(world.gateway.address).await;
    let trace = http::Request::builder().method("TRACE").uri("http://gateway/pay");
    let answer = newer.ask(trace, "").await.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (501, Some("method-refused")));
    assert!(world.upstream.heads().iter().all(|head| !head.starts_with("TRACE")));
}

#[tokio::test]
async fn nobody_can_speak_in_the_name_of_the_gateway() {
    let world = World::start(ROUTES).await;
    let forged = "hapax-fence: 99\r\nHapax-Unprotected: yes\r\nhapax-anything: 1\r\n\
                  idempotent-replayed: true\r\nidempotency-expires: never\r\n";
    let lines = format!("{forged}idempotency-key: {}\r\n", fresh());
    let answer = world.ask(request("/pay", lines)).await;
    assert_eq!((answer.status, answer.is_replay()), (201, false));
    world.ask(format!("GET / HTTP/1.1\r\nhost: a\r\n{forged}\r\n")).await;
    for head in world.upstream.heads() {
        for name in ["\"99\"", "unprotected", "anything", "replayed", "expires"] {
            assert!(!head.contains(name), "{name}: {head}");
        }
    }
}

#[tokio::test]
async fn a_client_cannot_have_the_key_or_the_fence_removed_on_the_way() {
    let world = World::start(ROUTES).await;
    for (name, connection) in
        [("alone", "idempotency-key"), ("among others", "close, Idempotency-Key , x")]
    {
        let lines = format!("idempotency-key: k\r\nconnection: {connection}\r\n");
        let expected = match name {
            "alone" => Refused(400, "key-malformed"),
            _ => Closed(400, "key-malformed"),
        };
        world.check(&row(name, request("/pay", lines), expected)).await;
    }
    let lines = "idempotency-key: k\r\nconnection: hapax-fence, x-own\r\nx-own: 1\r\n";
    assert_eq!(world.ask(request("/pay", lines)).await.status, 201);
    let head = world.upstream.heads().pop().unwrap();
    assert!(head.contains("\"hapax-fence\": \"1\"") && !head.contains("x-own"), "{head}");
}

#[tokio::test]
async fn the_admin_api_is_not_on_the_listener_of_clients() {
    let world = World::start(ROUTES).await;
    world.ask(post("/pay", "k", "ten")).await;
    let token = super::TOKEN;
    for path in ["/v1/operations", "/metrics", "/readyz"] {
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
        let answer = world.ask(head).await;
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path}");
    }
}
