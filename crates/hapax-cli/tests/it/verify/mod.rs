//! `hapax verify`, as people run it, against servers whose faults are known.

mod action;
mod bad_inputs;
mod counting;
mod files;
mod interrupts;
mod oracles;
mod process;
mod proposals;
mod refusals;
mod replays;
mod reports;
mod whole;

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use hapax_zoo::{RunningSpecies, Species};
use tempfile::TempDir;

use crate::text;

/// Somebody who examines, in a directory of their own.
struct Verifier {
    place: TempDir,
}

/// What a run came to.
#[derive(Debug)]
struct VerifyOutcome {
    exit: Option<i32>,
    out: String,
    err: String,
}

const BODY: &str = r#"{"amount":100,"currency":"EUR","ref":"{marker}"}"#;
const COUNT: &str = "GET /payments?ref={marker} /items/length";
const ALICE: &str = "Authorization: Bearer alice";

impl Verifier {
    fn new() -> Self {
        Self { place: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.arg("verify").args(args).current_dir(self.place.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> VerifyOutcome {
        VerifyOutcome::of(&self.command(args).output().unwrap())
    }

    /// Examines what is at this URL, as one does it who knows the contract of the zoo.
    fn examine(&self, url: &str, more: &[&str]) -> VerifyOutcome {
        self.run(&[&known(url), more].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

impl VerifyOutcome {
    fn of(output: &Output) -> Self {
        Self { exit: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The one line that says why nothing was asked.
    fn refusal(&self) -> &str {
        assert_eq!((self.exit, self.out.as_str()), (Some(2), ""), "{self:?}");
        let lines: Vec<_> = self.err.lines().collect();
        assert_eq!(lines.len(), 1, "{self:?}");
        lines[0]
    }
}

fn known(url: &str) -> Vec<&str> {
    vec!["POST", url, "--json", BODY, "--count", COUNT, "--id", "/id", "--credential", ALICE]
}

async fn started(name: &str) -> (RunningSpecies, String) {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let url = format!("http://{}/payments", running.address);
    (running, url)
}

#[test]
fn help_shows_how_it_is_used_and_what_the_codes_mean() {
    let help = Verifier::new().run(&["--help"]);
    assert_eq!(help.exit, Some(0), "{help:?}");
    for part in ["Examples:", "Exit status:", "--i-am-authorised", "before its effect", "draft-07"]
    {
        assert!(help.out.contains(part), "no {part:?} in:\n{}", help.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_honest_server_has_no_findings() {
    let (_running, url) = started("honest").await;
    let ended = Verifier::new().examine(&url, &["--only", "V01,changed-body,V19"]);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    for line in ["V01 retry-after-success ... pass", "V05 changed-body ... pass"] {
        assert!(ended.err.lines().any(|told| told == line), "{ended:?}");
    }
    assert!(ended.out.starts_with("Grade B"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_idempotency_has_a_finding_in_one_sentence() {
    let (_running, url) = started("no-idempotency").await;
    let ended = Verifier::new().examine(&url, &["--only", "V01"]);
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    assert!(ended.out.starts_with("Grade F"), "{ended:?}");
    assert!(ended.out.contains("one key had 2 effects"), "{ended:?}");
    assert!(ended.err.contains("V01 retry-after-success ... FAIL"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_anything_is_asked_it_says_what_and_how_often() {
    let (_running, url) = started("honest").await;
    let ended = Verifier::new().examine(&url, &["--only", "V19,V10", "--seed", "7"]);
    let before = ended.err.split("C4 ").next().unwrap();
    for part in [
        "Examines POST http://127.0.0.1",
        "counted by GET /payments?ref={marker} /items/length (O2)",
        "at most 12 of 200",
        "Runs 1 probe:",
        "Leaves out 1 probe:",
        "it needs revoked credentials (`--revoked-credential`)",
    ] {
        assert!(before.contains(part), "no {part:?} in:\n{before}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_is_cleaned_up_in_the_end() {
    let (running, url) = started("honest").await;
    let verifier = Verifier::new();
    let ended = verifier.examine(&url, &["--only", "V19", "--clean-up", "echo done > cleaned"]);
    assert_eq!((ended.exit, verifier.read("cleaned").trim()), (Some(0), "done"), "{ended:?}");
    let hook = format!("POST http://{}/_hooks/nothing", running.address);
    let ended = verifier.examine(&url, &["--only", "V19", "--clean-up", &hook]);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert!(ended.err.contains("hapax: what cleans up failed"), "{ended:?}");
}
