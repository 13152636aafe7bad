//! What time it is at the store, between two answers from it, and how far that is trusted.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax_core::{
    Record, StoreError, Timestamp,
    clock::{ClockMark, ClockReading, ClockTrust, Elapsed},
};
use tokio::time::Instant;

use crate::engine::Inner;

/// The store's clock as last heard, carried on by the local monotonic one.
///
/// Good enough to say how long to wait and to answer from the cache; every write is decided by the
/// store's own clock.
#[derive(Debug, Default)]
pub(crate) struct StoreClock {
    known: Mutex<ClockReadings>,
    /// Held by whoever looks: two looks at once would not know which was first.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default, Clone, Copy)]
struct ClockReadings {
    heard: Option<StoreTime>,
    looked: Option<Looked>,
    /// How far the store's clock had fallen back when it was last heard, once somebody asked.
    behind: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct StoreTime {
    now: Timestamp,
    at: Instant,
    asked_at: Instant,
}

/// The last look at the clock of somebody who watches it.
#[derive(Debug, Clone, Copy)]
struct Looked {
    watch: ClockTrust,
    at: Instant,
    asked_at: Instant,
}

impl Looked {
    /// What was seen, asked at `asked_at`, by somebody who looked `before`.
    fn now(
        before: Option<Self>,
        reading: ClockReading,
        asked_at: Instant,
        stays: Duration,
    ) -> Self {
        let at = Instant::now();
        let watch = before.map_or_else(
            || ClockTrust::first(reading, stays),
            |before| {
                let (at_least, at_most) = (asked_at - before.at, at - before.asked_at);
                before.watch.next(reading.now, Elapsed { at_least, at_most }, stays)
            },
        );
        Self { watch, at, asked_at }
    }
}

/// A process's watch over the clock of a database it has no engine on.
#[derive(Debug, Default)]
pub struct ClockWatch(Option<Looked>);

impl ClockWatch {
    /// Reads the clock by `read`, and says what to keep of it, if anything new. It is trusted once it
    /// has gone steadily for `stays`.
    pub async fn look(
        &mut self,
        stays: Duration,
        read: impl Future<Output = Result<ClockReading, StoreError>>,
    ) -> Result<(ClockTrust, Option<ClockMark>), StoreError> {
        let asked_at = Instant::now();
        let reading = read.await?;
        let looked = Looked::now(self.0, reading, asked_at, stays);
        self.0 = Some(looked);
        Ok((looked.watch, news(looked.watch, reading)))
    }
}

/// What is to be kept of the clock, unless what is kept will do.
fn news(watch: ClockTrust, reading: ClockReading) -> Option<ClockMark> {
    let mark = watch.mark();
    let will_do = reading.mark.is_some_and(|kept| mark.is_as_good_as(kept));
    (!will_do).then_some(mark)
}

impl StoreClock {
    /// The store, asked at `asked_at`, has said it is `now`. What was asked before something newer
    /// counts no more, however late it comes.
    pub(crate) fn heard(&self, now: Timestamp, asked_at: Instant) {
        let mut known = self.lock();
        if known.heard.is_none_or(|heard| heard.asked_at <= asked_at) {
            known.heard = Some(StoreTime { now, at: Instant::now(), asked_at });
            known.behind = None;
        }
    }

    /// The present time at the store; `None` before it was ever heard.
    pub(crate) fn now(&self) -> Option<Timestamp> {
        self.lock().heard.map(|heard| heard.now.plus(heard.at.elapsed()))
    }

    /// The present time at the store, as far as retention is judged by it.
    pub(crate) fn now_for_retention(&self) -> Option<Timestamp> {
        let (known, here) = (*self.lock(), Instant::now());
        let heard = known.heard?;
        let now = heard.now.plus(here - heard.at);
        // Before the first look no retention is over.
        let judges = |looked: Looked| looked.watch.judges_retention(now, here - looked.at);
        Some(known.looked.map_or(Timestamp::ZERO, judges))
    }

    /// The present time at the store, as far as this record is judged by it.
    pub(crate) fn now_for(&self, record: &Record) -> Option<Timestamp> {
        self.now().map(|now| self.judges(record, now))
    }

    /// The instant by which this record is judged, where the store has said it is `now`.
    pub(crate) fn judges(&self, record: &Record, now: Timestamp) -> Timestamp {
        let (looked, here) = (self.lock().looked, Instant::now());
        looked.map_or(now, |looked| looked.watch.judges(record, now, here - looked.at))
    }

    /// How far the store's clock had fallen back when it was last heard.
    pub(crate) fn fell_back_by(&self) -> Duration {
        let known = &mut *self.lock();
        *known.behind.get_or_insert_with(|| {
            known.heard.zip(known.looked).map_or(Duration::ZERO, |(heard, looked)| {
                let since = heard.at.saturating_duration_since(looked.at);
                looked.watch.fell_back_by(heard.now, since)
            })
        })
    }

    fn lock(&self) -> MutexGuard<'_, ClockReadings> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Looks at the store's clock, and has it kept how far it is trusted. To be done before anything
    /// is judged by it: a sweep, a purge, what was found by the first arrival.
    pub(crate) async fn look_at_clock(&self) -> Result<ClockTrust, StoreError> {
        let _looking = self.clock.looking.lock().await;
        let asked_at = Instant::now();
        let reading = self.store.clock().await?;
        self.clock.heard(reading.now, asked_at);
        let before = self.clock.lock().looked;
        let looked = Looked::now(before, reading, asked_at, self.options.clock_stays);
        {
            let mut known = self.clock.lock();
            (known.looked, known.behind) = (Some(looked), None);
        }
        let watch = looked.watch;
        self.tell_of_clock(before.map(|before| before.watch), watch);
        if let Some(mark) = news(watch, reading) {
            self.store.keep_clock(mark).await?;
        }
        Ok(watch)
    }

    /// Looks at the clock unless that was done before. Nothing is claimed and nothing judged by a
    /// process that never looked.
    pub(crate) async fn know_clock(&self) -> Result<(), StoreError> {
        if self.clock.lock().looked.is_none() {
            self.look_at_clock().await?;
        }
        Ok(())
    }

    fn tell_of_clock(&self, before: Option<ClockTrust>, watch: ClockTrust) {
        let was_trusted = before.is_none_or(ClockTrust::is_trusted);
        if was_trusted && !watch.is_trusted() {
            let stays = self.options.clock_stays;
            tracing::warn!(
                ?stays,
                "the store's clock is ahead of where it was: nothing expires until it has stayed"
            );
        } else if !was_trusted && watch.is_trusted() {
            tracing::info!("the store's clock is trusted again");
        }
    }
}
