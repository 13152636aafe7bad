//! What cannot be built here.

use std::{env, fs, process::Command};

use super::world::succeed;

#[test]
fn what_is_missing_for_a_processor_is_told() {
    let place = tempfile::tempdir().unwrap();
    let rustup = place.path().join("rustup");
    fs::write(&rustup, "#!/bin/sh\nexit 1\n").unwrap();
    succeed(Command::new("chmod").arg("755").arg(&rustup));
    let path = env::var("PATH").unwrap();
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    dist.args(["dist", "--target", "aarch64", "--out"]).arg(place.path().join("out"));
    dist.env("PATH", format!("{}:{path}", place.path().display()));
    let said = dist.env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let told = String::from_utf8_lossy(&said.stdout).into_owned();
    let expected = "nothing is built for aarch64-unknown-linux-musl, because this is missing: \
                    Rust's standard library for it, from rustup";
    assert!(!said.status.success() && told.contains(expected), "{told}");
    assert!(!place.path().join("out").exists());
}
