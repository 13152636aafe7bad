use std::{fmt, sync::Arc, time::Duration};

use hapax_core::{Faults, Timestamp};
use hapax_sqlite_file::Durability;

/// How a store is opened.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_sqlite::Options;
///
/// let options = Options { busy: Duration::from_secs(1), readers: 4, ..Options::default() };
/// assert!(options.size_bytes_max.is_none());
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// What a commit has survived once it is answered.
    pub durability: Durability,
    /// How long to wait for another process' lock before giving up, at most [`Options::BUSY_MAX`].
    pub busy: Duration,
    /// How many threads read, from 1 to [`Options::READERS_MAX`].
    pub readers: usize,
    /// The largest the database file may grow, in bytes; beyond it the store is unavailable.
    pub size_bytes_max: Option<u64>,
    /// For how many keys, the newest, memory knows where they are: up to sixteen bytes for each. Of those
    /// beyond, it knows in ten bits whether the file has to be asked. A purge sees to it that there are
    /// not many more.
    pub keys_in_memory_max: usize,
    /// The store's clock, asked once for each commit, while the write lock is held.
    pub clock: Clock,
    /// Where tests make the store fail.
    pub faults: Faults,
}

impl Options {
    /// The longest a call may wait for another process' lock.
    pub const BUSY_MAX: Duration = Duration::from_secs(60);
    /// The most threads that may read.
    pub const READERS_MAX: usize = 16;

    /// The same, no larger than allowed.
    pub(crate) fn within_bounds(self) -> Self {
        Self {
            busy: self.busy.min(Self::BUSY_MAX),
            readers: self.readers.clamp(1, Self::READERS_MAX),
            ..self
        }
    }
}

impl Default for Options {
    /// Full durability, five seconds of patience, two readers, no limit but the disk's, 64 MB for
    /// four million keys, and the system's clock.
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            busy: Duration::from_secs(5),
            readers: 2,
            size_bytes_max: None,
            keys_in_memory_max: 4_000_000,
            clock: Clock::default(),
            faults: Faults::default(),
        }
    }
}

/// Where a store reads the time. Clones share it.
///
/// ```
/// use hapax_core::Timestamp;
/// use hapax_sqlite::{Clock, Options};
///
/// // For tests: it is always the same moment.
/// let options = Options { clock: Clock::new(|| Timestamp::ZERO), ..Options::default() };
/// # drop(options);
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Reads the time from `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The system's clock.
    fn default() -> Self {
        Self::new(system_now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock(..)")
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the store's clock, the only one it reads")]
fn system_now() -> Timestamp {
    std::time::SystemTime::now().into()
}
