//! The client of the upstream, against an upstream made of bytes.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

use bytes::Bytes;
use hapax_gateway::{client::Client, config::Upstream};
use hapax_tower::Body;
use http::Request;
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// More than the sockets of both sides take.
const LARGE: usize = 32 << 20;

async fn start() -> (TcpListener, Client) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, Client::new(&Upstream::at(url.parse().unwrap())).unwrap())
}

async fn pay(client: &Client, bytes: usize) -> Bytes {
    let request = Request::post("/pay").header("host", "shop.example");
    let request = request.body(Body::from(Bytes::from(vec![b'x'; bytes]))).unwrap();
    client.send(request).await.unwrap().collect().await.unwrap().to_bytes()
}

/// Reads a head, and says how many bytes came after it.
async fn head(connection: &mut TcpStream) -> usize {
    let mut read = Vec::new();
    loop {
        assert_ne!(connection.read_buf(&mut read).await.unwrap(), 0);
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            return read.len() - end - 4;
        }
    }
}

#[tokio::test]
async fn a_request_that_is_answered_early_is_still_sent_to_its_end() {
    let (listener, client) = start().await;
    let upstream = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut read = head(&mut connection).await;
        connection.write_all(OK).await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        while read < LARGE {
            let more = connection.read(&mut buffer).await.unwrap();
            assert_ne!(more, 0, "the upload was cut off");
            read += more;
        }
        read
    };
    let (answer, read) = tokio::join!(pay(&client, LARGE), upstream);
    assert_eq!((&*answer, read), (&b"ok"[..], LARGE));
}

#[tokio::test]
async fn an_unused_connection_is_dropped_when_the_upstream_closes_it() {
    let (listener, client) = start().await;
    let upstream = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        head(&mut connection).await;
        connection.write_all(OK).await.unwrap();
        connection
    };
    let (answer, mut connection) = tokio::join!(pay(&client, 0), upstream);
    assert_eq!(&*answer, b"ok");
    connection.shutdown().await.unwrap();
    assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0, "the client closed it too");
}
