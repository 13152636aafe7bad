use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{bench, postgres_url, text};

#[test]
fn the_benches_of_a_run_are_in_one_report() {
    let directory = tempfile::tempdir().unwrap();
    let (json, html) = (directory.path().join("report.json"), directory.path().join("report.html"));
    let url = postgres_url();
    let tiny = ["all", "--quick", "--rounds", "1", "--seconds", "0.05"];
    let only = ["--only", "store,tx,http,outbox,client,operating"];
    let files = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let output = bench(&[&tiny[..], &only, &["--postgres", &url], &files].concat());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("bench 1 of "), "progress is told without a terminal");

    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((&report["valid"], &report["cut_short"]), (&Value::Bool(true), &Value::Bool(false)));
    let page = fs::read_to_string(&html).unwrap();
    for bench in ["store", "tx", "http", "outbox", "client", "operating"] {
        let sections = report["sections"].as_array().unwrap();
        assert!(sections.iter().any(|section| section["bench"] == bench), "no {bench} in the JSON");
        assert!(said.contains(&format!("== {bench} ==")), "no {bench} in:\n{said}");
        assert!(page.contains(&format!(">{bench}</h2>")), "no {bench} in the page");
    }
    check_well_formed(&page);
}

#[test]
fn an_interrupted_run_reports_what_it_has() {
    let endless = ["client", "--quick", "--seconds", "0.05", "--rounds", "1000"];
    let mut run = Command::new(env!("CARGO_BIN_EXE_hapax-bench"))
        .args(endless)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    // The first line is about the first measurement; the second has others behind it.
    assert!(lines.next().unwrap().unwrap().starts_with("client 0/"));
    lines.next().unwrap().unwrap();
    let pid = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    lines.map_while(Result::ok).for_each(drop);
    let output = run.wait_with_output().unwrap();
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("CUT SHORT"), "{said}");
    assert!(said.contains("RetryLayer: requests/s against bare reqwest"), "{said}");
}

/// Every element ends, in the order in which they began.
fn check_well_formed(page: &str) {
    let mut open = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.split_whitespace().next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "in order"),
            None if name.starts_with('!') || tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}
