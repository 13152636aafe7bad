//! Whether the gateway speaks HTTP/2 as its RFCs say, by cases that others wrote.

use std::{process::Command, time::Duration};

use hapax_core::OneLine;
use hapax_services::{h2spec, process};
use tokio::task::spawn_blocking;

use super::not_checked;
use crate::{
    http2,
    wire::tls::{Identity, secured},
    world::{Behaviour, Upstream},
};

/// All cases, the strict ones included.
const CASES: &str = "146 tests, 146 passed, 0 skipped, 0 failed";
/// More than a stream may carry before its reader has asked for more.
const ANSWER_BYTES: usize = 128 << 10;
const LIMIT: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread")]
async fn every_case_of_h2spec_passes_over_tls() {
    let program = match spawn_blocking(h2spec::program).await.unwrap() {
        Ok(program) => program,
        Err(error) => return not_checked("HTTP/2 by h2spec", &OneLine::of(&error).to_string()),
    };
    let upstream = Upstream::start(Behaviour::default()).await;
    let identity = Identity::new();
    let gateway = secured(&upstream, &identity).await;
    // Some cases need an answer that does not end before they have said what they have to say.
    let connection = identity.connect(gateway.address, &[b"h2"]).await.unwrap();
    let payment = http2::post("/pay").header("idempotency-key", "k");
    http2::Client::over(connection).await.ask(payment, &"x".repeat(ANSWER_BYTES)).await.unwrap();
    let port = gateway.address.port().to_string();
    let mut command = Command::new(program);
    command.args(["--strict", "--tls", "--insecure", "--host", "127.0.0.1", "--port", &port]);
    command.args(["--path", "/by-key/k"]);
    let run = spawn_blocking(move || process::run(&mut command, LIMIT)).await.unwrap();
    let said = run.unwrap_or_else(|error| panic!("{}", OneLine::of(&error)));
    assert!(said.contains(CASES), "{said}");
}
