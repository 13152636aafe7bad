use std::time::Duration;

use hapax_core::{
    Faults,
    limits::{
        LEASE_MAX, LEASE_MIN, OUTCOME_BODY_BYTES_MAX, REQUEST_BYTES_MAX, RETENTION_MAX,
        RETENTION_MIN,
    },
};

use super::{encryption::JournalEncryption, time::JournalClock};

/// How a journal is opened.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_client::journal::{Journal, JournalOptions};
///
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let retention = Duration::from_secs(30 * 24 * 60 * 60);
/// let journal = Journal::open(file, JournalOptions { retention, ..JournalOptions::default() })?;
/// # drop(journal);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// How long an owner that says nothing is taken to be alive.
    pub lease: Duration,
    /// How long an operation that is over is kept.
    pub retention: Duration,
    /// How long to wait for another process' lock before giving up.
    pub busy: Duration,
    /// The largest body of a request that is taken, in bytes.
    pub request_bytes_max: usize,
    /// The largest body of an answer that is kept, in bytes; of a larger one only its length is.
    pub answer_bytes_max: usize,
    /// What requests and answers are sealed with; `None` leaves them clear, and refuses a journal that
    /// is encrypted.
    pub encryption: Option<JournalEncryption>,
    /// Where the time is read, once for each transaction, while the write lock is held.
    pub clock: JournalClock,
    /// Where tests make the journal fail.
    pub faults: Faults,
}

impl JournalOptions {
    /// The longest a call may wait for another process' lock.
    pub const BUSY_MAX: Duration = Duration::from_secs(60);

    pub(super) fn check(&self) -> Result<(), InvalidOptions> {
        span("lease", self.lease, (LEASE_MIN, LEASE_MAX))?;
        span("retention", self.retention, (RETENTION_MIN, RETENTION_MAX))?;
        span("busy", self.busy, (Duration::ZERO, Self::BUSY_MAX))?;
        size("request_bytes_max", self.request_bytes_max, REQUEST_BYTES_MAX)?;
        size("answer_bytes_max", self.answer_bytes_max, OUTCOME_BODY_BYTES_MAX)
    }
}

impl Default for JournalOptions {
    /// A lease of ten seconds, a retention of seven days, five seconds of patience, requests of up
    /// to 1 MiB, answers of up to 16 MiB, no encryption, and the system's clocks.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(10),
            retention: Duration::from_secs(7 * 24 * 60 * 60),
            busy: Duration::from_secs(5),
            request_bytes_max: 1 << 20,
            answer_bytes_max: OUTCOME_BODY_BYTES_MAX,
            encryption: None,
            clock: JournalClock::default(),
            faults: Faults::default(),
        }
    }
}

/// Which option is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the journal's option `{option}` is {found}; it must be {bounds}")]
pub struct InvalidOptions {
    option: &'static str,
    found: String,
    bounds: String,
}

fn span(
    option: &'static str,
    found: Duration,
    (least, most): (Duration, Duration),
) -> Result<(), InvalidOptions> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let bounds = format!("from {least:?} to {most:?}");
    Err(InvalidOptions { option, found: format!("{found:?}"), bounds })
}

fn size(option: &'static str, found: usize, most: usize) -> Result<(), InvalidOptions> {
    if found <= most {
        return Ok(());
    }
    Err(InvalidOptions { option, found: found.to_string(), bounds: format!("at most {most}") })
}
