//! Which crate may depend on which, shown by `cargo tree`.

use std::{env, path::Path, process::Command};

use super::Finding;
use crate::Failure;

const BACKENDS: &[&str] = &["hapax-postgres", "hapax-sqlite"];
const DRIVERS: &[&str] =
    &["libsqlite3-sys", "postgres", "redis", "rusqlite", "sqlx", "sqlx-core", "tokio-postgres"];
const HTTP: &[&str] = &["axum", "http", "hyper", "hyper-util", "reqwest", "tower", "tower-http"];
const RUNTIMES: &[&str] = &["async-std", "mio", "smol", "tokio"];
const OWN_CRATES: &str = "hapax";

/// What one crate must not reach by any path of normal dependencies.
struct Rule {
    package: &'static str,
    forbidden: &'static [&'static [&'static str]],
    reason: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        package: "hapax-core",
        forbidden: &[RUNTIMES, HTTP, DRIVERS, BACKENDS, &["hapax-engine"]],
        reason: "the machine has no IO, so that it can be tested without any",
    },
    Rule {
        package: "hapax-engine",
        forbidden: &[HTTP, DRIVERS, BACKENDS],
        reason: "the engine drives any store and serves any front end",
    },
    Rule {
        package: "hapax-sqlite",
        forbidden: &[HTTP, &["hapax-engine", "hapax-postgres", "tokio-postgres"]],
        reason: "a backend knows the core alone",
    },
    Rule {
        package: "hapax-postgres",
        forbidden: &[HTTP, &["hapax-engine", "hapax-sqlite", "rusqlite"]],
        reason: "a backend knows the core alone",
    },
    Rule {
        package: "hapax-tower",
        forbidden: &[DRIVERS, BACKENDS, &["axum", "hyper", "hyper-util", "reqwest"]],
        reason: "the layer protects any tower service on any store",
    },
    Rule {
        package: "hapax-client",
        forbidden: &[BACKENDS, &["postgres", "sqlx", "sqlx-core", "tokio-postgres"]],
        reason: "the client reads no store: its journal is a file of its own",
    },
    Rule {
        package: "hapax-messaging",
        forbidden: &[DRIVERS, BACKENDS],
        reason: "a relay runs on any outbox, and a consumer in any database",
    },
    Rule {
        package: "hapax-gateway",
        forbidden: &[DRIVERS, BACKENDS],
        reason: "the gateway runs on any store; the program picks one",
    },
    Rule {
        package: "hapax-verify",
        forbidden: &[HTTP, DRIVERS, BACKENDS],
        reason: "what judges the stores names none of them",
    },
    Rule {
        package: "hapax-services",
        forbidden: &[&["hapax-core", "hapax-engine"], BACKENDS],
        reason: "real servers are started for Hapax, not by it",
    },
];

/// The crates that may pick a backend: the facade, by features, and the programs.
const MAY_PICK_A_BACKEND: &[&str] = &["hapax", "hapax-cli", "hapax-crash"];

/// Checks every crate of the workspace at `root`.
pub fn check(root: &Path) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    for package in packages(root)? {
        let reached = tree(root, &package)?;
        findings.extend(judge(&package, reached.iter().map(String::as_str)));
    }
    Ok(findings)
}

/// What is wrong with the crates that `package` reaches.
pub fn judge<'a>(package: &str, reached: impl IntoIterator<Item = &'a str>) -> Vec<Finding> {
    let manifest = format!("crates/{package}/Cargo.toml");
    let mut findings = Vec::new();
    for dependency in reached {
        if dependency == package {
            continue;
        }
        for rule in RULES.iter().filter(|rule| rule.package == package) {
            if rule.forbidden.iter().any(|group| group.contains(&dependency)) {
                let reason = rule.reason;
                let what = format!("reaches `{dependency}`; remove it: {reason}");
                findings.push(Finding::new(&manifest, 1, what));
            }
        }
        let has_rule = RULES.iter().any(|rule| rule.package == package);
        let may_pick = MAY_PICK_A_BACKEND.contains(&package);
        if BACKENDS.contains(&dependency) && !may_pick && !has_rule {
            let what =
                format!("reaches `{dependency}`; only the facade and the programs pick a backend");
            findings.push(Finding::new(&manifest, 1, what));
        }
    }
    findings
}

fn packages(root: &Path) -> Result<Vec<String>, Failure> {
    let tree = cargo(root, &["tree", "--workspace", "--depth", "0"])?;
    Ok(tree.into_iter().filter(|name| name.starts_with(OWN_CRATES)).collect())
}

fn tree(root: &Path, package: &str) -> Result<Vec<String>, Failure> {
    cargo(root, &["tree", "--package", package, "--all-features", "--edges", "normal"])
}

fn cargo(root: &Path, args: &[&str]) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).args(["--prefix", "none", "--format", "{p}", "--locked"]);
    let output = command.current_dir(root).output();
    let output = output.map_err(|error| Failure::new(format!("cargo cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    Ok(names)
}
