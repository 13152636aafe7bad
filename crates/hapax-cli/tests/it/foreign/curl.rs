//! curl, told to prefer HTTP/2.

use std::process::Command;

use super::Program;
use crate::{
    text,
    wire::{ROUTES, World},
};

const CURL: Program = Program {
    name: "curl",
    asked: "--version",
    says: " HTTP2 ",
    package: "curl",
    remedy: "install curl with HTTP/2",
};

/// Over plain HTTP the first way asks by `Upgrade`, and the second does not ask.
#[tokio::test(flavor = "multi_thread")]
async fn curl_may_prefer_http2_or_know_it_and_pays_once() {
    if !CURL.is_there() {
        return;
    }
    let world = World::start(ROUTES).await;
    for (way, said) in [
        ("--http2", "receipt 1 for ten HTTP/1.1 201 replayed: "),
        ("--http2", "receipt 1 for ten HTTP/1.1 201 replayed: true"),
        ("--http2-prior-knowledge", "receipt 1 for ten HTTP/2 201 replayed: true"),
    ] {
        let mut curl = Command::new(CURL.name);
        curl.args(["--silent", "--show-error", "--noproxy", "*", "--max-time", "30", way]);
        curl.args(["--header", "idempotency-key: k", "--header", "authorization: alice"]);
        curl.args(["--data", "ten", "--write-out"]);
        curl.arg(" HTTP/%{http_version} %{http_code} replayed: %header{idempotent-replayed}");
        curl.arg(format!("http://{}/pay", world.gateway.address));
        let output = tokio::task::spawn_blocking(move || curl.output().unwrap()).await.unwrap();
        assert_eq!(text(&output.stdout), said, "{way}: {}", text(&output.stderr));
    }
    assert_eq!(world.upstream.total(), 1);
}
