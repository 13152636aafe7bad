//! How far a store's clock is trusted.
//!
//! Retention is measured by the store's clock, so a clock that is wrong for a moment could end the
//! life of everything that is stored. Two rules keep it from doing so:
//!
//! - a store keeps a [`ClockMark`] and expires, buries and removes nothing by an instant after
//!   [`ClockMark::trusted_until`];
//! - only somebody who has watched the clock go steadily for long enough moves that instant on.
//!
//! A [`ClockTrust`] is what one process has seen. It compares the store's clock with a clock that nobody
//! can set, and starts over whenever the two disagree. After a restart it goes on with what the
//! store kept, unless too much time seems to have passed: a clock that is two days ahead cannot be
//! told from a process that was off for two days.

use std::time::Duration;

use crate::{
    limits::{
        CLOCK_AHEAD, CLOCK_KEPT_EVERY, CLOCK_LEASES_STAY, CLOCK_STEP, CLOCK_UNSEEN_MAX, LEASE_MAX,
    },
    record::Record,
    time::Timestamp,
};

/// What a store keeps of its own clock, for whoever looks at it next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockMark {
    /// Since when it has gone steadily, by its own account.
    pub steady_since: Timestamp,
    /// When it was last looked at.
    pub seen_at: Timestamp,
    /// Up to where it is trusted.
    pub trusted_until: Timestamp,
}

/// A store's clock, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// What the clock says.
    pub now: Timestamp,
    /// What was kept of it; `None` where nobody ever watched it.
    pub mark: Option<ClockMark>,
}

impl ClockReading {
    /// The instant by which retention is judged: now, or as far as the clock is trusted. A clock
    /// that nobody ever watched is taken at its word.
    pub fn trusted(self) -> Timestamp {
        self.mark.map_or(self.now, |mark| self.now.min(mark.trusted_until))
    }
}

impl ClockMark {
    /// Whether a look at `now` may follow this one, for somebody who did not see both.
    fn is_followed_by(self, now: Timestamp, stays: Duration) -> bool {
        self.seen_at.minus(CLOCK_STEP) <= now && now <= self.seen_at.plus(stays)
    }

    /// Up to where it was trusted, for somebody whose clock does not follow on from this one.
    fn trusted_at(self, now: Timestamp, stays: Duration) -> Timestamp {
        if is_new(self.steady_since, self.seen_at, stays) {
            self.trusted_until.min(now)
        } else {
            self.trusted_until
        }
    }

    /// Whether `kept` need not be replaced by this yet, to spare the store a write.
    pub fn is_as_good_as(self, kept: Self) -> bool {
        kept.is_followed_by(self.seen_at, CLOCK_KEPT_EVERY)
            && kept.trusted_until >= self.seen_at
            && kept.trusted_until <= self.trusted_until
    }
}

/// What one process has seen of its store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockTrust {
    steady_since: Timestamp,
    seen_at: Timestamp,
    /// What time it was then, as far as retention is concerned.
    retention: Timestamp,
    /// What time it was then, as far as leases are concerned.
    leases: Timestamp,
    /// Whether every owner that is alive has given a sign of life by this clock.
    signs_of_life: bool,
}

/// How long it was from one look to the next, by a clock that nobody can set: the store answered
/// some time in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed {
    /// From the former answer to the latter question.
    pub at_least: Duration,
    /// From the former question to the latter answer.
    pub at_most: Duration,
}

impl ClockTrust {
    /// The first look of a process at a clock that is trusted once it has stayed for `stays`.
    ///
    /// It goes on with what was kept if that is recent. Leases are taken as they are: waiting would
    /// hold up every restart. Whoever follows an owner too early by that is stopped by its fence, and
    /// believes that nothing was done only once that owner can send no more.
    pub fn first(reading: ClockReading, stays: Duration) -> Self {
        let ClockReading { now, mark } = reading;
        let (steady_since, retention) = match mark {
            None => (now.minus(stays), now),
            Some(mark) if !mark.is_followed_by(now, stays) => (now, mark.trusted_at(now, stays)),
            Some(mark) if mark.steady_since.plus(stays) <= now => (mark.steady_since, now),
            Some(mark) => (mark.steady_since, mark.trusted_until),
        };
        let signs_of_life = steady_since.plus(stays.min(CLOCK_LEASES_STAY)) <= now;
        Self { steady_since, seen_at: now, retention, leases: now, signs_of_life }
    }

    /// The next look of the same process.
    ///
    /// A process that was stopped meanwhile watched nothing, whatever its own clock says.
    #[must_use]
    pub fn next(self, now: Timestamp, elapsed: Elapsed, stays: Duration) -> Self {
        let earliest = self.seen_at.plus(elapsed.at_least).minus(CLOCK_STEP);
        let latest = self.seen_at.plus(elapsed.at_most).plus(CLOCK_STEP);
        let has_watched = elapsed.at_most <= CLOCK_UNSEEN_MAX;
        let is_steady = has_watched && earliest <= now && now <= latest;
        let steady_since = if is_steady { self.steady_since } else { now };
        // A clock that was set is not believed before it has stayed: time goes on from where it was.
        let goes_on = |before: Timestamp, stays| {
            let is_right = is_steady && before == self.seen_at;
            if is_right || steady_since.plus(stays) <= now {
                now
            } else {
                before.plus(elapsed.at_least.min(CLOCK_UNSEEN_MAX))
            }
        };
        let lease_stays = stays.min(CLOCK_LEASES_STAY);
        let retention = goes_on(self.retention, stays);
        let is_taken_back = !is_steady && is_new(self.steady_since, self.seen_at, stays);
        Self {
            steady_since,
            seen_at: now,
            retention: if is_taken_back { retention.min(now) } else { retention },
            leases: goes_on(self.leases, lease_stays),
            signs_of_life: steady_since.plus(lease_stays) <= now,
        }
    }

    /// Whether retention may be judged by what the clock said at the last look.
    pub fn is_trusted(self) -> bool {
        self.seen_at <= self.retention
    }

    /// Whether leases may be judged by what the clock said at the last look.
    pub fn is_trusted_with_leases(self) -> bool {
        self.seen_at <= self.leases
    }

    /// What the store should keep of this.
    pub fn mark(self) -> ClockMark {
        let ahead = if self.retention == self.seen_at { CLOCK_AHEAD } else { Duration::ZERO };
        let trusted_until = self.retention.plus(ahead);
        ClockMark { steady_since: self.steady_since, seen_at: self.seen_at, trusted_until }
    }

    /// The instant by which a record is judged, where the store's clock says `now` and the last look
    /// was so long ago: its retention if it is finished, else its lease.
    ///
    /// A lease that ends later than any can was given by a clock that was ahead. It is over as soon
    /// as its owner would have renewed it by the right one.
    pub fn judges(self, record: &Record, now: Timestamp, since: Duration) -> Timestamp {
        if record.tag().is_terminal() {
            return self.judges_retention(now, since);
        }
        let believed = carried(self.leases, since);
        // By either clock: a lease that was given by the one that is wrong now is as good as any.
        let is_from_the_future = now.max(believed).plus(LEASE_MAX) < record.until();
        if is_from_the_future && self.signs_of_life { record.until() } else { now.min(believed) }
    }

    /// The instant by which retention is judged, where the store's clock says `now` and the last
    /// look was so long ago.
    pub fn judges_retention(self, now: Timestamp, since: Duration) -> Timestamp {
        now.min(carried(self.retention, since))
    }

    /// How far the store's clock, which says `now`, has fallen back, where the last look was so long
    /// ago. What is written by it would expire too early once the clock is right again.
    pub fn fell_back_by(self, now: Timestamp, since: Duration) -> Duration {
        let behind = self.retention.plus(since.min(CLOCK_UNSEEN_MAX)).after(now);
        if behind > CLOCK_STEP { behind } else { Duration::ZERO }
    }
}

/// Whether a clock was trusted, if at all, for less than it takes to be: as one is that nobody had
/// watched before. Once it is set, nobody knows which time was right, and that trust is taken back.
fn is_new(steady_since: Timestamp, seen_at: Timestamp, stays: Duration) -> bool {
    seen_at < steady_since.plus(stays).plus(stays)
}

/// The latest it can be so long after a look.
fn carried(seen: Timestamp, since: Duration) -> Timestamp {
    seen.plus(since.min(CLOCK_UNSEEN_MAX)).plus(CLOCK_STEP)
}
