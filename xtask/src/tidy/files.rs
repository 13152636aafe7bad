//! Which files there are.

use super::{TidyFinding, Tree};

const FILE_BYTES_MAX: u64 = 1 << 20;
const LEFTOVERS: &[&str] = &[".orig", ".rej", ".pending-snap", ".snap.new", ".swp", "~"];
const BACKENDS: &[&str] = &["hapax-postgres", "hapax-sqlite"];
const BACKEND_FILES: &[&str] =
    &["commit.rs", "error.rs", "migrate.rs", "retire.rs", "row.rs", "store.rs"];

/// Nothing that a tool left behind, nothing huge.
pub fn check(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        if file.bytes > FILE_BYTES_MAX {
            let what = format!("{} bytes; {FILE_BYTES_MAX} is the most", file.bytes);
            findings.push(TidyFinding::new(&file.path, 1, what));
        }
        if LEFTOVERS.iter().any(|end| file.path.ends_with(end)) {
            findings.push(TidyFinding::new(&file.path, 1, "a tool left this behind; delete it"));
        }
    }
    findings
}

/// Every workspace has its lock file: what was tried is what is built.
pub fn check_locks(tree: &Tree) -> Vec<TidyFinding> {
    let workspaces = tree.ending("Cargo.toml").filter(|file| {
        file.text.lines().any(|line| line == "[workspace]")
            && tree.get(&file.path.replace("Cargo.toml", "Cargo.lock")).is_none()
    });
    let what = "there is no Cargo.lock beside it; commit it";
    workspaces.map(|file| TidyFinding::new(&file.path, 1, what)).collect()
}

/// Where a manifest turns tests off, there are none: nobody would notice that they do not run.
pub fn check_untested(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for manifest in tree.ending("Cargo.toml") {
        let source = manifest.path.replace("Cargo.toml", "src/");
        let is_library = tree.contains(&format!("{source}lib.rs"));
        let section = if is_library { "[lib]" } else { "[[bin]]" };
        for (setting, starts) in [("test = false", TESTS), ("doctest = false", DOC_TESTS)] {
            if !has_setting(&manifest.text, section, setting) {
                continue;
            }
            for file in tree.files.iter().filter(|file| file.path.starts_with(&source)) {
                let is_test = |line: &str| starts.iter().any(|start| line.trim() == *start);
                let place = file.text.lines().position(is_test);
                let what = format!("it does not run: {section} of its manifest has `{setting}`");
                findings.extend(place.map(|line| TidyFinding::new(&file.path, line + 1, what)));
            }
        }
    }
    findings
}

/// How tests begin, each on a line of its own.
const TESTS: &[&str] = &["#[test]", "#[tokio::test]"];
const DOC_TESTS: &[&str] = &["/// ```", "//! ```", "/// ```no_run", "//! ```no_run"];

fn has_setting(manifest: &str, section: &str, setting: &str) -> bool {
    let body = manifest.lines().skip_while(|line| *line != section).skip(1);
    body.take_while(|line| !line.starts_with('[')).any(|line| line == setting)
}

/// The same concept has the same file name in every backend.
pub fn check_backends(tree: &Tree) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for backend in BACKENDS {
        for file in BACKEND_FILES {
            if !tree.contains(&format!("crates/{backend}/src/{file}")) {
                let what = format!("there is no src/{file}; every backend has one");
                findings.push(TidyFinding::new(&format!("crates/{backend}/src/lib.rs"), 1, what));
            }
        }
    }
    findings
}
