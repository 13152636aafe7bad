//! The access log: a line of JSON for each request, and nothing that should not be in it.

use serde_json::Value;

use super::{TRACE, traced};
use crate::world::{Behaviour, Setup, Upstream, ask, until};

const CONFIG: &str = "[access_log]\nto = \"access.log\"\n[[route]]\nmatch = \"POST /pay\"\n";

fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn each_request_is_a_line_without_its_key_query_or_body_and_a_moved_log_is_begun_anew() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).config(CONFIG).start().await;
    let request = traced("/pay?card=4111", "k-secret", "00");
    let first = ask(gateway.address, &request).await.unwrap();
    ask(gateway.address, &request).await.unwrap();
    let other = format!("{}six", request.strip_suffix("ten").unwrap());
    ask(gateway.address, other).await.unwrap();
    ask(gateway.address, "GET /nothing HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    ask(gateway.address, "TRACE / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    until("five lines", async || gateway.read("access.log").lines().count() == 5).await;
    let log = gateway.read("access.log");
    for secret in ["k-secret", "4111", "alice", "card"] {
        assert!(!log.contains(secret), "{secret} is in the log: {log}");
    }
    let told = lines(&log);
    for (line, (status, verdict)) in told.iter().zip([
        (201, "executed"),
        (201, "replayed"),
        (422, "mismatch"),
        (404, "passed"),
        (501, "unhandled"),
    ]) {
        assert_eq!(
            (&line["status"], &line["verdict"]),
            (&status.into(), &verdict.into()),
            "{line}"
        );
        assert_eq!(line["client"], "127.0.0.1");
        assert!(line["duration_seconds"].as_f64().unwrap() > 0.0, "{line}");
        assert!(line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    let paid = &told[0];
    assert_eq!((&paid["method"], &paid["route"]), (&"POST".into(), &"POST /pay".into()));
    assert_eq!(paid["bytes"], first.body.len());
    assert_eq!(paid["trace_id"], TRACE);
    assert_eq!(paid["operation"], told[1]["operation"]);
    assert_eq!(paid["operation"].as_str().unwrap().len(), 32);
    assert_eq!(paid["tenant"].as_str().unwrap().len(), 32);
    gateway.rename("access.log", "access.log.1");
    gateway.signal("HUP");
    until("it to be begun anew", async || gateway.exists("access.log")).await;
    until("the reload to be told", async || gateway.log().contains("reloaded")).await;
    ask(gateway.address, &request).await.unwrap();
    until("the line to be in the new one", async || {
        gateway.read("access.log").lines().count() == 1
    })
    .await;
    assert_eq!(lines(&gateway.read("access.log"))[0]["verdict"], "replayed");
    assert_eq!(gateway.read("access.log.1"), log, "nothing more went to the old one");
}

#[tokio::test]
async fn lines_of_an_access_log_on_standard_error_stay_json_and_the_last_are_written() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = CONFIG.replace("access.log", "stderr");
    let setup = Setup::new(upstream.address).config(&config).args(&["--log-format", "json"]);
    let mut gateway = setup.start().await;
    ask(gateway.address, traced("/pay", "k", "00")).await.unwrap();
    gateway.signal("TERM");
    assert!(gateway.ended().await);
    let verdicts: Vec<_> = lines(&gateway.log())
        .into_iter()
        .filter_map(|line| line["verdict"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(verdicts, ["executed"], "{}", gateway.log());
}

#[tokio::test]
async fn lines_that_cannot_be_written_are_counted_and_nobody_waits() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = CONFIG.replace("access.log", "/dev/full");
    let gateway = Setup::new(upstream.address).config(&config).start().await;
    assert_eq!(ask(gateway.address, traced("/pay", "k", "00")).await.unwrap().status, 201);
    let lost = r#"hapax_telemetry_lost_total{kind="access_log"}"#;
    until("the loss to be counted", async || {
        crate::operating::Scrape::of(&gateway).await.value(lost).as_deref() == Some("1")
    })
    .await;
    // The line goes through a pipe.
    until("the loss to be told", async || {
        gateway.log().contains("the access log cannot be written")
    })
    .await;
}
