//! Lines of JSON, in files and pipes.

use std::{fs, io, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hapax_messaging::sink::{CloudEvents, Lines, Sink, Verdict};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::{fs::File, io::AsyncReadExt, net::unix::pipe};

use super::{
    suite::{sink_conformance, sink_copies},
    world::{Arrived, World, event, expected, turns},
};

struct Paper {
    file: NamedTempFile,
    read: usize,
}

sink_conformance!(Paper);
sink_copies!(Paper);

impl World for Paper {
    type Sink = Lines<File>;

    const PAYLOAD_BYTES_MAX: usize = 1 << 20;

    async fn open() -> Self {
        Self { file: NamedTempFile::new().unwrap(), read: 0 }
    }

    fn topic(&self) -> String {
        "orders.placed".to_owned()
    }

    async fn sink(&self) -> Lines<File> {
        let events = CloudEvents::from_source("/suite").unwrap();
        Lines::to(File::from_std(self.file.reopen().unwrap())).events(events)
    }

    async fn arrived(&mut self) -> Vec<Arrived> {
        let text = fs::read_to_string(self.file.path()).unwrap();
        let lines = text.lines().skip(self.read).map(read);
        let arrived: Vec<_> = lines.collect();
        self.read += arrived.len();
        arrived
    }
}

fn read(line: &str) -> Arrived {
    let raw: std::collections::BTreeMap<&str, &serde_json::value::RawValue> =
        serde_json::from_str(line).unwrap();
    let text = |name: &str| serde_json::from_str::<String>(raw[name].get()).unwrap();
    let content_type = text("datacontenttype");
    let payload = match (raw.get("data"), raw.get("data_base64")) {
        (Some(data), None) if content_type == "application/json" => data.get().into(),
        (Some(_), None) => text("data").into_bytes(),
        (None, Some(_)) => STANDARD.decode(text("data_base64")).unwrap(),
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => panic!("a payload is written once: {line}"),
    };
    let headers = raw.contains_key("headers").then(|| text("headers"));
    let headers = headers.map(|headers| serde_json::from_str(&headers).unwrap());
    Arrived {
        id: text("id"),
        specversion: text("specversion"),
        source: text("source"),
        kind: text("type"),
        subject: text("subject"),
        time: text("time"),
        content_type,
        headers: headers.unwrap_or_default(),
        payload,
    }
}

#[tokio::test]
async fn json_over_several_lines_is_written_on_one() {
    let mut paper = Paper::open().await;
    let pretty = event("orders", "key", "{\n  \"total\": 1.10,\r\n  \"text\": \"a\\nb\"\n}\n");
    assert_eq!(paper.sink().await.send(&[pretty]).await.unwrap(), [Verdict::Taken]);
    let arrived = paper.arrived().await;
    assert_eq!(arrived.len(), 1);
    let text = String::from_utf8(arrived[0].payload.clone()).unwrap();
    assert!(text.contains("1.10"), "numbers are left as they are: {text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["text"], "a\nb");
}

#[tokio::test]
async fn a_closed_pipe_is_an_outage() {
    let (writer, reader) = pipe::pipe().unwrap();
    drop(reader);
    let outage = Lines::to(writer).send(&turns("orders", 1, 1)).await.unwrap_err();
    let cause = std::error::Error::source(&outage).unwrap();
    let cause = cause.downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::BrokenPipe);
    assert!(!outage.needs_somebody());
}

#[tokio::test(start_paused = true)]
async fn a_pipe_nobody_reads_ends_in_an_outage_and_leaves_whole_lines() {
    let (writer, mut reader) = pipe::pipe().unwrap();
    let events = CloudEvents::from_source("/suite").unwrap();
    let sink = Lines::to(writer).events(events).within(Duration::from_secs(5));
    // Larger than what a pipe holds.
    let large = [
        event("orders", "first", format!("\"{}\"", "a".repeat(40_000))),
        event("orders", "second", format!("\"{}\"", "b".repeat(400_000))),
        event("orders", "third", format!("\"{}\"", "c".repeat(40_000))),
    ];
    sink.send(&large).await.expect_err("nobody reads");
    let small = turns("orders", 2, 2);
    let reading = tokio::spawn(async move {
        let mut text = String::new();
        reader.read_to_string(&mut text).await.unwrap();
        text
    });
    assert_eq!(sink.send(&small).await.unwrap(), vec![Verdict::Taken; small.len()]);
    drop(sink);
    let text = reading.await.unwrap();
    let arrived: Vec<_> = text.lines().map(read).collect();
    // What was begun is whole, what was not begun is not there.
    let whole = large[..2].iter().chain(&small).map(expected);
    assert!(arrived == whole.collect::<Vec<_>>(), "lines are whole");
}
