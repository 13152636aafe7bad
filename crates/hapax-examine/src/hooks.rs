//! What users give so that more can be tried: how the server is killed, started, slowed, and made to fail.

use std::time::Duration;

/// Something that can be done to the server under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook {
    /// A command for the shell.
    Command(String),
    /// A request without a body: `POST http://127.0.0.1:8080/_hooks/fail`.
    Request {
        /// The method.
        method: String,
        /// The URL.
        url: String,
    },
}

/// All that can be done to the server under test.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    /// Kills the server at once, as SIGKILL does.
    pub kill: Option<Hook>,
    /// Starts it again, and ends once it has been told to start.
    pub start: Option<Hook>,
    /// Makes the next execution fail with a 5xx before it has its effect.
    pub fail_before: Option<Hook>,
    /// Makes the next execution fail with a 5xx after it has had its effect.
    pub fail_after: Option<Hook>,
    /// Makes every execution take as long as `slow_by`; `{milliseconds}` in it is replaced.
    pub slow: Option<Hook>,
    /// Ends that.
    pub fast: Option<Hook>,
    /// Runs after everything, to remove what was made.
    pub clean_up: Option<Hook>,
    /// How slow the server is made.
    pub slow_by: Duration,
}
