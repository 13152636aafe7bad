//! `cargo xtask tidy`: the rules of the repository that no compiler checks.
//!
//! Each check is a function from files to findings, so each can be shown to fail on a small input.

use std::{fmt, fs, path::Path, process::Command};

use crate::TaskFailure;

pub mod arrows;
pub mod documents;
pub mod examples;
pub mod files;
pub mod links;
pub mod names;
pub mod rights;
pub mod sizes;
pub mod source;
pub mod statuses;
pub mod words;

/// Checks the workspace at `root`; prints what it found and fails if something must be mended.
pub fn run(root: &Path) -> Result<(), TaskFailure> {
    let tree = Tree::read(root)?;
    for note in sizes::large_files(&tree) {
        println!("note: {note}");
    }
    let mut findings = arrows::check(root)?;
    for check in CHECKS {
        findings.extend(check(&tree));
    }
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => Err(TaskFailure::new(format!("{count} findings"))),
    }
}

type Check = fn(&Tree) -> Vec<TidyFinding>;

const CHECKS: &[Check] = &[
    sizes::check,
    words::check,
    links::check,
    names::check,
    names::check_modules,
    documents::check_states,
    documents::check_errors,
    documents::check_changelog,
    documents::check_commands,
    documents::check_tests,
    documents::check_files,
    examples::check,
    files::check,
    files::check_backends,
    files::check_locks,
    files::check_untested,
    rights::check,
    statuses::check,
];

/// The files of the repository, in order of their paths.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Every file that is tracked or about to be.
    pub files: Vec<SourceFile>,
}

/// One file of the repository.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// How large it is, in bytes.
    pub bytes: u64,
    /// What it says; empty if it is not text.
    pub text: String,
}

impl Tree {
    /// Reads every file that git tracks or would track.
    pub fn read(root: &Path) -> Result<Self, TaskFailure> {
        let mut git = Command::new("git");
        git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let output = git.current_dir(root).output();
        let output =
            output.map_err(|error| TaskFailure::new(format!("git cannot be run: {error}")))?;
        if !output.status.success() {
            return Err(TaskFailure::new("git does not know the files of this directory"));
        }
        let listing = String::from_utf8_lossy(&output.stdout);
        let mut files: Vec<_> = listing
            .split('\0')
            .filter(|path| !path.is_empty())
            .filter_map(|path| {
                // A file that was deleted and not yet committed is still listed.
                let content = fs::read(root.join(path)).ok()?;
                let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
                let text = String::from_utf8(content).unwrap_or_default();
                Some(SourceFile { path: path.to_owned(), bytes, text })
            })
            .collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { files })
    }

    /// A tree made of these paths and texts.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: (*path).to_owned(),
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            text: (*text).to_owned(),
        };
        Self { files: files.iter().map(file).collect() }
    }

    /// The file at this path.
    pub fn get(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files whose name ends so.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }

    /// Whether there is a file or a folder at this path.
    pub fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    }
}

/// Something that must be mended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TidyFinding {
    /// In which file.
    pub path: String,
    /// On which line, counted from one.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl TidyFinding {
    /// A finding at this line.
    pub fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}
