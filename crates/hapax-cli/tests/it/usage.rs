use crate::{hapax, text};

#[test]
fn help_names_what_the_program_can_do() {
    let output = hapax(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("serve"));
}

#[test]
fn the_version_is_the_packages() {
    let output = hapax(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), format!("hapax {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_code_2() {
    for args in [
        &["bench"][..],
        &["simulate", "storms"],
        &["simulate", "backoff", "--runs", "0"],
        &["simulate", "backoff", "--base", "never"],
        &["simulate", "backoff", "--clients", "10,,20"],
        &["simulate", "backoff", "--clients", "0"],
    ] {
        let output = hapax(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{args:?}");
    }
}
