use crate::{bench, text};

#[test]
fn help_names_every_bench() {
    let output = bench(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    for name in ["all", "store", "tx", "curves", "http", "outbox", "client", "operating"] {
        assert!(text(&output.stdout).contains(&format!("\n  {name} ")), "no {name}");
    }
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_code_2() {
    for args in [
        &["stores"][..],
        &["store", "--rounds", "0"],
        &["store", "--seconds", "never"],
        &["store", "--seconds", "NaN"],
        &["store", "--callers", "1,,2"],
        &["store", "--callers", "0"],
        &["store", "--fill", "-1"],
        &["operating", "--parts", "everything"],
        &["operating", "--rate", "0"],
        &["operating", "--idle", "0"],
    ] {
        let output = bench(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn a_url_that_is_none_is_refused_with_what_to_write_instead() {
    let output = bench(&["store", "--postgres", "nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("write postgres://user@host:port/database, or none"));
}

#[test]
fn a_server_that_is_not_there_is_named_as_the_reason() {
    let url = "postgres://nobody@127.0.0.1:1/nothing?connect_timeout=5";
    let output = bench(&["store", "--quick", "--postgres", url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("check that --postgres is reachable"));
}

#[test]
fn a_program_that_is_not_there_is_named_with_what_builds_it() {
    for task in ["http", "all", "operating"] {
        let output = bench(&[task, "--quick", "--program", "no/such/hapax"]);
        assert_eq!(output.status.code(), Some(1), "{task}");
        let said = text(&output.stderr);
        assert!(said.contains("no program no/such/hapax; run `cargo xtask bench`"), "{said}");
    }
}
