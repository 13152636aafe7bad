//! Answers that their clients ask for and do not take.

use std::time::Duration;

use tokio::{
    io::AsyncReadExt,
    time::{interval, timeout},
};

use super::{
    fields,
    frames::{BAD_REQUEST, END_STREAM, Fate, Frames, head, ping},
    stream,
};
use crate::world::{Connection, PATIENCE, Raw, Setup, ask, post, until};

const LEN: usize = 256 << 10;

/// Answers everything with a body of this length.
async fn wordy(len: usize) -> Raw {
    let head = format!("HTTP/1.1 201 Created\r\ncontent-length: {len}\r\n\r\n");
    Raw::start(move |_| [head.as_bytes(), &vec![b'x'; len]].concat()).await
}

const NARROW: &str = r#"
cache = "0B"

[limits]
answers = "4MiB"
send_timeout = "30s"
"#;

#[tokio::test]
async fn answers_that_are_not_taken_are_bounded_in_memory() {
    const REQUESTS: u32 = 120;
    const GROWTH_KIB_MAX: u64 = 32 << 10;
    let upstream = wordy(LEN).await;
    let gateway = Setup::new(upstream.address).config(NARROW).start().await;
    let warm = ask(gateway.address, post("/pay", "warm", "ten")).await.unwrap();
    assert_eq!((warm.status, warm.body.len()), (201, LEN));
    let before = gateway.memory_kib();
    let mut attackers = Vec::new();
    for connection in 0..2 {
        let mut frames = Frames::open_without_window(gateway.address).await;
        for number in 0..REQUESTS {
            let key = format!("{connection}-{number}");
            let fields = fields("/pay", &[("idempotency-key", &key)]);
            frames.send(&head(stream(number), END_STREAM, &fields)).await;
            let fate = frames.fate(stream(number)).await;
            let is_asked = matches!(fate, Fate::Answered(first) if first != BAD_REQUEST);
            assert!(is_asked, "{number}: {fate:?}");
        }
        attackers.push(frames);
    }
    let growth = gateway.memory_kib().saturating_sub(before);
    assert!(growth < GROWTH_KIB_MAX, "{growth} KiB");
    // Whatever was run is found under its key, by whoever takes answers.
    let held_back = upstream.heads().len();
    for number in [0, 1, 2, 3] {
        let request = post("/pay", &format!("1-{number}"), "");
        let request = request.replace("content-type: text/plain\r\n", "");
        let answer = ask(gateway.address, request).await.unwrap();
        assert_eq!((answer.status, answer.body.len()), (201, LEN), "{number}");
    }
    assert!(upstream.heads().len() <= held_back + 4);
    let other = ask(gateway.address, post("/pay", "other", "ten")).await.unwrap();
    assert_eq!((other.status, other.body.len()), (201, LEN));
}

const HASTY: &str = r#"
[limits]
head_timeout = "1s"
send_timeout = "1s"
idle_timeout = "30s"

[[route]]
match = "POST /pay"
response_max = "8MiB"
"#;

#[tokio::test]
async fn an_answer_that_is_not_taken_in_time_ends_its_connection_however_it_is_pinged() {
    for len in [100, LEN] {
        let upstream = wordy(len).await;
        let gateway = Setup::new(upstream.address).config(HASTY).start().await;
        let mut frames = Frames::open_without_window(gateway.address).await;
        for number in 0..4 {
            let key = format!("k-{number}");
            let fields = fields("/pay", &[("idempotency-key", &key)]);
            frames.send(&head(stream(number), END_STREAM, &fields)).await;
        }
        let mut pause = interval(Duration::from_millis(100));
        let pinging = async {
            loop {
                pause.tick().await;
                frames.send(&ping()).await;
                if timeout(Duration::from_millis(1), frames.fate(u32::MAX)).await.is_ok() {
                    return;
                }
            }
        };
        timeout(PATIENCE, pinging).await.unwrap();
        for number in 0..4 {
            let request = post("/pay", &format!("k-{number}"), "");
            let request = request.replace("content-type: text/plain\r\n", "");
            let answer = ask(gateway.address, request).await.unwrap();
            assert_eq!((answer.status, answer.body.len()), (201, len), "{number}");
        }
    }
}

#[tokio::test]
async fn a_client_that_reads_no_replay_is_cut_and_one_that_does_hears_all_of_it() {
    const LARGE: usize = 7 << 20;
    let upstream = wordy(LARGE).await;
    let gateway = Setup::new(upstream.address).config(HASTY).start().await;
    let first = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((first.status, first.body.len()), (201, LARGE));
    let mut silent = Connection::open(gateway.address).await;
    silent.send(post("/pay", "k", "ten")).await;
    for (what, open) in [("the connection to be seen", 1), ("it to be closed", 0)] {
        let line = format!("hapax_connections_open {open}");
        until(what, async || {
            let metrics = ask(gateway.admin, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await;
            metrics.unwrap().text().lines().any(|said| said == line)
        })
        .await;
    }
    let mut rest = Vec::new();
    let _ = timeout(PATIENCE, silent.socket().read_to_end(&mut rest)).await.unwrap();
    assert!(rest.len() < LARGE, "{} bytes", rest.len());
    let again = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert!(again.is_replay() && again.body.len() == LARGE);
}
