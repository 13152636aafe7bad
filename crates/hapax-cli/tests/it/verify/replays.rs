//! The command that a report names sends the same again.

use std::process::Command;

use serde_json::Value;

use super::{Verifier, started};

/// Where the probe of this report cut its requests, in order.
fn cuts(report: &Value) -> Vec<u64> {
    let exchanges = report["probes"][0]["exchanges"].as_array().unwrap().iter();
    exchanges.filter_map(|exchange| exchange["cut"]["bytes"].as_u64()).collect()
}

fn report(verifier: &Verifier) -> Value {
    serde_json::from_str(&verifier.read("report.json")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_of_a_report_cuts_at_the_same_bytes_again_under_new_keys() {
    let (_running, url) = started("honest").await;
    let verifier = Verifier::new();
    let written = ["--only", "V13", "--json-report", "report.json"];
    let ended = verifier.examine(&url, &[&written[..], &["--seed", "7"]].concat());
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    let first = report(&verifier);
    let replay = first["probes"][0]["replay"].as_str().unwrap();
    assert!(replay.ends_with("--replay 7 --only V13") && !replay.contains("alice"), "{replay}");

    let program = std::path::Path::new(env!("CARGO_BIN_EXE_hapax")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{replay} --json-report report.json")]);
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.display()));
    shell.env("AUTHORIZATION", "Bearer alice").current_dir(verifier.path(""));
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{replay}: {}", crate::text(&output.stderr));
    let second = report(&verifier);
    assert_eq!(cuts(&first), cuts(&second));
    assert!(cuts(&first).len() >= 12, "{:?}", cuts(&first));
    let sent = |report: &Value| report["probes"][0]["exchanges"][0]["request"]["head"].clone();
    assert_ne!(sent(&first), sent(&second), "a server that is right knows the old keys");

    verifier.examine(&url, &[&written[..], &["--seed", "8"]].concat());
    assert_ne!(cuts(&first), cuts(&report(&verifier)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_names_the_file_and_the_route_and_what_was_typed_beside_them() {
    let (running, _) = started("no-idempotency").await;
    let verifier = Verifier::new();
    let file = format!(
        "url = \"http://{}\"\ncredential = [\"{}\"]\n\n[[route]]\nmethod = \"POST\"\n\
         path = \"/payments\"\njson = '{}'\ncount = \"{}\"\n",
        running.address,
        super::ALICE,
        super::BODY,
        super::COUNT
    );
    verifier.write("api.toml", &file);
    let args = ["--config", "api.toml", "--only", "V01", "--seed", "7", "-H", "X-Note: it's"];
    let ended = verifier.run(&[&args[..], &["--route", "POST /payments"]].concat());
    assert_eq!(ended.exit, Some(1), "{ended:?}");
    let command = "hapax verify --config api.toml --route 'POST /payments' --header 'X-Note: it'\\''s' \
                   --race-trials 10 --keys-between 100 --max-effects 200 --replay 7 --only V01\n";
    assert!(ended.out.contains(command), "{ended:?}");
}
