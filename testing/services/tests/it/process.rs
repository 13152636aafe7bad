use std::{process::Command, time::Duration};

use hapax_services::{
    ServiceError,
    process::{self, LeftoverProcess, StopStep},
};

#[test]
fn a_command_that_succeeds_returns_what_it_printed() {
    let printed = process::run(Command::new("echo").arg("hello"), Duration::from_secs(10));
    assert_eq!(printed.unwrap(), "hello\n");
}

#[test]
fn a_command_that_fails_shows_what_it_printed() {
    let script = "echo the reason >&2; exit 3";
    let refusal =
        process::run(Command::new("sh").args(["-c", script]), Duration::from_secs(10)).unwrap_err();
    let ServiceError::CommandFailed { status, output, .. } = refusal else { panic!("{refusal}") };
    assert_eq!((status.as_str(), output.as_str()), ("exit status: 3", "the reason\n"));
}

#[test]
fn a_command_that_takes_too_long_is_stopped() {
    let limit = Duration::from_millis(20);
    let refusal = process::run(Command::new("sleep").arg("60"), limit).unwrap_err();
    assert!(matches!(refusal, ServiceError::TooSlow { .. }), "{refusal}");
}

#[test]
fn a_process_id_that_now_belongs_to_somebody_else_is_not_taken_for_ours() {
    let ourselves = std::process::id();
    let left =
        |mark: &str| LeftoverProcess { server: "a server", pid: ourselves, mark: mark.into() };
    assert!(!left("/no/such/directory/data").is_running());
    left("/no/such/directory/data").stop(&[StopStep::KILL]).unwrap();
    assert!(left(&std::env::args().next().unwrap()).is_running());
}
