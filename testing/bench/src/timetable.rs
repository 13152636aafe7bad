//! When requests are due, whatever became of those before them.
//!
//! A closed loop asks less while it waits, so it hides what a stall does to others. Here a request
//! is timed from when it was due: those that queue behind a stall show it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{sync::Semaphore, time::Instant};

/// Times at equal distances, each given to one request.
#[derive(Debug)]
pub(super) struct Timetable {
    began: Instant,
    interval: Duration,
    places: u64,
    taken: AtomicU64,
    /// One permit for each place whose time has come, in order.
    due: Semaphore,
}

impl Timetable {
    /// Starts now. A thread of its own keeps the time, because the runtime's timers know only
    /// milliseconds.
    pub(super) fn start(per_second: f64, duration: Duration) -> Arc<Self> {
        let interval = interval(per_second);
        let places = places(duration, interval);
        let (taken, due) = (AtomicU64::new(0), Semaphore::new(0));
        let timetable = Arc::new(Self { began: Instant::now(), interval, places, taken, due });
        let clock = Arc::clone(&timetable);
        thread::spawn(move || clock.keep());
        timetable
    }

    /// Waits until the next request is due and says since when; `None` if there is none left.
    pub(super) async fn next(&self) -> Option<Instant> {
        let place = self.taken.fetch_add(1, Relaxed);
        if place >= self.places {
            return None;
        }
        // Waiters are served in the order they came, so each is woken at the time of its place.
        self.due.acquire().await.ok()?.forget();
        Some(self.began + self.offset(place))
    }

    /// Wakes one waiter for each place whose time has come, until all have gone.
    fn keep(&self) {
        let mut woken = 0;
        while woken < self.places {
            let due = (self.came(self.began.elapsed())).min(self.places);
            self.due.add_permits(usize::try_from(due - woken).unwrap_or(0));
            woken = due;
            thread::sleep(self.offset(woken).saturating_sub(self.began.elapsed()));
        }
    }

    /// How many places have come after this time.
    fn came(&self, elapsed: Duration) -> u64 {
        places(elapsed, self.interval).saturating_add(1)
    }

    fn offset(&self, place: u64) -> Duration {
        Duration::from_nanos(nanos(self.interval).saturating_mul(place))
    }
}

fn interval(per_second: f64) -> Duration {
    let per_second = if per_second.is_normal() { per_second.abs().max(1.0) } else { 1.0 };
    Duration::from_secs_f64(1.0 / per_second).max(Duration::from_nanos(1))
}

fn places(duration: Duration, interval: Duration) -> u64 {
    nanos(duration) / nanos(interval).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_equal_distances() {
        assert_eq!(interval(10_000.0), Duration::from_micros(100));
        assert_eq!(places(Duration::from_secs(3), interval(10_000.0)), 30_000);
        for nonsense in [0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(interval(nonsense), Duration::from_secs(1), "{nonsense}");
        }
    }

    #[tokio::test]
    async fn requests_are_due_at_equal_distances_whenever_they_are_made() {
        let timetable = Timetable::start(10_000.0, Duration::from_millis(2));
        let mut due = Vec::new();
        while let Some(time) = timetable.next().await {
            due.push(time - timetable.began);
        }
        let expected: Vec<_> = (0..20).map(|place| Duration::from_micros(100) * place).collect();
        assert_eq!(due, expected);
    }
}
