//! The action of `deploy/github` runs this program, and says where the reports are.

use std::{fs, path::Path, process::Command};

use super::{ALICE, BODY, COUNT, Verifier, started};

const ACTION: &str = "../../deploy/github/action.yml";

/// What the step of the action runs.
fn script() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(ACTION);
    let action = fs::read_to_string(path).unwrap();
    let (_, script) = action.split_once("      run: |\n").unwrap();
    script.lines().map(|line| format!("{}\n", line.strip_prefix("        ").unwrap())).collect()
}

/// Runs the step with these inputs: its exit code, and what it names as outputs.
fn step(verifier: &Verifier, inputs: &[(&str, &str)]) -> (Option<i32>, String) {
    let outputs = verifier.path("outputs");
    fs::write(&outputs, "").unwrap();
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()]);
    command.current_dir(verifier.path("")).env("GITHUB_OUTPUT", &outputs);
    // What an input is where it is not given.
    for name in ["URL", "FILE", "COMPARE", "ARGUMENTS"] {
        command.env(format!("VERIFY_{name}"), "");
    }
    command.env("HAPAX_PROGRAM", env!("CARGO_BIN_EXE_hapax"));
    command.env("VERIFY_OUTPUT", "out put").envs(inputs.iter().copied());
    let ended = command.output().unwrap();
    (ended.status.code(), fs::read_to_string(outputs).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_action_examines_writes_every_report_and_compares_with_an_earlier_one() {
    let (running, _) = started("no-idempotency").await;
    let verifier = Verifier::new();
    let file = format!(
        "url = \"http://{}\"\ncredential = [\"{ALICE}\"]\n\n[[route]]\nmethod = \"POST\"\n\
         path = \"/payments\"\njson = '{BODY}'\ncount = \"{COUNT}\"\n",
        running.address
    );
    verifier.write("a file; touch run", &file);
    let inputs = [("VERIFY_FILE", "a file; touch run"), ("VERIFY_ARGUMENTS", "--only\nV01\n\n")];
    let outputs = "json=out put/report.json\nhtml=out put/report.html\njunit=out put/junit.xml\n\
                   sarif=out put/report.sarif\nbadge=out put/badge.svg\nexit-code=";
    assert_eq!(step(&verifier, &inputs), (Some(1), format!("{outputs}1\n")));
    let report = verifier.read("out put/report.json");
    assert!(report.contains("one key had 2 effects"), "{report}");

    verifier.write("last.json", &report);
    let compared = [&inputs[..], &[("VERIFY_COMPARE", "last.json")]].concat();
    assert_eq!(step(&verifier, &compared), (Some(0), format!("{outputs}0\n")));
    assert!(!verifier.path("run").exists(), "something of an input was run");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_action_names_no_report_where_nothing_was_examined() {
    let verifier = Verifier::new();
    let inputs =
        [("VERIFY_URL", "http://127.0.0.1:1/pay"), ("VERIFY_ARGUMENTS", "--only\n$(touch run)")];
    assert_eq!(step(&verifier, &inputs), (Some(2), "exit-code=2\n".to_owned()));
    assert!(!verifier.path("run").exists(), "something of an input was run");
}
