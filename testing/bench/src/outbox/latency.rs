//! Events written at a fixed rate, and how long each takes from its commit to the sink.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_postgres::Config;

use super::{
    OutboxPlan,
    event::{ArrivalChecker, index, payload},
    plain::{self, Plain},
    rounds::Rounds,
    ways::{ReaderWay, RunningReader},
};
use crate::{
    arms::postgres_baseline::connect,
    error::BenchError,
    figures::{BoundedFigure, Columns, MeasuredSpread, SampleColumn},
    load::{Numbers, float, histogram},
    process,
    report::ReportSection,
    server::BenchServer,
    timetable::Timetable,
    turns::{Measurement, NamedWay},
};

/// Connections that write.
const WRITERS: usize = 16;
/// How long the last event may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LatencyWay {
    /// The relay, with writers it knows nothing of.
    Relay,
    /// A loop that looks every five milliseconds.
    Delete,
    /// The same; every insert tells whoever listens, as a trigger does that is there for it.
    Notify,
}

impl LatencyWay {
    const ALL: [Self; 3] = [Self::Relay, Self::Delete, Self::Notify];

    fn reader(self) -> ReaderWay {
        match self {
            Self::Relay => ReaderWay::Relay,
            Self::Delete | Self::Notify => ReaderWay::Plain(Plain::Delete),
        }
    }

    async fn prepare(self, config: &Config) -> Result<(), BenchError> {
        match self {
            Self::Notify => plain::prepare(config, Plain::Delete, true).await,
            Self::Relay | Self::Delete => self.reader().prepare(config).await,
        }
    }

    fn statement(self) -> &'static str {
        match self {
            Self::Relay => "SELECT hapax.emit('orders', $1, $2::bytea)",
            Self::Delete | Self::Notify => plain::INSERT,
        }
    }
}

impl NamedWay for LatencyWay {
    fn label(self) -> &'static str {
        match self {
            Self::Relay => "hapax relay",
            Self::Delete => "SKIP LOCKED, delete, looks every 5 ms",
            Self::Notify => "the same, NOTIFY trigger",
        }
    }
}

struct Delays {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    /// From when an event was due to when its commit was known.
    commit_p99_ms: f64,
    cpu_us: f64,
    server_cpu_us: Option<f64>,
    invalid: Option<String>,
}

impl Measurement for Delays {
    fn json(&self) -> Value {
        json!({
            "events_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p999_ms": self.p999_ms,
            "commit_p99_ms": self.commit_p99_ms,
            "cpu_us_per_event": self.cpu_us,
            "server_cpu_us_per_event": self.server_cpu_us,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

pub(super) fn steps(plan: &OutboxPlan) -> u64 {
    u64::from(plan.rounds) * LatencyWay::ALL.len() as u64
}

pub(super) fn run(plan: &OutboxPlan, rounds: Rounds<'_>) -> Result<ReportSection, BenchError> {
    let what = format!("{} events/s", plan.rate);
    let measure = async |way, config| take(plan, rounds.server, way, config).await;
    let turns = rounds.take(&what, &LatencyWay::ALL, measure)?;
    let title = format!("From commit to sink, at {} events/s", plan.rate);
    let of = |measure: fn(&Delays) -> f64| {
        MeasuredSpread::of(turns.of(LatencyWay::Relay).iter().map(measure))
    };
    let claims = [
        BoundedFigure::at_most("relay, p50", of(|delays| delays.p50_ms), " ms", 5.0),
        BoundedFigure::at_most("relay, p99", of(|delays| delays.p99_ms), " ms", 50.0),
    ];
    Ok(turns.section(title, COLUMNS, claims))
}

async fn take(
    plan: &OutboxPlan,
    server: &BenchServer,
    way: LatencyWay,
    config: Config,
) -> Result<Delays, BenchError> {
    way.prepare(&config).await?;
    let places = float(u64::from(plan.rate)) * plan.duration.as_secs_f64();
    let began = Instant::now();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
    let checker = Arc::new(ArrivalChecker::timed(places as u64 + 1, began));
    let reading = way.reader().start(&config, &checker).await?;
    let server_cpu = || server.pid().map(process::family_cpu).transpose();
    let (cpu_before, server_before) = (process::own_cpu()?, server_cpu()?);
    let written = write(plan, &config, way, began).await?;
    let events = written.iter().map(Vec::len).sum::<usize>() as u64;
    let all = async {
        while checker.taken() < events {
            sleep(Duration::from_millis(1)).await;
        }
    };
    // What did not come by then is lost, as far as anybody can tell.
    let _ = timeout(PATIENCE, all).await;
    let (cpu, server_after) = (process::own_cpu()? - cpu_before, server_cpu()?);
    RunningReader::stop(reading).await?;
    let each = |used: Duration| used.as_secs_f64() * 1e6 / float(events.max(1));
    let invalid = checker.verdict(events);
    Ok(Delays {
        cpu_us: each(cpu),
        server_cpu_us: server_after.zip(server_before).map(|(after, before)| each(after - before)),
        invalid,
        ..delays(plan, &written, &checker.times())
    })
}

/// One event: its number, when it was due, and when its commit was known.
struct WrittenEvent {
    number: u64,
    due: Duration,
    known: Duration,
}

/// Writes events when they are due, whatever became of those before.
async fn write(
    plan: &OutboxPlan,
    config: &Config,
    way: LatencyWay,
    began: Instant,
) -> Result<Vec<Vec<WrittenEvent>>, BenchError> {
    let mut clients = Vec::new();
    for _ in 0..WRITERS {
        let client = connect(config).await?;
        let statement = client.prepare(way.statement()).await?;
        clients.push((client, statement));
    }
    let timetable = Timetable::start(f64::from(plan.rate), plan.duration);
    let numbers = Arc::new(Numbers::default());
    let mut tasks = JoinSet::new();
    for (client, statement) in clients {
        let (timetable, numbers) = (Arc::clone(&timetable), Arc::clone(&numbers));
        tasks.spawn(async move {
            let mut written = Vec::new();
            while let Some(due) = timetable.next().await {
                let number = numbers.next();
                let (key, payload) = (number.to_string(), payload(number, 0));
                client.execute(&statement, &[&key, &payload]).await?;
                written.push(WrittenEvent { number, due: due - began, known: began.elapsed() });
            }
            Ok::<_, BenchError>(written)
        });
    }
    let mut written = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        written.push(ended??);
    }
    Ok(written)
}

fn delays(plan: &OutboxPlan, written: &[Vec<WrittenEvent>], times: &[u64]) -> Delays {
    let (mut delays, mut commits) = (histogram(), histogram());
    let mut events = 0;
    for WrittenEvent { number, due, known } in written.iter().flatten() {
        let came = Duration::from_nanos(times.get(index(*number)).copied().unwrap_or(0));
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
        // A sink may have it before the writer hears of its commit.
        delays.saturating_record(micros(came.saturating_sub(*known)));
        commits.saturating_record(micros(known.saturating_sub(*due)));
        events += 1;
    }
    let ms = |micros: u64| float(micros) / 1000.0;
    Delays {
        per_second: float(events) / plan.duration.as_secs_f64(),
        p50_ms: ms(delays.value_at_quantile(0.5)),
        p99_ms: ms(delays.value_at_quantile(0.99)),
        p999_ms: ms(delays.value_at_quantile(0.999)),
        commit_p99_ms: ms(commits.value_at_quantile(0.99)),
        cpu_us: 0.0,
        server_cpu_us: None,
        invalid: None,
    }
}

const COLUMNS: &Columns<Delays> = &[
    ("events/s", SampleColumn::Median(|delays| Some(delays.per_second))),
    ("p50 ms", SampleColumn::Median(|delays| Some(delays.p50_ms))),
    ("p99 ms", SampleColumn::Median(|delays| Some(delays.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|delays| Some(delays.p999_ms))),
    ("commit p99 ms", SampleColumn::Median(|delays| Some(delays.commit_p99_ms))),
    ("CPU us", SampleColumn::Median(|delays| Some(delays.cpu_us))),
    ("server CPU us", SampleColumn::Median(|delays| delays.server_cpu_us)),
];
