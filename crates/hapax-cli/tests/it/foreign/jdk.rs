//! The client that comes with Java.

use std::{path::Path, process::Command};

use super::Program;
use crate::{
    text,
    wire::{ROUTES, World},
};

const JAVA: Program = Program {
    name: "java",
    asked: "--list-modules",
    // With it a source file can be run as it is.
    says: "jdk.compiler@",
    package: "default-jdk-headless",
    remedy: "install a JDK, 11 or newer",
};

#[tokio::test(flavor = "multi_thread")]
async fn javas_own_client_with_nothing_set_pays_once_per_key() {
    if !JAVA.is_there() {
        return;
    }
    let world = World::start(ROUTES).await;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/foreign/JdkClient.java");
    let url = format!("http://{}/pay", world.gateway.address);
    let mut java = Command::new(JAVA.name);
    java.arg(source).args([&url, "one", "two"]);
    let output = tokio::task::spawn_blocking(move || java.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "201 false receipt 1 for ten\n201 false receipt 2 for ten\n\
         201 true receipt 1 for ten\n201 true receipt 2 for ten\n"
    );
    for head in world.upstream.heads() {
        assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
    }
}
