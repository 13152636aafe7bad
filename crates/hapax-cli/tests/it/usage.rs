use crate::{hapax, text};

#[test]
fn help_names_what_the_program_can_do() {
    let output = hapax(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("serve"));
}

#[test]
fn the_version_is_the_packages_and_says_what_was_built_in() {
    let said = |flag| {
        let output = hapax(&[flag]);
        assert_eq!(output.status.code(), Some(0));
        text(&output.stdout)
    };
    let version = format!("hapax {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said("-V"), version);
    let parts = said("--version").strip_prefix(&version).unwrap().to_owned();
    assert!(parts.starts_with("with: sqlite, postgres, webhooks"), "{parts}");
    let (here, missing) = parts.split_once("; without: ").unwrap_or((&parts, ""));
    for (part, is_here) in [
        ("nats", cfg!(feature = "nats")),
        ("rabbitmq", cfg!(feature = "rabbitmq")),
        ("sqs", cfg!(feature = "sqs")),
        ("kafka", cfg!(feature = "kafka")),
        ("otlp", cfg!(feature = "otlp")),
    ] {
        assert_eq!((here.contains(part), missing.contains(part)), (is_here, !is_here), "{parts}");
    }
    assert!(said("--help").ends_with(&parts));
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
