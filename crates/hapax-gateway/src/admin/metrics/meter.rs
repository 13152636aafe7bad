//! What one worker counts.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{Relaxed, Release},
        },
    },
    time::Duration,
};

use hapax_engine::{Histogram, LATENCY_MICROS};
use hapax_tower::{Code, Handled, Verdict};
use http::StatusCode;

use super::{
    repeated::RepeatedSums,
    verdicts::{COLUMNS, UNHANDLED, column},
};

/// Counts what one worker does under one configuration. Made by [`Meters`](super::Meters).
///
/// Counting takes no lock and allocates nothing, but where a stored answer is told of a request that says what it is worth. Each worker has its own, on cache lines of its
/// own, so workers do not slow each other down.
#[derive(Debug)]
#[repr(align(128))]
pub struct Meter {
    pub(super) labels: Arc<[String]>,
    pub(super) requests: Box<[RouteCounters]>,
    pub(super) repeated: Box<[Mutex<RepeatedSums>]>,
    pub(super) durations: [Histogram; COLUMNS],
    pub(super) refusals: Box<[AtomicU64]>,
    pub(super) unanswered: [AtomicU64; Verdict::UNANSWERED.len()],
    pub(super) exchanges: [AtomicU64; UpstreamExchange::WORDS.len()],
    pub(super) exchange_durations: Histogram,
    pub(super) connections: Level,
    pub(super) connections_refused: AtomicU64,
    pub(super) in_flight: Level,
    pub(super) upgraded: Level,
}

/// One route's requests, by verdict.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct RouteCounters(pub(super) [AtomicU64; COLUMNS]);

/// Something that comes and goes: how often it did either.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) came: AtomicU64,
    pub(super) went: AtomicU64,
}

impl Meter {
    pub(super) fn new(labels: Arc<[String]>) -> Self {
        Self {
            requests: labels.iter().map(|_| RouteCounters::default()).collect(),
            repeated: labels.iter().map(|_| Mutex::default()).collect(),
            labels,
            durations: std::array::from_fn(|_| Histogram::new(LATENCY_MICROS)),
            refusals: Code::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            unanswered: Default::default(),
            exchanges: Default::default(),
            exchange_durations: Histogram::new(LATENCY_MICROS),
            connections: Level::default(),
            connections_refused: AtomicU64::new(0),
            in_flight: Level::default(),
            upgraded: Level::default(),
        }
    }

    /// The routes it counts by.
    pub(crate) fn labels(&self) -> &Arc<[String]> {
        &self.labels
    }

    /// Counts a request the layer has answered, from its complete head to the head of its answer.
    pub fn record(&self, handled: &Handled, elapsed: Duration) {
        if let Verdict::Refused(code) = handled.verdict {
            count_code(&self.refusals, Code::ALL, code);
        } else if let Verdict::Unanswered(code) = handled.verdict {
            count_code(&self.unanswered, &Verdict::UNANSWERED, code);
        }
        if let (Some(worth), Some(sums)) = (handled.repeated, self.repeated.get(handled.route)) {
            sums.lock().unwrap_or_else(PoisonError::into_inner).count(worth);
        }
        self.count(handled.route, column(handled.verdict), elapsed);
    }

    /// Counts a request that was answered without the layer: it was not meant for this gateway, or
    /// it passed and the upstream failed.
    pub fn record_unhandled(&self, elapsed: Duration) {
        self.count(self.requests.len().saturating_sub(1), UNHANDLED, elapsed);
    }

    /// Counts a request to the upstream, from its sending to the head of its answer.
    pub fn record_exchange(&self, exchange: UpstreamExchange, elapsed: Duration) {
        self.exchanges[exchange.place()].fetch_add(1, Relaxed);
        self.exchange_durations.observe(micros(elapsed));
    }

    /// Counts a connection that was closed at once, because there were as many as allowed.
    pub fn record_refused_connection(&self) {
        self.connections_refused.fetch_add(1, Relaxed);
    }

    /// Counts a connection as open until the answer is dropped.
    #[must_use]
    pub fn connection(self: &Arc<Self>) -> PresenceGuard {
        PresenceGuard::new(self, |meter| &meter.connections)
    }

    /// Counts a request as in flight until the answer is dropped.
    #[must_use]
    pub fn request(self: &Arc<Self>) -> PresenceGuard {
        PresenceGuard::new(self, |meter| &meter.in_flight)
    }

    /// Counts a connection that went on in another protocol as open until the answer is dropped.
    #[must_use]
    pub fn upgraded(self: &Arc<Self>) -> PresenceGuard {
        PresenceGuard::new(self, |meter| &meter.upgraded)
    }

    fn count(&self, route: usize, column: usize, elapsed: Duration) {
        if let Some(row) = self.requests.get(route) {
            row.0[column].fetch_add(1, Relaxed);
        }
        self.durations[column].observe(micros(elapsed));
    }
}

/// Something that is counted as there until this is dropped.
#[derive(Debug)]
pub struct PresenceGuard {
    meter: Arc<Meter>,
    level: fn(&Meter) -> &Level,
}

impl PresenceGuard {
    fn new(meter: &Arc<Meter>, level: fn(&Meter) -> &Level) -> Self {
        level(meter).came.fetch_add(1, Relaxed);
        Self { meter: Arc::clone(meter), level }
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        (self.level)(&self.meter).went.fetch_add(1, Release);
    }
}

/// How a request to the upstream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamExchange {
    /// It was answered so.
    Answered(StatusCode),
    /// Nothing of it left this process.
    NothingSent,
    /// No complete head of an answer came back.
    Unanswered,
}

impl UpstreamExchange {
    pub(super) const WORDS: [&'static str; 7] =
        ["1xx", "2xx", "3xx", "4xx", "5xx", "nothing_sent", "unanswered"];

    fn place(self) -> usize {
        match self {
            Self::Answered(status) => match status.as_u16() {
                ..200 => 0,
                200..300 => 1,
                300..400 => 2,
                400..500 => 3,
                500.. => 4,
            },
            Self::NothingSent => 5,
            Self::Unanswered => 6,
        }
    }
}

fn count_code(counts: &[AtomicU64], codes: &[Code], code: Code) {
    if let Some(at) = codes.iter().position(|known| *known == code) {
        counts[at].fetch_add(1, Relaxed);
    }
}

fn micros(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
}
