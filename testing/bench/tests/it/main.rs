//! The benches, as people run them.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod all;
mod curves;
mod http;
mod operating;
mod usage;
mod ways;

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

/// Runs the program and waits for its end.
fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hapax-bench")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Where the server of `cargo xtask services up` is.
fn postgres_url() -> String {
    if let Ok(url) = env::var("HAPAX_POSTGRES_URL") {
        return url;
    }
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = fs::read_to_string(written);
    assert!(url.is_ok(), "start PostgreSQL with `cargo xtask services up` first: {url:?}");
    url.unwrap().trim().to_owned()
}
