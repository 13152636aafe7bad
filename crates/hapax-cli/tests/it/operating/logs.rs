//! What is logged at the default level, and in which form.

use std::process::Command;

use rcgen::CertifiedKey;
use serde_json::Value;

use super::{IMPATIENT, slow_upstream, time_out};
use crate::{
    relay::Shop,
    text,
    world::{Behaviour, Gateway, Setup, Upstream, ask, post, until},
};

/// The value of a field in a line of a log for people.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}="))?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split_whitespace().next(),
    }
}

#[tokio::test]
async fn the_warning_of_a_doubt_names_the_operation_its_route_and_its_tenant_by_a_hash() {
    let upstream = slow_upstream().await;
    let gateway = Setup::new(upstream.address).config(IMPATIENT).start().await;
    time_out(&gateway, "k").await;
    let log = gateway.log();
    let line = |words: &str| {
        log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{log}"))
    };
    let unanswered = line("a protected service gave no answer");
    let in_doubt = line("nobody knows whether it happened");
    let listed =
        crate::hapax(&["keys", "list", "--json", "--store", &gateway.store, "--state", "in_doubt"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed["operations"][0]["id"].as_str().unwrap().replace('-', "");
    let tenant = field(unanswered, "tenant").unwrap();
    assert!(tenant.len() == 32 && tenant.bytes().all(|b| b.is_ascii_hexdigit()), "{unanswered}");
    for line in [unanswered, in_doubt] {
        assert!(line.contains("WARN"), "{line}");
        assert_eq!(field(line, "operation"), Some(id.as_str()), "{line}");
        assert_eq!(field(line, "scope"), Some("POST /pay"), "{line}");
        assert_eq!(field(line, "tenant"), Some(tenant), "{line}");
    }
    assert_eq!(field(unanswered, "route"), Some("POST /pay"), "{unanswered}");
    assert_eq!(field(unanswered, "code"), Some("execution-timed-out"), "{unanswered}");
    assert!(!log.contains("alice"), "nobody is named: {log}");
    assert!(!log.contains('\u{1b}'), "a file has no colours: {log}");
}

#[tokio::test]
async fn a_log_in_json_is_json_from_the_first_line_to_the_last() {
    let upstream = slow_upstream().await;
    let setup = Setup::new(upstream.address).config(IMPATIENT);
    let mut gateway = setup.args(&["--log-format", "json", "--log", "warn"]).start().await;
    time_out(&gateway, "k").await;
    for (config, said) in [(IMPATIENT, "reloaded"), ("nonsense", "not reloaded")] {
        gateway.configure(config);
        gateway.signal("HUP");
        until("it to be said", async || gateway.log().contains(said)).await;
    }
    gateway.signal("TERM");
    gateway.ended().await;
    let lines = parsed(&gateway.log());
    let said = |words: &str| {
        lines.iter().any(|line| {
            line["fields"]["message"].as_str().is_some_and(|message| message.starts_with(words))
        })
    };
    for words in
        ["serving http://", "reloaded", "not reloaded", "letting requests finish", "stopped"]
    {
        assert!(said(words), "nobody said {words}: {lines:#?}");
    }
    let doubt = lines.iter().find(|line| line["fields"]["doubt"] == "interrupted").unwrap();
    assert_eq!(doubt["fields"]["scope"], "POST /pay");
    assert!(doubt["fields"]["operation"].is_string());
}

/// Every line as the object that it is.
fn parsed(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_relay_that_logs_in_json_says_everything_so() {
    let shop = Shop::new();
    shop.emit("orders", "1", 0..3);
    let mut relay = shop.relay(&["--to", "stdout:", "--log-format", "json", "--every", "1s"]);
    until("progress to be told", async || relay.log().contains(" sent (")).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    assert!(parsed(&relay.log()).len() >= 3, "{}", relay.log());
}

#[test]
fn a_start_that_fails_is_told_in_json_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    let command =
        command.args(["serve", "--config", "/missing/gateway.toml", "--log-format", "json"]);
    let output = command.output().unwrap();
    let [line] = &parsed(&text(&output.stderr))[..] else { panic!("one line: {output:?}") };
    assert_eq!(line["level"], "ERROR");
    assert!(
        line["fields"]["message"].as_str().unwrap().contains("/missing/gateway.toml"),
        "{line}"
    );
}

#[test]
fn arguments_and_filters_that_mean_nothing_are_told_in_json_too() {
    for (args, code, told) in [
        (&["serve", "--log-format", "json", "--no-such-flag"][..], 2, "--no-such-flag"),
        (&["relay", "--log-format=json"], 2, "--to"),
        (&["serve", "--log-format", "json", "--log", "hapax=loudly"], 1, "is no log filter"),
        (
            &[
                "relay",
                "--to",
                "stdout:",
                "--store",
                "sqlite:/missing/a.db",
                "--log-format",
                "json",
            ],
            1,
            "/missing",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        let output = command.args(args).env_remove("HAPAX_LOG_FORMAT").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        let [line] = &parsed(&text(&output.stderr))[..] else { panic!("one line: {output:?}") };
        let message = line["fields"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{args:?}: {message}");
    }
    let usual =
        Command::new(env!("CARGO_BIN_EXE_hapax")).args(["serve", "--no-such-flag"]).output();
    let said = text(&usual.unwrap().stderr);
    assert!(said.contains("Usage: hapax serve") && !said.starts_with('{'), "{said}");
}

#[tokio::test]
async fn with_tls_the_first_line_says_https() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let setup = Setup::new(upstream.address)
        .config("[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n")
        .file("certificate.pem", &cert.pem())
        .file("key.pem", &signing_key.serialize_pem());
    let gateway = setup.start().await;
    let first = format!("hapax: serving https://{} in front of", gateway.address);
    assert!(gateway.log().starts_with(&first), "{}", gateway.log());
}

async fn first_lines(setup: Setup) -> (Gateway, String) {
    let gateway = setup.start().await;
    let log = gateway.log();
    (gateway, log)
}

#[tokio::test]
async fn a_token_that_everybody_can_read_is_warned_about_and_one_in_a_file_is_not() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let seen = Setup::new(upstream.address).args(&["--admin-token", "open-sesame"]);
    let (_gateway, log) = first_lines(seen).await;
    assert!(log.contains("everybody on this machine can read --admin-token"), "{log}");
    assert!(!log.contains("open-sesame"), "{log}");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token").display().to_string();
    std::fs::write(&file, "open-sesame\n").unwrap();
    let hidden = Setup::new(upstream.address).args(&["--admin-token-file", file.leak()]);
    let (gateway, log) = first_lines(hidden).await;
    assert!(!log.contains("--admin-token"), "{log}");
    ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    let admin = format!("http://{}", gateway.admin);
    let file = directory.path().join("token").display().to_string();
    let listed = crate::hapax(&["keys", "list", "--admin", &admin, "--token-file", &file]);
    assert!(text(&listed.stdout).contains("completed"), "{}", text(&listed.stderr));
}
