//! Examinations from their beginning to their end, with everything that can be given.

use std::net::SocketAddr;

use serde_json::Value;

use super::{
    Verifier, VerifyOutcome,
    process::{KillableServer, ServedProcess},
    started,
};

/// Two instances of one server, and everything that its contract offers; some of it to be replaced.
fn given(address: SocketAddr, also: SocketAddr) -> Vec<String> {
    let hook = |path: &str| format!("POST http://{address}/_hooks/{path}");
    let options = [
        ("--also", format!("http://{also}")),
        ("--other-credential", "Authorization: Bearer bob".to_owned()),
        ("--revoked-credential", "Authorization: Bearer revoked".to_owned()),
        ("--other-path", "/refunds".to_owned()),
        ("--large-path", "/reports".to_owned()),
        ("--fail-hook", hook("fail?effect=before")),
        ("--fail-after-hook", hook("fail?effect=after")),
        ("--slow-hook", hook("slow?ms={milliseconds}")),
        ("--fast-hook", hook("slow?ms=5")),
        ("--clean-up", hook("fail?effect=none")),
        ("--refusals-kept", "false".to_owned()),
        ("--key-required", "true".to_owned()),
        ("--keys-between", "20".to_owned()),
        ("--json-report", "report.json".to_owned()),
    ];
    options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

fn examined(verifier: &Verifier, url: &str, given: &[String], more: &[&str]) -> VerifyOutcome {
    let given: Vec<_> = given.iter().map(String::as_str).chain(more.iter().copied()).collect();
    verifier.examine(url, &given)
}

/// What each probe that was run came to.
fn verdicts(report: &Value) -> Vec<(&str, &str)> {
    let probes = report["probes"].as_array().unwrap().iter();
    probes
        .map(|probe| (probe["id"].as_str().unwrap(), probe["verdict"].as_str().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_what_it_does_on_disk_has_an_a() {
    let server = KillableServer::start(ServedProcess::Species("honest-file"));
    let verifier = Verifier::new();
    let url = format!("http://{}/payments", server.address);
    let (kill, start) = (server.kill_command(), server.start_command());
    // Seven kinds of races are a thousand together, and a few that do not count. No time passes between its effect and its answer, for V24 to kill.
    let more = [
        &["--kill-cmd", &kill, "--start-cmd", &start, "--ttl", "4s", "--skip", "V24"][..],
        &["--race-trials", "150", "--max-effects", "3000"],
    ]
    .concat();
    let ended = examined(&verifier, &url, &given(server.address, server.also), &more);
    assert!(ended.out.starts_with("Grade A ") || ended.out.starts_with("Grade A\n"), "{ended:?}");
    let report: Value = serde_json::from_str(&verifier.read("report.json")).unwrap();
    let verdicts = verdicts(&report);
    assert_eq!(verdicts.len(), 31, "{verdicts:?}");
    assert!(verdicts.iter().all(|(_, verdict)| *verdict != "fail"), "{verdicts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_server_has_the_letter_and_the_probe_that_are_meant_for_it() {
    let (running, url) = started("no-mismatch-check").await;
    let verifier = Verifier::new();
    let given = given(running.address, running.also);
    // Nobody kills it, and what is new since a report of a correct one is what is wrong.
    let (honest, honest_url) = started("honest").await;
    let mut theirs = self::given(honest.address, honest.also);
    for option in &mut theirs {
        *option = option.replace("report.json", "last.json");
    }
    let only = ["--only", "V01,V05,V19,V27"];
    let correct = examined(&verifier, &honest_url, &theirs, &only);
    assert_eq!(correct.exit, Some(0), "{correct:?}");

    let more = ["--race-trials", "2", "--max-effects", "400", "--compare", "last.json"];
    let ended = examined(&verifier, &url, &given, &more);
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    assert!(ended.out.starts_with("Grade C"), "{ended:?}");
    assert!(ended.out.contains("New: "), "{ended:?}");
    let report: Value = serde_json::from_str(&verifier.read("report.json")).unwrap();
    let failed: Vec<_> =
        verdicts(&report).into_iter().filter(|(_, verdict)| *verdict == "fail").collect();
    assert_eq!(failed, [("V05", "fail")], "{ended:?}");
    let again = examined(&verifier, &url, &given, &["--only", "V05", "--compare", "report.json"]);
    assert_eq!(again.exit, Some(0), "{again:?}");
}
