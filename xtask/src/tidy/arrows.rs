//! Which crate may depend on which, shown by `cargo tree`.

use std::{env, path::Path, process::Command};

use super::TidyFinding;
use crate::TaskFailure;

const BACKENDS: &[&str] = &["hapax-postgres", "hapax-sqlite"];
const DRIVERS: &[&str] = &[
    "libsqlite3-sys",
    "postgres",
    "redis",
    "rusqlite",
    "sqlx",
    "sqlx-core",
    "sqlx-postgres",
    "tokio-postgres",
];
const HTTP: &[&str] = &["axum", "http", "hyper", "hyper-util", "reqwest", "tower", "tower-http"];
const RUNTIMES: &[&str] = &["async-std", "mio", "smol", "tokio"];
const OURS: &[&str] = &[
    "hapax",
    "hapax-cli",
    "hapax-client",
    "hapax-core",
    "hapax-encryption",
    "hapax-engine",
    "hapax-gateway",
    "hapax-messaging",
    "hapax-postgres",
    "hapax-sql",
    "hapax-sqlite",
    "hapax-sqlite-file",
    "hapax-tower",
];
const ABOVE_A_FILE: &[&str] = &["hapax-client", "hapax-core", "hapax-engine", "hapax-tower"];
const OWN_CRATES: &str = "hapax";

/// What one crate must not reach by any path of normal dependencies.
struct ArrowRule {
    package: &'static str,
    forbidden: &'static [&'static [&'static str]],
    reason: &'static str,
}

const RULES: &[ArrowRule] = &[
    ArrowRule {
        package: "hapax-core",
        forbidden: &[RUNTIMES, HTTP, DRIVERS, BACKENDS, &["hapax-engine"]],
        reason: "the machine has no IO, so that it can be tested without any",
    },
    ArrowRule {
        package: "hapax-engine",
        forbidden: &[HTTP, DRIVERS, BACKENDS],
        reason: "the engine drives any store and serves any front end",
    },
    ArrowRule {
        package: "hapax-encryption",
        forbidden: &[DRIVERS, BACKENDS, &["hapax-engine", "hapax-tower", "hapax-gateway"]],
        reason: "what stands around any store names none",
    },
    ArrowRule {
        package: "hapax-sql",
        forbidden: &[RUNTIMES, HTTP, DRIVERS, BACKENDS, &["hapax-engine"]],
        reason: "what is said to any database names none, and no driver",
    },
    ArrowRule {
        package: "hapax-sqlite",
        forbidden: &[HTTP, &["hapax-engine", "hapax-postgres", "tokio-postgres"]],
        reason: "a backend knows the core alone",
    },
    ArrowRule {
        package: "hapax-sqlite-file",
        forbidden: &[
            HTTP,
            BACKENDS,
            ABOVE_A_FILE,
            &["postgres", "sqlx", "sqlx-core", "tokio-postgres"],
        ],
        reason: "a file and its writer know nothing of what is kept in it",
    },
    ArrowRule {
        package: "hapax-postgres",
        forbidden: &[HTTP, &["hapax-engine", "hapax-sqlite", "rusqlite"]],
        reason: "a backend knows the core alone",
    },
    ArrowRule {
        package: "hapax-tower",
        forbidden: &[DRIVERS, BACKENDS, &["axum", "hyper", "hyper-util", "reqwest"]],
        reason: "the layer protects any tower service on any store",
    },
    ArrowRule {
        package: "hapax-client",
        forbidden: &[BACKENDS, &["postgres", "sqlx", "sqlx-core", "tokio-postgres"]],
        reason: "the client reads no store: its journal is a file of its own",
    },
    ArrowRule {
        package: "hapax-messaging",
        forbidden: &[DRIVERS, BACKENDS, &["hapax-gateway", "hapax-tower"]],
        reason: "a relay runs on any outbox, and a consumer in any database",
    },
    ArrowRule {
        package: "hapax-gateway",
        forbidden: &[DRIVERS, BACKENDS, &["hapax-messaging"]],
        reason: "the gateway runs on any store, with or without relays; the program picks",
    },
    ArrowRule {
        package: "hapax-examine",
        forbidden: &[OURS, DRIVERS, &["axum", "hyper", "hyper-util", "reqwest", "tower"]],
        reason: "what examines servers judges ours as it judges others, and sends its bytes itself",
    },
    ArrowRule {
        package: "hapax-verify",
        forbidden: &[HTTP, DRIVERS, BACKENDS],
        reason: "what judges the stores names none of them",
    },
    ArrowRule {
        package: "hapax-services",
        forbidden: &[&["hapax-core", "hapax-engine"], BACKENDS],
        reason: "real servers are started for Hapax, not by it",
    },
];

/// The crates that may pick a backend: the facade, by features, and the programs.
const MAY_PICK_A_BACKEND: &[&str] =
    &["hapax", "hapax-bench", "hapax-cli", "hapax-crash", "hapax-power", "hapax-zoo"];

/// The crates in `testing/`, which are never shipped: nothing in `crates/` reaches them.
const NEVER_SHIPPED: &[&str] = &[
    "hapax-bench",
    "hapax-bench-guard",
    "hapax-crash",
    "hapax-fuzz",
    "hapax-power",
    "hapax-services",
    "hapax-verify",
    "hapax-zoo",
];

/// Checks every crate of the workspace at `root`.
pub fn check(root: &Path) -> Result<Vec<TidyFinding>, TaskFailure> {
    let mut findings = Vec::new();
    for package in packages(root)? {
        let reached = tree(root, &package)?;
        findings.extend(judge(&package, reached.iter().map(String::as_str)));
    }
    Ok(findings)
}

/// What is wrong with the crates that `package` reaches.
pub fn judge<'a>(package: &str, reached: impl IntoIterator<Item = &'a str>) -> Vec<TidyFinding> {
    let manifest = manifest_of(package);
    let mut findings = Vec::new();
    for dependency in reached {
        if dependency == package {
            continue;
        }
        for rule in RULES.iter().filter(|rule| rule.package == package) {
            if rule.forbidden.iter().any(|group| group.contains(&dependency)) {
                let reason = rule.reason;
                let what = format!("reaches `{dependency}`; remove it: {reason}");
                findings.push(TidyFinding::new(&manifest, 1, what));
            }
        }
        if NEVER_SHIPPED.contains(&dependency) && !NEVER_SHIPPED.contains(&package) {
            let what =
                format!("reaches `{dependency}`; remove it: what is in testing/ never ships");
            findings.push(TidyFinding::new(&manifest, 1, what));
        }
        let has_rule = RULES.iter().any(|rule| rule.package == package);
        let may_pick = MAY_PICK_A_BACKEND.contains(&package);
        if BACKENDS.contains(&dependency) && !may_pick && !has_rule {
            let what =
                format!("reaches `{dependency}`; only the facade and the programs pick a backend");
            findings.push(TidyFinding::new(&manifest, 1, what));
        }
    }
    findings
}

fn manifest_of(package: &str) -> String {
    if NEVER_SHIPPED.contains(&package) {
        let folder = package.strip_prefix("hapax-").unwrap_or(package);
        format!("testing/{folder}/Cargo.toml")
    } else {
        format!("crates/{package}/Cargo.toml")
    }
}

fn packages(root: &Path) -> Result<Vec<String>, TaskFailure> {
    let tree = cargo(root, &["tree", "--workspace", "--depth", "0"])?;
    Ok(tree.into_iter().filter(|name| name.starts_with(OWN_CRATES)).collect())
}

fn tree(root: &Path, package: &str) -> Result<Vec<String>, TaskFailure> {
    cargo(root, &["tree", "--package", package, "--all-features", "--edges", "normal"])
}

fn cargo(root: &Path, args: &[&str]) -> Result<Vec<String>, TaskFailure> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).args(["--prefix", "none", "--format", "{p}", "--locked"]);
    let output = command.current_dir(root).output();
    let output =
        output.map_err(|error| TaskFailure::new(format!("cargo cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(TaskFailure::new(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut names: Vec<_> =
        text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    Ok(names)
}
