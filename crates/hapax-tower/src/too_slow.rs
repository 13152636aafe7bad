//! How a body says that its client sends it too slowly.

use std::{error::Error, iter::successors};

/// The body of a request comes more slowly than whoever reads it allows.
///
/// A request's body fails with it, alone or anywhere in the chain of an error's sources; its client
/// then hears `body-too-slow` instead of `body-incomplete`.
#[derive(Debug, thiserror::Error)]
#[error("the body of the request came too slowly")]
pub struct TooSlow;

impl TooSlow {
    /// Whether that is what this error says, or was caused by.
    pub fn is_in(error: &(dyn Error + 'static)) -> bool {
        successors(Some(error), |error| (**error).source()).any(|error| error.is::<Self>())
    }
}
