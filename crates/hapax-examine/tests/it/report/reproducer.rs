//! Commands that repeat a defect, as a shell takes them.

use std::process::Command;

use hapax_examine::{
    CutEnd, DefectClass, ExaminationRecord, Exchange, ProbeRecord, ProbeVerdict, ReportDocument,
    WireCut, WireProtocol,
};

use super::{WHEN, answer, api, defect, exchange, probe, report, request};
use crate::grade::flawless;

fn reproducer(exchanges: Vec<Exchange>) -> String {
    let shown = vec![defect(DefectClass::Safety, "two effects", &[])];
    let probe = probe("V02", ProbeVerdict::Fail { trials: 1, defects: shown }, exchanges);
    of(probe)
}

fn of(probe: ProbeRecord) -> String {
    let record = ExaminationRecord { probes: vec![probe], ..flawless() };
    let report = ReportDocument::of(&record, &api(), WHEN);
    report.probes[0].defects()[0].reproducer.clone()
}

/// The words of which a shell makes a command, each in a line.
fn words(script: &str) -> Vec<String> {
    let all = format!("curl() {{ printf '%s\\n' \"$@\"; }}\n{script}");
    let output = Command::new("sh")
        .args(["-c", &all])
        .env("AUTHORIZATION", "Bearer one")
        .env("OTHER_AUTHORIZATION", "Bearer two")
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}\n{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_request_is_repeated_with_secrets_from_the_environment() {
    let script = reproducer(vec![exchange(1, "first", (0, 9), answer(201, "{}"))]);
    assert_eq!(
        words(&script),
        [
            "-sS",
            "-i",
            "-X",
            "POST",
            "http://127.0.0.1:8080/payments",
            "-H",
            "Content-Type: application/json",
            "-H",
            "Authorization: Bearer one",
            "-H",
            "Idempotency-Key: key-1",
            "--data-raw",
            r#"{"amount":100,"ref":"hpx-1"}"#,
        ]
    );
}

#[test]
fn each_probe_is_repeated_by_a_whole_command_without_secrets() {
    let report = report();
    let bare = "hapax verify 'POST' 'http://127.0.0.1:8080/payments' --replay 7 --only V01";
    assert_eq!(report.probes[0].replay, bare);
    let command = format!("hapax verify --config api.toml -H 'X-Token: {}'", super::TOKEN);
    let replay = report.repeated_by(&api(), &command).probes[0].replay.clone();
    let whole = "hapax verify --config api.toml -H 'X-Token: [redacted]' --replay 7 --only V01";
    assert_eq!(replay, whole);
}

#[test]
fn somebody_else_has_a_variable_of_their_own() {
    let mut other = exchange(1, "other", (0, 9), answer(201, "{}"));
    other.request = request("bobs-secret-token", "key-1", "{}");
    other.address = 1;
    let words = words(&reproducer(vec![other]));
    assert!(words.contains(&"Authorization: Bearer two".to_owned()), "{words:?}");
    assert!(words.contains(&"http://127.0.0.1:8081/payments".to_owned()), "{words:?}");
}

#[test]
fn nothing_in_a_request_is_run_by_the_shell() {
    let mut hostile = exchange(1, "first", (0, 9), answer(201, "{}"));
    let body = r#"'; touch /tmp/never; echo "$(id) `id` $HOME \ !!"#;
    hostile.request = request("t", "k'$(id)\"`id`", body);
    hostile.protocol = WireProtocol::Http2;
    let words = words(&reproducer(vec![hostile]));
    assert!(words.contains(&body.to_owned()), "{words:?}");
    assert!(words.contains(&"Idempotency-Key: k'$(id)\"`id`".to_owned()), "{words:?}");
    assert!(words.contains(&"--http2-prior-knowledge".to_owned()), "{words:?}");
}

#[test]
fn a_key_without_a_value_is_sent_without_one() {
    let mut empty = exchange(1, "first", (0, 9), answer(400, "{}"));
    empty.request = request("t", "", "{}");
    let words = words(&reproducer(vec![empty]));
    assert!(words.contains(&"Idempotency-Key;".to_owned()), "{words:?}");
}

#[test]
fn what_came_at_once_is_sent_at_once() {
    let report = report();
    let race = report.probes.iter().find(|probe| probe.id == "V02").unwrap();
    let script = &race.defects()[0].reproducer;
    assert!(script.contains("for n in $(seq 3); do\n  curl "), "{script}");
    assert!(script.ends_with("&\ndone\nwait\n"), "{script}");
    let one_by_one = reproducer(vec![
        exchange(1, "first", (0, 9), answer(201, "{}")),
        exchange(2, "retry", (9, 19), answer(201, "{}")),
    ]);
    assert_eq!(one_by_one.matches("curl ").count(), 2, "{one_by_one}");
    assert!(!one_by_one.contains("wait"), "{one_by_one}");
    let mut others = vec![
        exchange(1, "one", (0, 9), answer(201, "{}")),
        exchange(2, "two", (1, 19), answer(201, "{}")),
    ];
    others[1].request = request("t", "key-2", "{}");
    let together = reproducer(others);
    assert_eq!(together.matches(" &\n").count(), 2, "{together}");
    assert!(together.ends_with("wait\n"), "{together}");
}

#[test]
fn what_curl_cannot_do_is_said() {
    let mut cut = exchange(1, "cut", (0, 9), answer(201, "{}"));
    cut.cut = Some(WireCut::Request { bytes: 120, end: CutEnd::Silence });
    let script = reproducer(vec![cut]);
    assert!(
        script.contains("# the connection was left silent after 120 bytes of the request"),
        "{script}"
    );
    assert!(script.contains("--max-time"), "{script}");
    let mut large = exchange(1, "large", (0, 9), answer(201, "{}"));
    large.request = request("t", "k", &"x".repeat(100_000));
    assert!(reproducer(vec![large]).contains("longer than what the report shows"));
}
