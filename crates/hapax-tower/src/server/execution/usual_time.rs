//! How long the work of a route usually takes, so that whoever must come back is told when.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// After so many samples all of them count half: what was usual fades.
const SAMPLES_MAX: u16 = 256;
/// Buckets of times: four for each doubling, from a millisecond to more than the longest lease.
const BUCKETS: usize = 4 * 24;
/// Nobody is told to come back sooner: the header counts seconds.
const ASK_AGAIN_MIN: Duration = Duration::from_secs(1);
/// What has taken longer than usual is asked about again after this part of the time it took.
const OVERTIME_PART: u32 = 2;

/// How long the work of one route usually takes, over all who do it here.
#[derive(Debug, Default)]
pub(crate) struct UsualTime(Mutex<Samples>);

impl UsualTime {
    /// Somebody finished after this time.
    pub(crate) fn add(&self, took: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(took);
    }

    /// When to ask again about work that is under way.
    pub(crate) fn ask_again(&self, under_way: UnderWay) -> Duration {
        let usual = self.0.lock().unwrap_or_else(PoisonError::into_inner).usual();
        ask_again(usual, under_way)
    }

    /// When to look at work that has not begun yet.
    pub(crate) fn look_again(&self) -> Duration {
        let usual = self.0.lock().unwrap_or_else(PoisonError::into_inner).usual();
        usual.unwrap_or_default().max(ASK_AGAIN_MIN)
    }
}

/// Work that somebody else is at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnderWay {
    /// How long ago it began.
    pub(crate) at_work: Duration,
    /// How long its present lease lasts.
    pub(crate) lease_left: Duration,
    /// How long a lease is when it is new.
    pub(crate) lease: Duration,
}

/// What is left of the usual time. Work that is over its time, or of which nothing is known, is asked
/// about more and more seldom. When its lease ends somebody else may take over: nobody waits longer.
///
/// An owner that is alive renews its lease before half of it is over. Where two thirds are, it
/// died, or left the work until then: nothing changes earlier.
fn ask_again(usual: Option<Duration>, under_way: UnderWay) -> Duration {
    let UnderWay { at_work, lease_left, lease } = under_way;
    if lease_left < lease / 3 {
        return lease_left.max(ASK_AGAIN_MIN);
    }
    let left = usual.and_then(|usual| usual.checked_sub(at_work)).filter(|left| !left.is_zero());
    let wait = left.unwrap_or(at_work / OVERTIME_PART);
    wait.min(lease_left).max(ASK_AGAIN_MIN)
}

/// Times that were taken lately, counted by size.
#[derive(Debug)]
struct Samples {
    counts: [u16; BUCKETS],
    total: u16,
}

impl Default for Samples {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total: 0 }
    }
}

impl Samples {
    fn add(&mut self, took: Duration) {
        self.counts[bucket(took)] += 1;
        self.total += 1;
        if self.total >= SAMPLES_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// Nine of ten took no longer than this; `None` if there was none.
    fn usual(&self) -> Option<Duration> {
        let rank = self.total - self.total / 10;
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += count;
            seen > 0 && seen >= rank
        });
        found.map(longest_in)
    }
}

/// Times of one bucket differ by a quarter at most.
fn bucket(took: Duration) -> usize {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
    let doublings = millis.ilog2();
    // The two bits below the highest.
    let quarter = (millis << 2 >> doublings) & 3;
    let at = u64::from(doublings) * 4 + quarter;
    usize::try_from(at).unwrap_or(BUCKETS).min(BUCKETS - 1)
}

/// The longest time of a bucket, rounded up.
fn longest_in(bucket: usize) -> Duration {
    let at = u64::try_from(bucket).unwrap_or_default();
    let (doublings, quarter) = (at / 4, at % 4);
    Duration::from_millis(((5 + quarter) << doublings).div_ceil(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn secs(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    fn usual(times: impl IntoIterator<Item = f64>) -> Option<Duration> {
        let mut samples = Samples::default();
        times.into_iter().for_each(|time| samples.add(secs(time)));
        samples.usual()
    }

    #[test]
    fn the_usual_time_is_that_of_nine_in_ten_within_a_quarter() {
        assert_eq!(usual([]), None);
        for time in [0.001, 0.0127, 0.5, 1.5, 29.0, 3600.0] {
            let found = usual([time]).unwrap();
            assert!(found >= secs(time) && found <= secs(time * 1.26 + 0.001), "{time} {found:?}");
        }
        let rare = (0..100).map(|n| if n % 20 == 0 { 20.0 } else { 0.5 });
        assert!(usual(rare).unwrap() < secs(0.7));
        let frequent = (0..100).map(|n| if n % 5 == 0 { 20.0 } else { 0.5 });
        assert!(usual(frequent).unwrap() > secs(19.9));
        for extreme in [Duration::ZERO, Duration::MAX] {
            Samples::default().add(extreme);
        }
    }

    #[test]
    fn what_was_usual_fades() {
        let times = std::iter::repeat_n(20.0, 10_000).chain(std::iter::repeat_n(0.5, 1000));
        assert!(usual(times).unwrap() < secs(0.7));
    }

    /// When to ask again about work that began `at_work` ago and has this left of its lease.
    fn again(usual: Option<f64>, at_work: f64, lease_left: f64) -> f64 {
        let (at_work, lease_left) = (secs(at_work), secs(lease_left));
        let under_way = UnderWay { at_work, lease_left, lease: LEASE };
        ask_again(usual.map(secs), under_way).as_secs_f64()
    }

    #[test]
    fn what_is_left_of_the_usual_time_is_waited_for() {
        let check = |usual, at_work, lease_left, expected| {
            assert_eq!(again(Some(usual), at_work, lease_left), expected);
        };
        check(8.0, 0.0, 30.0, 8.0);
        check(8.0, 5.0, 25.0, 3.0);
        check(8.0, 7.9, 22.1, 1.0);
        check(0.5, 0.1, 30.0, 1.0);
        check(60.0, 0.0, 30.0, 30.0);
    }

    #[test]
    fn work_over_its_time_is_asked_about_more_and_more_seldom() {
        for usual in [None, Some(0.5)] {
            assert_eq!(again(usual, 1.0, 30.0), 1.0);
            assert_eq!(again(usual, 6.0, 30.0), 3.0);
            assert_eq!(again(usual, 20.0, 30.0), 10.0);
            assert_eq!(again(usual, 90.0, 30.0), 30.0);
        }
        assert_eq!(again(None, 0.0, 30.0), 1.0);
    }

    #[test]
    fn work_that_nobody_renews_changes_when_its_lease_ends() {
        for usual in [None, Some(0.5), Some(20.0)] {
            assert_eq!(again(usual, 0.0, 7.0), 7.0);
            assert_eq!(again(usual, 25.0, 5.0), 5.0);
            assert_eq!(again(usual, 29.9, 0.1), 1.0);
        }
    }
}
