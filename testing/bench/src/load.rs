//! Callers: in a closed loop, or by a timetable.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::Instant};

use super::{arms::Arm, error::BenchError, timetable::Timetable};

/// When each caller makes its next request.
#[derive(Debug, Clone)]
pub(super) enum CallerPace {
    /// When the last one is answered.
    Closed(CallersStop),
    /// When the timetable says so, or as soon afterwards as a caller is free.
    Open(Arc<Timetable>),
}

/// When callers stop.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallersStop {
    /// After this long.
    After(Duration),
    /// When the next number would be this one.
    Before(u64),
}

/// What the callers did.
#[derive(Debug)]
pub(super) struct CallerLoad {
    /// Requests acknowledged.
    pub(super) requests: u64,
    pub(super) elapsed: Duration,
    latencies: Histogram<u64>,
    /// Why a caller stopped early.
    pub(super) failure: Option<BenchError>,
}

impl CallerLoad {
    pub(super) fn per_second(&self) -> f64 {
        float(self.requests) / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of the requests did not exceed, in milliseconds.
    pub(super) fn latency_ms(&self, quantile: f64) -> f64 {
        float(self.latencies.value_at_quantile(quantile)) / 1000.0
    }
}

/// Numbers that are given out once.
#[derive(Debug, Default)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    /// Those from this one on.
    pub(super) fn from(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }

    /// The number that is given out next.
    pub(super) fn upcoming(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed)
    }

    /// The next number below `end`; none is used up when there is none.
    pub(super) fn next_below(&self, end: u64) -> Option<u64> {
        let next = |number| (number < end).then_some(number + 1);
        self.0.fetch_update(Relaxed, Relaxed, next).ok()
    }
}

/// Lets `callers` make requests at the same time until the pace says stop.
pub(super) async fn drive<A: Arm>(
    arm: &Arc<A>,
    numbers: &Arc<Numbers>,
    callers: usize,
    pace: CallerPace,
) -> Result<CallerLoad, BenchError> {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(call(Arc::clone(arm), Arc::clone(numbers), began, pace.clone()));
    }
    let (mut requests, mut failure) = (0, None);
    let mut latencies = histogram();
    let mut called = Vec::with_capacity(callers);
    while let Some(ended) = tasks.join_next().await {
        called.push(ended?);
    }
    let elapsed = began.elapsed();
    for (micros, outcome) in called {
        requests += u64::try_from(micros.len()).unwrap_or(u64::MAX);
        for latency in micros {
            latencies.saturating_record(u64::from(latency));
        }
        failure = failure.or_else(|| outcome.err());
    }
    Ok(CallerLoad { requests, elapsed, latencies, failure })
}

/// One caller: the latency of each request in microseconds, and why it stopped, if it had to.
async fn call<A: Arm>(
    arm: Arc<A>,
    numbers: Arc<Numbers>,
    began: Instant,
    pace: CallerPace,
) -> (Vec<u32>, Result<(), BenchError>) {
    let mut micros = Vec::new();
    loop {
        let (asked, number) = match &pace {
            CallerPace::Open(timetable) => (timetable.next().await, Some(numbers.next())),
            CallerPace::Closed(stop) => {
                let now = Instant::now();
                let number = match *stop {
                    CallersStop::After(duration) => {
                        (now - began < duration).then(|| numbers.next())
                    }
                    CallersStop::Before(end) => numbers.next_below(end),
                };
                (Some(now), number)
            }
        };
        let Some((asked, number)) = asked.zip(number) else { return (micros, Ok(())) };
        if let Err(error) = arm.request(number).await {
            return (micros, Err(error));
        }
        micros.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
}

/// From one microsecond to a minute; what is slower counts as a minute.
#[expect(clippy::expect_used, reason = "the bounds are constants that the histogram accepts")]
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("bounds in order")
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(super) fn float(count: u64) -> f64 {
    count as f64
}
