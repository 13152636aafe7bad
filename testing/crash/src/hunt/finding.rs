//! What a check found, said in one way by every hunt.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A broken promise, and how to see it again.
#[derive(Debug, Clone)]
pub struct HuntFinding<V> {
    /// What was broken.
    pub violation: V,
    /// The command that repeats the episode.
    pub repeat: String,
    /// Where its files are.
    pub dir: PathBuf,
}

impl<V> HuntFinding<V> {
    /// A finding for each of these violations, all of the same episode.
    pub(crate) fn of(
        violations: impl IntoIterator<Item = V>,
        repeat: &str,
        dir: &Path,
    ) -> impl Iterator<Item = Self> {
        let (repeat, dir) = (repeat.to_owned(), dir.to_owned());
        let finding = move |violation| Self { violation, repeat: repeat.clone(), dir: dir.clone() };
        violations.into_iter().map(finding)
    }
}

impl<V: fmt::Display> fmt::Display for HuntFinding<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { violation, repeat, dir } = self;
        write!(f, "VIOLATION {violation}\n  repeat: {repeat}\n  files: {}", dir.display())
    }
}
