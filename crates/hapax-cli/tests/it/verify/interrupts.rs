//! Ctrl-C, and going on.

use std::{fs, os::unix::fs::PermissionsExt, process::Child};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Verifier, VerifyOutcome, known, started};
use crate::world::until;

const PROBES: [&str; 4] = ["--only", "V01,V05,V19", "--seed", "7"];

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn ended(child: Child) -> VerifyOutcome {
    VerifyOutcome::of(&child.wait_with_output().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_interrupted_is_finished_later_without_what_was_done() {
    let (running, url) = started("honest").await;
    let verifier = Verifier::new();
    // The controls, and the first of the probes.
    running.hold_after(12);
    let args = [&known(&url), &PROBES[..]].concat();
    let child = verifier.command(&args).spawn().unwrap();
    running.handlers(13).await;
    interrupt(&child);
    let file = verifier.path("verify-7.json");
    // It waits for the request at work.
    running.release();
    let interrupted = ended(child);
    assert_eq!(interrupted.exit, Some(130), "{interrupted:?}");
    assert!(interrupted.err.contains("stops after the request at work"), "{interrupted:?}");
    assert!(interrupted.err.ends_with("hapax verify --resume verify-7.json\n"), "{interrupted:?}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let saved = verifier.read("verify-7.json");
    assert!(!saved.contains("alice"), "{saved}");
    let refused = verifier.run(&["--resume", "verify-7.json"]);
    assert!(refused.refusal().contains("--credential, whose secrets are not kept"), "{refused:?}");
    let resumed = verifier.run(&["--resume", "verify-7.json", "--credential", super::ALICE]);
    assert_eq!(resumed.exit, Some(0), "{resumed:?}");
    let saved: Value = serde_json::from_str(&saved).unwrap();
    let done = saved["report"]["probes"].as_array().unwrap();
    assert!(!done.is_empty() && done.len() < 3, "{done:?}");
    for id in ["V01", "V05", "V19"] {
        let was_done = done.iter().any(|probe| probe["id"] == id);
        let is_told = resumed.err.lines().any(|line| line.starts_with(id) && line.contains("... "));
        assert_ne!(was_done, is_told, "{id}: {resumed:?}");
        assert!(resumed.out.contains(id), "{id}: {resumed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twice_ends_it_at_once() {
    let (running, url) = started("honest").await;
    let verifier = Verifier::new();
    running.hold();
    let args = [&known(&url), &PROBES[..], &["--clean-up", "touch cleaned"]].concat();
    let mut child = verifier.command(&args).spawn().unwrap();
    running.handlers(1).await;
    // Two signals of one kind that come together are one.
    let mut over = None;
    until("the program to end", async || {
        interrupt(&child);
        over = child.try_wait().unwrap();
        over.is_some()
    })
    .await;
    assert_eq!(over.unwrap().code(), Some(130));
    assert!(!verifier.path("verify-7.json").exists() && !verifier.path("cleaned").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn once_cleans_up() {
    let (running, url) = started("honest").await;
    let verifier = Verifier::new();
    running.hold();
    let args = [&known(&url), &PROBES[..], &["--clean-up", "touch cleaned"]].concat();
    let child = verifier.command(&args).spawn().unwrap();
    running.handlers(1).await;
    interrupt(&child);
    running.release();
    let interrupted = ended(child);
    assert_eq!(interrupted.exit, Some(130), "{interrupted:?}");
    assert!(verifier.path("cleaned").exists() && verifier.path("verify-7.json").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_would_have_to_wait_for_days_is_told_when_to_go_on() {
    let (_running, url) = started("honest").await;
    let verifier = Verifier::new();
    let first = verifier.examine(&url, &["--only", "V19,V26", "--ttl", "24h", "--seed", "7"]);
    assert_eq!(first.exit, Some(3), "{first:?}");
    assert!(first.err.ends_with("hapax verify --resume verify-7.json\n"), "{first:?}");
    let args = ["--resume", "verify-7.json", "--credential", super::ALICE];
    let again = verifier.run(&args);
    assert_eq!(again.exit, Some(3), "{again:?}");
    assert!(again.err.contains("V26 expiry ... inconclusive"), "{again:?}");
    // What came to a conclusion is not asked again, and stands in the report.
    assert!(!again.err.contains("V19 ") && again.out.contains("V19 missing-key"), "{again:?}");
}
