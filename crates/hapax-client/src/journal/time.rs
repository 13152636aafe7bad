//! How long ago something was, whatever is done to the wall clock meanwhile.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::{Timestamp, time::micros};

/// An instant as two clocks show it: the one on the wall, and the one that counts since the
/// machine was started.
///
/// Within one boot only the second one counts, so a wall clock that is set changes no span. After a
/// reboot the first one is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall clock.
    pub wall: Timestamp,
    /// The clock that counts from the start, suspension included; `None` where there is none.
    pub boot: Option<Boot>,
}

/// A reading of the clock that counts since the machine was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// Which start.
    pub id: [u8; 16],
    /// How long ago it was.
    pub since: Duration,
}

impl Moment {
    /// How long after `earlier` this is; never less than nothing.
    ///
    /// If the machine was started in between, that is what the wall clock says, and at least the
    /// time since that start.
    pub fn since(self, earlier: Self) -> Duration {
        let by_wall = self.wall.after(earlier.wall);
        match (earlier.boot, self.boot) {
            (Some(then), Some(now)) if then.id == now.id => now.since.saturating_sub(then.since),
            (Some(_), Some(now)) => by_wall.max(now.since),
            (Some(_) | None, None) | (None, Some(_)) => by_wall,
        }
    }

    /// What is left now of a lease that was given for `span` at `given`; `None` if it is over.
    ///
    /// No lease outlives the boot it was given in, because its owner did not. By the wall clock
    /// alone, one from the future is over too: the clock was set back, and nobody knows how far.
    pub(super) fn lease_left(self, given: Self, span: Duration) -> Option<Duration> {
        let void = match (given.boot, self.boot) {
            (Some(then), Some(now)) => then.id != now.id,
            (None, None) => self.wall < given.wall,
            (Some(_), None) | (None, Some(_)) => true,
        };
        if void {
            return None;
        }
        span.checked_sub(self.since(given)).filter(|left| !left.is_zero())
    }
}

/// Where a journal reads the time. Clones share it.
#[derive(Clone)]
pub struct JournalClock(Arc<dyn Fn() -> Moment + Send + Sync>);

impl JournalClock {
    /// Reads the time from `now`.
    pub fn new(now: impl Fn() -> Moment + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(super) fn now(&self) -> Moment {
        (self.0)()
    }
}

impl Default for JournalClock {
    /// The system's clocks.
    fn default() -> Self {
        Self::new(|| Moment { wall: system_wall(), boot: system_boot() })
    }
}

impl fmt::Debug for JournalClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JournalClock(..)")
    }
}

/// Big-endian, so that bytes of one boot sort as their times do.
pub(super) fn boot_bytes(moment: Option<Moment>) -> Option<[u8; 24]> {
    let boot = moment?.boot?;
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(&boot.id);
    bytes[16..].copy_from_slice(&micros(boot.since).to_be_bytes());
    Some(bytes)
}

pub(super) fn boot_of(bytes: &[u8]) -> Option<Boot> {
    let (id, since) = bytes.split_first_chunk::<16>()?;
    let micros = u64::from_be_bytes(since.try_into().ok()?);
    Some(Boot { id: *id, since: Duration::from_micros(micros) })
}

#[expect(clippy::disallowed_methods, reason = "this is the journal's clock, the only one it reads")]
fn system_wall() -> Timestamp {
    std::time::SystemTime::now().into()
}

#[cfg(target_os = "linux")]
fn system_boot() -> Option<Boot> {
    use std::sync::OnceLock;

    use rustix::time::{ClockId, clock_gettime};

    static ID: OnceLock<Option<[u8; 16]>> = OnceLock::new();
    let id = (*ID.get_or_init(|| {
        parse_boot_id(&std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?)
    }))?;
    let since = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    Some(Boot { id, since })
}

#[cfg(not(target_os = "linux"))]
fn system_boot() -> Option<Boot> {
    None
}

/// The bytes of a UUID in its usual spelling.
#[cfg(target_os = "linux")]
fn parse_boot_id(text: &str) -> Option<[u8; 16]> {
    let digits = text.trim().replace('-', "");
    if digits.len() != 32 {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_system_knows_which_boot_it_is_and_how_long_ago_it_was() {
        let (earlier, later) = (JournalClock::default().now(), JournalClock::default().now());
        let (then, now) = (earlier.boot.expect("a boot clock"), later.boot.expect("a boot clock"));
        assert_eq!(then.id, now.id);
        assert!(then.since <= now.since && !then.since.is_zero());
    }

    #[test]
    fn a_boot_id_is_a_uuid_and_nothing_else() {
        let id = parse_boot_id("00112233-4455-6677-8899-aabbccddeeff\n").expect("a uuid");
        assert_eq!((id[0], id[1], id[15]), (0x00, 0x11, 0xff));
        for text in ["", "0011", "zz112233-4455-6677-8899-aabbccddeeff"] {
            assert_eq!(parse_boot_id(text), None, "{text:?}");
        }
    }
}
