//! Real connections: what hangs up, what is left over, what is malformed.

use std::sync::Arc;

use hapax_tower::Protection;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::world::World;

/// A server on a port of its own, and connections to it.
struct Server {
    world: Arc<World>,
    address: std::net::SocketAddr,
}

impl Server {
    async fn start(protection: Protection) -> Self {
        let world = Arc::new(World::with(protection));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = world.app.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = TowerToHyperService::new(app.clone());
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { world, address }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Everything the server says to these bytes until it closes the connection.
    async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        // A server that closes early may not take everything.
        let _ = stream.write_all(bytes).await;
        let mut said = Vec::new();
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    }
}

fn request(path: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nauthorization: alice\r\ncontent-length: {len}\r\n\
         {headers}\r\n{body}"
    )
}

#[tokio::test]
async fn two_header_lines_on_the_wire_are_refused() {
    let server = Server::start(Protection::default()).await;
    let headers = "idempotency-key: a\r\nIdempotency-Key: a\r\nconnection: close\r\n";
    let said = server.exchange(request("/pay", headers, "x").as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("key-repeated"), "{said}");
}

#[tokio::test]
async fn a_folded_or_injected_header_never_becomes_a_key() {
    let server = Server::start(Protection::default()).await;
    for key in ["idempotency-key: a\r\n b\r\n", "idempotency-key: a\x00b\r\n"] {
        let said = server.exchange(request("/pay", key, "x").as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    }
    assert_eq!(server.world.runs(), 0);
}

#[tokio::test]
async fn a_body_shorter_than_announced_claims_nothing() {
    let server = Server::start(Protection::default()).await;
    let cut = request("/pay", "idempotency-key: a\r\n", "x").replace("length: 1", "length: 9");
    let mut stream = server.connect().await;
    stream.write_all(cut.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(server.world.runs(), 0);
    assert!(server.world.store.all().await.is_empty());
}

#[tokio::test]
async fn what_is_left_of_a_refused_request_is_never_read_as_the_next_one() {
    let server = Server::start(Protection::default()).await;
    let smuggled = request("/smuggled", "idempotency-key: b\r\n", "");
    let next = request("/pay", "idempotency-key: c\r\nconnection: close\r\n", "");
    for headers in ["idempotency-key: \"\r\n", "idempotency-key: a\r\nidempotency-key: b\r\n"] {
        let large = format!("{}{smuggled}", "x".repeat(200 << 10));
        let said = server.exchange(request("/pay", headers, &large).as_bytes()).await;
        assert!(said.matches("HTTP/1.1").count() <= 1, "{said}");
        assert_eq!(server.world.runs(), 0);
    }
    let small = request("/pay", "idempotency-key: \"\r\n", &smuggled);
    let said = server.exchange(format!("{small}{next}").as_bytes()).await;
    assert_eq!(said.matches("HTTP/1.1").count(), 2, "{said}");
    assert_eq!(server.world.runs(), 1);
    assert_eq!(server.world.store.all().await[0].operation.scope().as_str(), "POST /pay");
}

#[tokio::test]
async fn after_a_replay_the_connection_serves_the_next_request() {
    let server = Server::start(Protection::default()).await;
    let first = request("/pay", "idempotency-key: a\r\n", "hello");
    let next = request("/pay", "idempotency-key: b\r\nconnection: close\r\n", "bye");
    let said = server.exchange(format!("{first}{first}{next}").as_bytes()).await;
    assert_eq!(said.matches("HTTP/1.1 201").count(), 3, "{said}");
    assert_eq!(said.matches("idempotent-replayed: true").count(), 1);
    assert!(said.contains("run 2 of 3 bytes"));
    assert_eq!(server.world.runs(), 2);
}

#[tokio::test]
async fn a_refused_request_with_a_large_body_closes_its_connection() {
    let server = Server::start(Protection { request_bytes_max: 8, ..Protection::default() }).await;
    let large = "x".repeat(200 << 10);
    let mut stream = server.connect().await;
    let head = request("/pay", "idempotency-key: a\r\n", &large);
    stream.write_all(&head.as_bytes()[..200]).await.unwrap();
    stream.write_all(&head.as_bytes()[200..100 << 10]).await.unwrap();
    let mut said = vec![0; 4096];
    let len = stream.read(&mut said).await.unwrap();
    let said = String::from_utf8_lossy(&said[..len]).into_owned();
    assert!(said.starts_with("HTTP/1.1 413") && said.contains("connection: close"), "{said}");
}

#[tokio::test]
async fn a_chunked_body_over_its_cap_is_refused_when_it_crosses_it() {
    let server = Server::start(Protection { request_bytes_max: 8, ..Protection::default() }).await;
    let head = request("/pay", "idempotency-key: a\r\nconnection: close\r\n", "");
    let head = head.replace("content-length: 0", "transfer-encoding: chunked");
    let said =
        server.exchange(format!("{head}5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n").as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 413"), "{said}");
    assert!(server.world.store.all().await.is_empty());
}

#[tokio::test]
async fn a_known_key_with_expect_is_replayed_after_its_body_was_compared() {
    let server = Server::start(Protection::default()).await;
    server
        .exchange(request("/pay", "idempotency-key: a\r\nconnection: close\r\n", "x").as_bytes())
        .await;
    let headers = "idempotency-key: a\r\nexpect: 100-continue\r\nconnection: close\r\n";
    let said = server.exchange(request("/pay", headers, "x").as_bytes()).await;
    assert!(
        said.starts_with("HTTP/1.1 100") && said.contains("idempotent-replayed: true"),
        "{said}"
    );
    let refused = "idempotency-key: \"\r\nexpect: 100-continue\r\n";
    let said = server.exchange(request("/pay", refused, "x").as_bytes()).await;
    assert!(said.starts_with("HTTP/1.1 400") && said.contains("connection: close"), "{said}");
}

#[tokio::test]
async fn wherever_the_client_hangs_up_there_is_one_execution_and_a_retry_hears_of_it() {
    let server = Server::start(Protection::default()).await;
    let whole = request("/slow", "idempotency-key: a\r\nprefer: wait=20\r\n", "hello");
    for cut in [10, whole.len() - 3] {
        let mut stream = server.connect().await;
        stream.write_all(&whole.as_bytes()[..cut]).await.unwrap();
        drop(stream);
    }
    let mut stream = server.connect().await;
    stream.write_all(whole.as_bytes()).await.unwrap();
    server.world.begun(1).await;
    drop(stream);
    server.world.service.go.add_permits(1);
    let closing = whole.replace("prefer", "connection: close\r\nprefer");
    let said = server.exchange(closing.as_bytes()).await;
    assert!(said.contains("run 1 of 5 bytes") && said.contains("idempotent-replayed"), "{said}");
    assert_eq!(server.world.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_connections_with_one_key_are_one_execution() {
    let server = Arc::new(Server::start(Protection::default()).await);
    let headers = "idempotency-key: a\r\nprefer: wait=20\r\nconnection: close\r\n";
    let clients: Vec<_> = (0..100)
        .map(|_| {
            let (server, sent) = (Arc::clone(&server), request("/slow", headers, "hello"));
            tokio::spawn(async move { server.exchange(sent.as_bytes()).await })
        })
        .collect();
    server.world.begun(1).await;
    server.world.service.go.add_permits(1);
    for client in clients {
        let said = client.await.unwrap();
        assert!(said.contains("HTTP/1.1 201") && said.contains("run 1 of 5 bytes"), "{said}");
    }
    assert_eq!(server.world.runs(), 1);
}
