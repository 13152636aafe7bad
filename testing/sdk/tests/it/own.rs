//! The SDKs' own tests: vectors, frameworks, consumers, clients.

use std::{fs, process::Command};

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

#[test]
fn every_file_of_vectors_is_read_by_the_tests_of_every_sdk() {
    let files = fs::read_dir(Sdk::Python.folder().join("../vectors")).unwrap();
    let names: Vec<_> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.is_empty());
    for sdk in Sdk::ALL {
        let tests = tests_of(sdk);
        for name in &names {
            assert!(tests.contains(&format!("\"{name}\"")), "no test of {sdk} reads {name}");
        }
    }
}

/// The text of all of its tests.
fn tests_of(sdk: Sdk) -> String {
    let (folder, is_test): (_, fn(&str) -> bool) = match sdk {
        Sdk::Python => ("tests", |name| name.starts_with("test_") && name.ends_with(".py")),
        Sdk::Node => ("tests", |name| name.ends_with(".test.mjs")),
        Sdk::Go => (".", |name| name.ends_with("_test.go")),
        Sdk::Java => ("src/test/java", |name| name.ends_with("Test.java")),
    };
    let (mut folders, mut text) = (vec![sdk.folder().join(folder)], String::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if is_test(&entry.file_name().to_string_lossy()) {
                text += &fs::read_to_string(entry.path()).unwrap();
            }
        }
    }
    text
}
