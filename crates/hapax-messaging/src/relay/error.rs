//! Why a relay ended by itself, or was not begun.

/// Why a relay does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RelayError {
    /// Its destination was removed while it ran.
    #[error("the destination `{name}` was removed")]
    Removed {
        /// Which one.
        name: String,
    },
    /// An option is out of bounds.
    #[error("{option} cannot be {given}; give {bounds}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What was given.
        given: String,
        /// What may be.
        bounds: &'static str,
    },
    /// Its task panicked: a defect.
    #[error("the relay's task panicked")]
    Panicked,
}
