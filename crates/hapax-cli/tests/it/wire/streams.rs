//! What is not protected is passed on as it comes, however large, and not kept in memory.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    time::{interval, timeout},
};

use crate::world::{Connection, PATIENCE, Setup};

const LEN: usize = 256 << 20;
/// What the gateway may take on top of what it takes anyway.
const GROWTH_KIB_MAX: u64 = 32 << 10;

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// The next connection of the gateway, with the head of its request read.
async fn accept(listener: &TcpListener) -> BufReader<TcpStream> {
    let accepted = timeout(PATIENCE, listener.accept()).await.unwrap().unwrap();
    let mut connection = BufReader::new(accepted.0);
    read_head(&mut connection).await;
    connection
}

async fn read_head(connection: &mut BufReader<TcpStream>) {
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        assert!(connection.read_line(&mut line).await.unwrap() > 0, "no head");
    }
}

async fn write_all(to: &mut BufReader<TcpStream>, len: usize) {
    let piece = vec![b'x'; 1 << 20];
    for start in (0..len).step_by(piece.len()) {
        to.write_all(&piece[..piece.len().min(len - start)]).await.unwrap();
    }
}

async fn read_all(from: &mut BufReader<TcpStream>, len: usize) {
    let (mut piece, mut left) = (vec![0; 1 << 20], len);
    while left > 0 {
        let want = piece.len().min(left);
        let read = from.read(&mut piece[..want]).await.unwrap();
        assert!(read > 0, "{left} bytes are missing");
        left -= read;
    }
}

#[tokio::test]
async fn a_large_download_is_passed_on_while_it_comes_in_bounded_memory() {
    let listener = listener().await;
    let gateway = Setup::new(listener.local_addr().unwrap()).start().await;
    let before = gateway.memory_kib_peak();
    let mut client = Connection::open(gateway.address).await;
    client.send("GET /file HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut upstream = accept(&listener).await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LEN}\r\n\r\nx");
    upstream.write_all(head.as_bytes()).await.unwrap();
    read_head(client.socket()).await;
    read_all(client.socket(), 1).await;
    let rest = LEN - 1;
    tokio::join!(write_all(&mut upstream, rest), read_all(client.socket(), rest));
    let growth = gateway.memory_kib_peak() - before;
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
}

#[tokio::test]
async fn a_large_upload_is_passed_on_while_it_comes_in_bounded_memory() {
    let listener = listener().await;
    let gateway = Setup::new(listener.local_addr().unwrap()).start().await;
    let before = gateway.memory_kib_peak();
    let mut client = Connection::open(gateway.address).await;
    client.send(format!("POST /f HTTP/1.1\r\nhost: a\r\ncontent-length: {LEN}\r\n\r\nx")).await;
    let mut upstream = accept(&listener).await;
    read_all(&mut upstream, 1).await;
    let rest = LEN - 1;
    tokio::join!(write_all(client.socket(), rest), read_all(&mut upstream, rest));
    upstream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), "ok");
    let growth = gateway.memory_kib_peak() - before;
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
}

const HASTY: &str =
    "[limits]\nhead_timeout = \"1s\"\nidle_timeout = \"2s\"\nsend_timeout = \"2s\"\n";

#[tokio::test]
async fn a_client_that_reads_nothing_is_cut_and_the_upstream_let_go() {
    let listener = listener().await;
    let gateway = Setup::new(listener.local_addr().unwrap()).config(HASTY).start().await;
    let before = gateway.memory_kib_peak();
    let mut client = Connection::open(gateway.address).await;
    client.send("GET /file HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut upstream = accept(&listener).await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LEN}\r\n\r\n");
    upstream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b'x'; 1 << 20];
    let writing = async { while upstream.write_all(&piece).await.is_ok() {} };
    timeout(Duration::from_secs(20), writing).await.unwrap();
    let growth = gateway.memory_kib_peak() - before;
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
}

#[tokio::test]
async fn a_request_sent_during_a_long_answer_is_not_taken_for_a_slow_head() {
    let listener = listener().await;
    let gateway = Setup::new(listener.local_addr().unwrap()).config(HASTY).start().await;
    let mut client = Connection::open(gateway.address).await;
    client.send("GET /file HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut upstream = accept(&listener).await;
    upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n").await.unwrap();
    read_head(client.socket()).await;
    client.send("GET /next HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut pace = interval(Duration::from_millis(100));
    for _ in 0..30 {
        pace.tick().await;
        upstream.write_all(b"x").await.unwrap();
        read_all(client.socket(), 1).await;
    }
    read_head(&mut upstream).await;
    upstream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext").await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), "next");
}
