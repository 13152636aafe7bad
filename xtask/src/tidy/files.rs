//! Which files there are.

use super::{Finding, Tree};

const FILE_BYTES_MAX: u64 = 1 << 20;
const LEFTOVERS: &[&str] = &[".orig", ".rej", ".pending-snap", ".snap.new", ".swp", "~"];
const BACKENDS: &[&str] = &["hapax-postgres", "hapax-sqlite"];
const BACKEND_FILES: &[&str] =
    &["commit.rs", "error.rs", "migrate.rs", "retire.rs", "row.rs", "store.rs"];

/// Nothing that a tool left behind, nothing huge.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.bytes > FILE_BYTES_MAX {
            let what = format!("{} bytes; {FILE_BYTES_MAX} is the most", file.bytes);
            findings.push(Finding::new(&file.path, 1, what));
        }
        if LEFTOVERS.iter().any(|end| file.path.ends_with(end)) {
            findings.push(Finding::new(&file.path, 1, "a tool left this behind; delete it"));
        }
    }
    findings
}

/// Every workspace has its lock file: what was tried is what is built.
pub fn check_locks(tree: &Tree) -> Vec<Finding> {
    let workspaces = tree.ending("Cargo.toml").filter(|file| {
        file.text.lines().any(|line| line == "[workspace]")
            && tree.get(&file.path.replace("Cargo.toml", "Cargo.lock")).is_none()
    });
    let what = "there is no Cargo.lock beside it; commit it";
    workspaces.map(|file| Finding::new(&file.path, 1, what)).collect()
}

/// The same concept has the same file name in every backend.
pub fn check_backends(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for backend in BACKENDS {
        for file in BACKEND_FILES {
            if !tree.contains(&format!("crates/{backend}/src/{file}")) {
                let what = format!("there is no src/{file}; every backend has one");
                findings.push(Finding::new(&format!("crates/{backend}/src/lib.rs"), 1, what));
            }
        }
    }
    findings
}
