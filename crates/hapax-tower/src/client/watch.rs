//! Hearing of every attempt while it is made.

use std::time::Duration;

use hapax_core::retry::AttemptResult;
use http::StatusCode;

use crate::BoxError;

/// Hears of every attempt of a request: for progress, journals and metrics.
///
/// It is called between attempts and must not block.
///
/// ```
/// use std::sync::Arc;
///
/// use hapax_tower::client::{Pursuit, PursuitEvent, Watch};
///
/// struct Log;
///
/// impl Watch for Log {
///     fn saw(&self, event: PursuitEvent<'_>) {
///         println!("{event:?}");
///     }
/// }
///
/// let pursuit = Pursuit { watch: Some(Arc::new(Log)), ..Pursuit::default() };
/// # drop(pursuit);
/// ```
pub trait Watch: Send + Sync {
    /// Something happened.
    fn saw(&self, event: PursuitEvent<'_>);
}

/// What happens while a request is pursued.
#[derive(Debug, Clone, Copy)]
pub enum PursuitEvent<'a> {
    /// An attempt sets out.
    Begun {
        /// Its number, from 1.
        attempt: u32,
        /// How long it may take.
        limit: Duration,
    },
    /// An attempt is over.
    Ended {
        /// Its number, from 1.
        attempt: u32,
        /// What came of it.
        result: AttemptResult,
        /// The status of its answer, if there was one.
        status: Option<StatusCode>,
        /// What it failed with, if there was no answer.
        error: Option<&'a BoxError>,
    },
    /// The next attempt follows after a pause.
    Pausing {
        /// The number of the attempt before it.
        attempt: u32,
        /// How long.
        pause: Duration,
    },
}
