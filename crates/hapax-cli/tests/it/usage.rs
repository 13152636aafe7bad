use crate::{hapax, text};

#[test]
fn help_names_what_the_program_can_do() {
    let output = hapax(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("bench"));
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
        &["bench", "stores"][..],
        &["bench", "store", "--rounds", "0"],
        &["bench", "store", "--seconds", "never"],
        &["bench", "store", "--seconds", "NaN"],
        &["bench", "store", "--callers", "1,,2"],
        &["bench", "store", "--callers", "0"],
        &["bench", "store", "--fill", "-1"],
    ] {
        let output = hapax(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn a_url_that_is_none_is_refused_with_what_to_write_instead() {
    let output = hapax(&["bench", "store", "--postgres", "nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("write postgres://user@host:port/database, or none"));
}

#[test]
fn a_server_that_is_not_there_is_named_as_the_reason() {
    let url = "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=5";
    let output = hapax(&["bench", "store", "--quick", "--postgres", url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("check that --postgres is reachable"));
}
