use std::fs;

use serde_json::Value;

use crate::{bench, postgres_url, text};

const TINY: &[&str] = &[
    "store",
    "--quick",
    "--postgres",
    "none",
    "--rounds",
    "2",
    "--seconds",
    "0.05",
    "--callers",
    "1,8",
];

#[test]
fn a_quick_run_reports_every_way_for_each_number_of_callers() {
    let output = bench(&[TINY, &["--fill", "200"]].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    for part in [
        "fdatasync of 8 KiB",
        "SQLite, 1 caller",
        "SQLite, 8 callers",
        "hand-written",
        "hapax",
        "Redis, appendfsync always",
        "over the whole fill, against Redis",
        "at half: p50",
        "disk bytes",
        "bytes, target at most 780",
        "replays/s from memory",
        "replays/s from the file",
    ] {
        assert!(report.contains(part), "no {part:?} in:\n{report}");
    }
    assert!(!report.contains("INVALID"), "{report}");
}

#[test]
fn every_measurement_is_in_the_json() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let output = bench(&[TINY, &["--fill", "0", "--json", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(report["version"], 1);
    assert_eq!(report["valid"], true);
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 2);
    for (section, callers) in sections.iter().zip([1, 8]) {
        assert_eq!(section["data"]["store"], "SQLite");
        assert_eq!(section["data"]["callers"], callers);
        let ways = section["data"]["ways"].as_object().unwrap();
        assert_eq!(ways.len(), 4);
        for (_, samples) in ways {
            let samples = samples.as_array().unwrap();
            assert_eq!(samples.len(), 2);
            assert!(
                samples.iter().all(|sample| sample["requests_per_second"].as_f64() > Some(0.0))
            );
        }
        assert!(section["claims"].as_array().is_some_and(|claims| !claims.is_empty()));
    }
}

#[test]
fn a_report_that_cannot_be_saved_fails_and_says_where() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("missing").join("report.json");
    let output = bench(&[TINY, &["--fill", "0", "--json", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("give --json a file that can be written"));
}

#[test]
fn a_quick_run_reports_every_way_to_insert_once() {
    let url = postgres_url();
    let tiny = ["--quick", "--rounds", "1", "--seconds", "0.2", "--callers", "4"];
    let output = bench(&[&["tx", "--postgres", &url], &tiny[..]].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    for part in [
        "One insert in a transaction, 4 callers",
        "bare insert",
        "Rust, look at begin",
        "Rust, look at end",
        "SQL, begin and finish",
        "SQL, record",
        "SQL, the statement",
        "two commits by hand",
        "SQL, the statement, requests/s against two commits by hand",
    ] {
        assert!(report.contains(part), "no {part:?} in:\n{report}");
    }
    assert!(!report.contains("INVALID"), "{report}");
}

#[test]
fn a_quick_run_of_the_client_reports_calls_journals_and_checks() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("report.json");
    let tiny = ["--quick", "--seconds", "0.1", "--callers", "4", "--sync-us", "100"];
    let json = ["--json", file.to_str().unwrap()];
    let output = bench(&[&["client"], &tiny[..], &json].concat());
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    for part in [
        "each commit waits 100µs more",
        "Calls without a journal, 4 callers",
        "RetryLayer: requests/s against bare reqwest",
        "RetryLayer: more CPU per call than bare reqwest",
        "hapax::Client with its journal",
        "journal: requests/s against one transaction per write",
        "Calls of a service that answers at once",
        "breaker: a call is let through and reported, uncontended",
    ] {
        assert!(report.contains(part), "no {part:?} in:\n{report}");
    }
    assert!(!report.contains("INVALID"), "{report}");

    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 5);
    let by_hand = &sections[1]["data"]["ways"]["one transaction per write"][0];
    assert_eq!(by_hand["writes_per_commit"], 1.0);
}
