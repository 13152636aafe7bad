//! The action runs the program that it is given, and says where the reports are.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

const ACTION: &str = "../../deploy/github/action.yml";

/// A program that writes down its arguments, and the report that it is asked for as SARIF.
const PROGRAM: &str = r#"#!/bin/sh
printf '%s\n' "$@" > arguments
while [ $# -gt 0 ]; do
  if [ "$1" = --sarif ]; then echo '{}' > "$2"; fi
  shift
done
exit 3
"#;

/// What the step of the action runs.
fn script() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(ACTION);
    let action = fs::read_to_string(path).unwrap();
    let (_, script) = action.split_once("      run: |\n").unwrap();
    script.lines().map(|line| format!("{}\n", line.strip_prefix("        ").unwrap())).collect()
}

#[test]
fn the_action_runs_the_given_program_and_names_what_it_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("our hapax");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let status = Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()])
        .current_dir(folder.path())
        .env("HAPAX_PROGRAM", &program)
        .env("VERIFY_URL", "")
        .env("VERIFY_FILE", "a file; touch run")
        .env("VERIFY_COMPARE", "last.json")
        .env("VERIFY_ARGUMENTS", "--only\nV01, V02\n\n$(touch run)")
        .env("VERIFY_OUTPUT", "out put")
        .env("GITHUB_OUTPUT", folder.path().join("outputs"))
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    let arguments = fs::read_to_string(folder.path().join("arguments")).unwrap();
    let expected = "verify|--file|a file; touch run|--compare|last.json|--only|V01, V02|$(touch run)|\
                    --json|out put/report.json|--html|out put/report.html|--junit|out put/junit.xml|\
                    --sarif|out put/report.sarif|--badge|out put/badge.svg";
    assert_eq!(arguments.trim_end().replace('\n', "|"), expected);
    let outputs = fs::read_to_string(folder.path().join("outputs")).unwrap();
    assert_eq!(outputs, "sarif=out put/report.sarif\nexit-code=3\n");
    assert!(!folder.path().join("run").exists(), "something of an input was run");
}
