//! What the gateway protects nothing of and passes: other protocols, streams, trailers, calls.

mod calls;
mod events;
mod packages;
mod rooms;
mod trailers;
mod upgrades;

use std::net::SocketAddr;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::world::PATIENCE;

/// An API that a test plays itself, byte by byte.
struct Played(TcpListener);

impl Played {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// The next connection of the gateway, and the head of the request on it.
    async fn accept(&self) -> (BufReader<TcpStream>, String) {
        let accepted = timeout(PATIENCE, self.0.accept()).await.unwrap().unwrap();
        let mut connection = BufReader::new(accepted.0);
        let head = head(&mut connection).await;
        (connection, head)
    }
}

/// A head, up to the empty line behind it.
async fn head(from: &mut BufReader<TcpStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = timeout(PATIENCE, from.read_line(&mut head)).await.unwrap().unwrap();
        assert!(read > 0, "the head ended early: {head}");
    }
    head
}

/// As many bytes as are expected.
async fn bytes(from: &mut BufReader<TcpStream>, expected: &str) {
    let mut read = vec![0; expected.len()];
    timeout(PATIENCE, from.read_exact(&mut read)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&read), expected);
}
