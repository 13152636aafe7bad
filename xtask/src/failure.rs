use std::{error::Error, fmt};

/// Why a command of ours failed, as told to the person who ran it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure(String);

impl TaskFailure {
    /// A failure with this explanation.
    pub fn new(explanation: impl Into<String>) -> Self {
        Self(explanation.into())
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TaskFailure {}
