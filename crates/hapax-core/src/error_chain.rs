//! An error and everything behind it.

use std::{error::Error, fmt, iter::successors};

/// An error and its causes on one line, the nearest first: `cannot be read: file is not a database`.
///
/// Some errors tell their cause themselves: what the line says already is not said again.
///
/// ```
/// use hapax_core::{OneLine, StoreError};
///
/// let error = StoreError::unavailable("connection refused");
/// assert!(OneLine::of(&error).to_string().ends_with(": connection refused"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OneLine<'a> {
    error: &'a dyn Error,
    is_skipped: fn(&(dyn Error + 'static)) -> bool,
}

impl<'a> OneLine<'a> {
    /// All of its causes.
    pub fn of(error: &'a dyn Error) -> Self {
        Self { error, is_skipped: |_| false }
    }

    /// Without the causes that say nothing to whoever reads it.
    pub fn skipping(self, is_skipped: fn(&(dyn Error + 'static)) -> bool) -> Self {
        Self { is_skipped, ..self }
    }
}

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = self.error.to_string();
        let causes = successors(self.error.source(), |&cause| cause.source());
        for cause in causes.filter(|cause| !(self.is_skipped)(*cause)) {
            let cause = cause.to_string();
            if !line.contains(&cause) {
                line.push_str(": ");
                line.push_str(&cause);
            }
        }
        f.write_str(&line)
    }
}
