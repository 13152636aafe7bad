//! Pushes spans and metrics to a collector, in batches, without anybody waiting for it.
//!
//! - `collector` is who is told, over HTTP or gRPC;
//! - `spans` and `metrics` are what it is told, in the words of OTLP, which `protobuf` writes.

mod collector;
mod metrics;
mod protobuf;
mod spans;

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use hapax::wall_clock;
use hapax_core::retry::{Backoff, Failure, Jitter, Next, Schedule};
use hapax_gateway::{
    admin::MetricFamily,
    client::UpstreamClientError,
    telemetry::{FinishedSpan, LossCounter},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at},
};

use self::{
    collector::{Collector, OtlpSignal, PushError},
    protobuf::ProtoMessage,
};
use super::settings::OtlpSettings;

/// Most spans that wait to be sent.
pub(super) const SPANS_MAX: usize = 8 << 10;
/// Most spans that are sent together.
const BATCH_SPANS_MAX: usize = 512;
/// How long a span waits for others to go with.
const LINGER: Duration = Duration::from_secs(1);
/// How often a batch is tried before it is given up.
const ATTEMPTS_MAX: u32 = 5;
/// The least time between two warnings that a collector takes nothing.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Pushes to one collector.
pub(super) struct Exporter {
    settings: OtlpSettings,
    collector: Collector,
    finished: mpsc::Receiver<FinishedSpan>,
    losses: LossCounter,
}

impl Exporter {
    /// Will push these spans; those that the collector does not take are counted as lost.
    pub(super) fn new(
        settings: OtlpSettings,
        finished: mpsc::Receiver<FinishedSpan>,
        losses: LossCounter,
    ) -> Result<Self, UpstreamClientError> {
        let collector = Collector::new(&settings)?;
        Ok(Self { settings, collector, finished, losses })
    }

    /// How long it may take for its last words.
    pub(super) fn last_words(&self) -> Duration {
        self.settings.timeout + Duration::from_secs(1)
    }

    /// Pushes until told to stop, and then what is left, once.
    pub(super) async fn run(
        self,
        metrics: impl Fn() -> Vec<MetricFamily>,
        stop: watch::Receiver<bool>,
    ) {
        let Self { settings, collector, finished, losses } = self;
        let origin = TelemetrySource::new(&settings);
        let grumbles = Grumbles::default();
        let spans = push_spans((&collector, &origin, &grumbles), finished, losses, stop.clone());
        let metrics =
            push_metrics((&collector, &origin, &grumbles), metrics, settings.metrics_every, stop);
        tokio::join!(spans, metrics);
    }
}

/// Whose telemetry it is.
struct TelemetrySource {
    resource: Vec<(String, String)>,
    started_at: SystemTime,
}

impl TelemetrySource {
    fn new(settings: &OtlpSettings) -> Self {
        let mut resource = settings.resource.clone();
        let instance = format!("{:032x}", fastrand::u128(..));
        for (name, value) in [("service.version", VERSION), ("service.instance.id", &instance)] {
            if !resource.iter().any(|(said, _)| said == name) {
                resource.push((name.to_owned(), value.to_owned()));
            }
        }
        Self { resource, started_at: wall_clock() }
    }

    /// Writes a `Resource`.
    fn resource(&self, message: &mut ProtoMessage) {
        for (name, value) in &self.resource {
            message.message(1, |attribute| {
                attribute.text(1, name);
                attribute.message(2, |any| any.text(1, value));
            });
        }
    }

    /// Writes an `InstrumentationScope`.
    fn scope(message: &mut ProtoMessage) {
        message.text(1, "hapax");
        message.text(2, VERSION);
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

type Recipient<'a> = (&'a Collector, &'a TelemetrySource, &'a Grumbles);

async fn push_spans(
    (collector, origin, grumbles): Recipient<'_>,
    mut finished: mpsc::Receiver<FinishedSpan>,
    losses: LossCounter,
    mut stop: watch::Receiver<bool>,
) {
    let mut batch = Vec::new();
    loop {
        let stopped = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => true,
            () = gather(&mut finished, &mut batch) => finished.is_closed() && batch.is_empty(),
        };
        if stopped {
            finished.close();
            finished.recv_many(&mut batch, SPANS_MAX).await;
        }
        while !batch.is_empty() {
            let rest = batch.split_off(batch.len().min(BATCH_SPANS_MAX));
            let together = std::mem::replace(&mut batch, rest);
            let count = u64::try_from(together.len()).unwrap_or(u64::MAX);
            let message = spans::request(origin, &together);
            let pushed = persist(collector, OtlpSignal::Traces, &message, &mut stop).await;
            if let Err(error) = pushed {
                losses.add(count);
                grumbles.tell(&error, "spans are lost: the collector does not take them");
            }
        }
        if stopped {
            return;
        }
    }
}

/// Waits for a span, and a little for others to go with it.
async fn gather(finished: &mut mpsc::Receiver<FinishedSpan>, batch: &mut Vec<FinishedSpan>) {
    if finished.recv_many(batch, BATCH_SPANS_MAX).await == 0 {
        return;
    }
    let until = Instant::now() + LINGER;
    while batch.len() < BATCH_SPANS_MAX {
        let room = BATCH_SPANS_MAX - batch.len();
        match timeout_at(until, finished.recv_many(batch, room)).await {
            Ok(count) if count > 0 => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// Sends a message until it is taken, refused for good, or tried often enough; once, if it is time to stop.
async fn persist(
    collector: &Collector,
    signal: OtlpSignal,
    message: &[u8],
    stop: &mut watch::Receiver<bool>,
) -> Result<(), PushError> {
    let schedule = schedule();
    let (mut attempt, mut previous) = (1, Duration::ZERO);
    loop {
        let error = match collector.push(signal, message).await {
            Ok(()) => return Ok(()),
            Err(error) if !error.may_pass() => return Err(error),
            Err(error) => error,
        };
        let failure = Failure { attempt, previous, told: None, left: Duration::MAX };
        let Next::Wait(pause) = schedule.next(failure, fastrand::u64(..)) else {
            return Err(error);
        };
        if timeout(pause, stop.wait_for(|stop| *stop)).await.is_ok() {
            return Err(error);
        }
        (attempt, previous) = (attempt + 1, pause);
    }
}

fn schedule() -> Schedule {
    let backoff = Backoff {
        jitter: Jitter::Equal,
        base: Duration::from_secs(1),
        cap: Duration::from_secs(16),
    };
    Schedule::new(backoff, ATTEMPTS_MAX).unwrap_or_default()
}

async fn push_metrics(
    (collector, origin, grumbles): Recipient<'_>,
    metrics: impl Fn() -> Vec<MetricFamily>,
    every: Duration,
    mut stop: watch::Receiver<bool>,
) {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let stopped = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => true,
            _ = ticks.tick() => false,
        };
        // Counts are whole every time, so that what is not taken now is told by the next.
        let message = metrics::request(origin, &metrics());
        if let Err(error) = collector.push(OtlpSignal::Metrics, &message).await {
            grumbles.tell(&error, "the collector does not take metrics");
        }
        if stopped {
            return;
        }
    }
}

/// Warns, but not all the time.
#[derive(Default)]
struct Grumbles {
    told_at: Mutex<Option<Instant>>,
}

impl Grumbles {
    fn tell(&self, error: &PushError, what: &str) {
        let (now, mut told_at) =
            (Instant::now(), self.told_at.lock().unwrap_or_else(PoisonError::into_inner));
        let lately = told_at.is_some_and(|at| now.duration_since(at) < WARN_EVERY);
        if !lately {
            *told_at = Some(now);
            tracing::warn!(error = %hapax_core::OneLine::of(error), "{what}");
        }
    }
}

/// An instant as OTLP writes it.
fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
