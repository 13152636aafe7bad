//! A place that takes nothing now.

use std::{error::Error, fmt, time::Duration};

/// The place cannot be reached, or takes nothing now: not the fault of any event, so it costs none
/// of them an attempt. What was sent when it began may have been taken, and is sent again.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_messaging::sink::Outage;
///
/// let busy = Outage::new("the queue is full").for_at_least(Duration::from_secs(30));
/// assert!(!busy.needs_somebody());
/// assert!(Outage::until_resumed("the password is wrong").needs_somebody());
/// ```
#[derive(Debug)]
pub struct Outage {
    cause: Box<dyn Error + Send + Sync>,
    pause: Option<Duration>,
    needs_somebody: bool,
}

impl Outage {
    /// An outage that may end by itself, and why.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: cause.into(), pause: None, needs_somebody: false }
    }

    /// One that does not end by itself: the place asked to be left alone for good, or lets nobody in
    /// with these credentials. The destination is paused until somebody resumes it.
    pub fn until_resumed(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: cause.into(), pause: None, needs_somebody: true }
    }

    /// The same, with the time the place asked for.
    #[must_use]
    pub fn for_at_least(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// How long the place asked to be left alone.
    pub fn pause(&self) -> Option<Duration> {
        self.pause
    }

    /// Whether somebody has to do something about it.
    pub fn needs_somebody(&self) -> bool {
        self.needs_somebody
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the destination takes nothing now")
    }
}

impl Error for Outage {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.cause.as_ref())
    }
}
