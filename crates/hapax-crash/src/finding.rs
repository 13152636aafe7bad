//! What a check found, said in one way by every drive.

use std::{fmt, path::PathBuf};

/// A broken promise, and how to see it again.
#[derive(Debug, Clone)]
pub struct Finding<V> {
    /// What was broken.
    pub violation: V,
    /// The command that repeats the episode.
    pub repeat: String,
    /// Where its files are.
    pub dir: PathBuf,
}

impl<V: fmt::Display> fmt::Display for Finding<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { violation, repeat, dir } = self;
        write!(f, "VIOLATION {violation}\n  repeat: {repeat}\n  files: {}", dir.display())
    }
}
