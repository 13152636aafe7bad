//! Streams of events: each is there before the next one is told, however long that takes.

use std::process::Stdio;

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::{Duration, sleep, timeout},
};

use super::{Played, bytes, head};
use crate::world::{Connection, PATIENCE, Setup};

const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                      transfer-encoding: chunked\r\n\r\n";
const HASTY: &str = "[upstream]\nanswer_timeout = \"500ms\"\n\
                     [limits]\nsend_timeout = \"500ms\"\nidle_timeout = \"500ms\"\n";

fn event(number: u32) -> String {
    format!("id: {number}\ndata: event {number}\n\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

#[tokio::test]
async fn curl_hears_each_event_before_the_next_is_told_over_both_protocols() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    for protocol in ["--http1.1", "--http2-prior-knowledge"] {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--noproxy", "*", "--max-time", "60", protocol]);
        curl.arg(format!("http://{}/events", gateway.address));
        let mut curl = curl.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut heard = BufReader::new(curl.stdout.take().unwrap()).lines();
        let (mut server, _) = upstream.accept().await;
        server.write_all(EVENTS.as_bytes()).await.unwrap();
        for number in 1..=5 {
            server.write_all(chunk(&event(number)).as_bytes()).await.unwrap();
            for line in event(number).lines() {
                let next = timeout(PATIENCE, heard.next_line()).await.unwrap().unwrap();
                assert_eq!(next.as_deref(), Some(line), "{protocol}");
            }
        }
        server.write_all(b"0\r\n\r\n").await.unwrap();
        assert!(timeout(PATIENCE, curl.wait()).await.unwrap().unwrap().success(), "{protocol}");
    }
}

#[tokio::test]
async fn a_stream_of_events_may_be_silent_where_another_answer_would_be_given_up() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).config(HASTY).start().await;
    let mut clients = Vec::new();
    for head_of in [EVENTS.to_owned(), EVENTS.replace("text/event-stream", "text/plain")] {
        let mut client = Connection::open(gateway.address).await;
        client.send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let (mut server, _) = upstream.accept().await;
        server.write_all(format!("{head_of}{}", chunk(&event(1))).as_bytes()).await.unwrap();
        head(client.socket()).await;
        bytes(client.socket(), &chunk(&event(1))).await;
        clients.push((client, server));
    }
    let (mut plain, _gone) = clients.pop().unwrap();
    assert!(plain.ends().await, "an answer that stopped half-way");
    // Three times as long as anything else may take here.
    sleep(Duration::from_millis(1500)).await;
    let (mut events, mut server) = clients.pop().unwrap();
    server.write_all(chunk(&event(2)).as_bytes()).await.unwrap();
    bytes(events.socket(), &chunk(&event(2))).await;
}

#[tokio::test]
async fn the_upstream_hears_that_nobody_listens_any_more() {
    let upstream = Played::start().await;
    let gateway = Setup::new(upstream.address()).start().await;
    let mut client = Connection::open(gateway.address).await;
    client.send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let (mut server, _) = upstream.accept().await;
    server.write_all(format!("{EVENTS}{}", chunk(&event(1))).as_bytes()).await.unwrap();
    head(client.socket()).await;
    drop(client);
    assert!(Connection::on(server).ends().await);
}
