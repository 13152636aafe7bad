//! `hapax man`.

use std::{fs, process::Command};

use crate::{hapax, text};

#[test]
fn every_command_has_a_page_with_its_examples() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("man1");
    let output = hapax(&["man", place.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for (name, words) in [
        ("hapax", "makes retries harmless"),
        ("hapax-serve", "hapax serve \\-\\-config gateway.toml"),
        ("hapax-keys-list", "hapax keys list"),
        ("hapax-simulate-backoff", "hapax simulate backoff"),
        ("hapax-completions", "bash\\-completion"),
    ] {
        let page = fs::read_to_string(place.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(words), "{name}: {page}");
    }
    let listed = fs::read_dir(&place).unwrap().flatten();
    assert!(listed.into_iter().all(|page| !page.file_name().to_string_lossy().contains("help")));
}

#[test]
fn without_a_directory_the_page_of_the_whole_is_printed() {
    let output = hapax(&["man"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains(".TH hapax 1"), "{}", text(&output.stdout));
}

#[test]
fn a_directory_that_cannot_be_made_is_said_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("man1");
    let output = Command::new(env!("CARGO_BIN_EXE_hapax")).arg("man").arg(below).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
}
