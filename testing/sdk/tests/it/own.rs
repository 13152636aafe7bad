//! The SDKs' own tests: vectors, frameworks, consumers, clients.

use std::process::Command;

use hapax_sdk_tests::Sdk;

use crate::world::service;

fn check(sdk: Sdk) {
    if !sdk.is_there() {
        return;
    }
    let mut command: Command = sdk.program("test");
    for name in ["postgres", "kafka", "nats", "rabbitmq", "sqs"] {
        if let Some(url) = service(name) {
            command.env(format!("HAPAX_{}_URL", name.to_uppercase()), url);
        }
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn python_passes_its_own_tests() {
    check(Sdk::Python);
}

#[test]
fn node_passes_its_own_tests() {
    check(Sdk::Node);
}

#[test]
fn go_passes_its_own_tests() {
    check(Sdk::Go);
}

#[test]
fn java_passes_its_own_tests() {
    check(Sdk::Java);
}
