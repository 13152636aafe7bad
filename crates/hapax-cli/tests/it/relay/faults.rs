//! What a gateway's file says about relays is understood, or refused with its place.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use hapax_messaging::relay::RELAY_SETTINGS;

use crate::{hapax, text};

const UPSTREAM: &str = "[upstream]\nurl = \"http://127.0.0.1:3000\"\n";

/// What `hapax check-config` says about a file of this text.
fn checked(text: &str) -> Output {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("gateway.toml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.args(["check-config", "gateway.toml"]).current_dir(directory.path()).output().unwrap()
}

#[test]
fn what_a_relay_says_is_understood_and_does_not_contradict_itself() {
    for case in include_str!("faults.txt").split("\n\n") {
        let (told, lines): (Vec<_>, Vec<_>) = case.lines().partition(|line| line.starts_with("> "));
        let expected: Vec<_> =
            told.iter().map(|line| line.replacen("> ", "gateway.toml:", 1)).collect();
        let output = checked(&format!("{UPSTREAM}[[relay]]\n{}", lines.join("\n")));
        let message = text(&output.stderr);
        let told: Vec<_> =
            message.lines().filter(|line| line.starts_with("gateway.toml:")).collect();
        assert_eq!(told, expected, "{case}\n{message}");
    }
}

#[test]
fn faults_of_relays_are_told_with_all_others_in_the_order_of_the_file() {
    let top = "workers = 0\nexchange = \"orders\"\n";
    let output = checked(&format!("{top}{UPSTREAM}[[relay]]\nto = 1\n"));
    let message = text(&output.stderr);
    let told: Vec<_> = message.lines().filter(|line| line.starts_with("gateway.toml:")).collect();
    assert_eq!(
        told,
        [
            "gateway.toml:1:11: `workers` is out of range; write a number from 1 to 1024 instead",
            "gateway.toml:2:1: there is no setting \"exchange\" here; write it in `[[relay]]` instead",
            "gateway.toml:5:1: it has no `name`, under which its progress is kept; write `name = \"billing\"` too",
            "gateway.toml:6:6: `to` cannot be a whole number; write text in quotes instead",
        ]
    );
}

#[test]
fn a_relay_on_a_store_in_memory_is_refused() {
    let relay = "[[relay]]\nname = \"a\"\nto = \"stdout:\"";
    let told = text(&checked(&format!("store = \"memory:\"\n{UPSTREAM}{relay}")).stderr);
    assert!(told.contains("nothing can be emitted into a store in memory"), "{told}");
}

#[test]
fn every_setting_of_a_relay_is_explained_and_in_the_example_which_is_good() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(repository.join("docs/gateway-config.md")).unwrap();
    let example = repository.join("examples/gateway.toml");
    let shown = fs::read_to_string(&example).unwrap();
    for name in RELAY_SETTINGS {
        let row = format!("| `{name}` |");
        assert!(page.lines().any(|line| line.starts_with(&row)), "`{name}` has no row");
        assert!(shown.contains(&format!("{name} = ")), "`{name}` is not shown");
    }
    let output = hapax(&["check-config", example.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\nrelay tape: orders.* to stdout:;"));
}
