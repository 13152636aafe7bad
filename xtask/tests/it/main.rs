//! The project's own checks, each shown to pass and to fail.

mod arrows;
mod bench_guard;
mod documents;
mod examples;
mod files;
mod links;
mod names;
mod packages;
mod repository;
mod rights;
mod services;
mod sizes;
mod statuses;
mod tally;
mod toolchain;
mod upgrade;
mod words;

use xtask::tidy::{TidyFinding, Tree};

/// Runs a check over files and compares what it finds, as `path:line: part of what it says`.
#[track_caller]
fn check(check: fn(&Tree) -> Vec<TidyFinding>, files: &[(&str, &str)], expected: &[&str]) {
    compare(&check(&Tree::of(files)), expected);
}

#[track_caller]
fn compare(findings: &[TidyFinding], expected: &[&str]) {
    let found: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
    }
}
