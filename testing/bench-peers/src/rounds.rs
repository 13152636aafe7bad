//! How fast each way is: all in turn, round after round.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    args::Plan,
    effect::Totals,
    error::{BenchError, sentence},
    load::{Caller, Keys, Load, Until, drive, float, replayed},
    process::family_cpu,
    stage::{Ground, Purpose, Stage},
    ways::Way,
};

/// One measurement of one way.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) new: Figures,
    /// `None` for who remembers nothing.
    pub(crate) replay: Option<Figures>,
    /// What makes the figures worthless.
    pub(crate) invalid: Option<String>,
}

/// What one kind of request costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// CPU time of the server's process for each request, in microseconds.
    pub(crate) server_us: f64,
    /// CPU time of the database for each request, in microseconds; zero where there is none.
    pub(crate) store_us: f64,
}

impl Figures {
    /// All CPU time that a request costs beside the load and the upstream.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.server_us + self.store_us
    }

    fn json(&self) -> Value {
        json!({
            "requests_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "server_cpu_us_per_request": self.server_us,
            "store_cpu_us_per_request": self.store_us,
        })
    }
}

/// The measurements of one way with one number of connections, in the order of the rounds.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) way: Way,
    pub(crate) connections: usize,
    pub(crate) samples: Vec<Sample>,
}

impl Row {
    pub(crate) fn json(&self) -> Value {
        let samples = self.samples.iter().map(|sample| {
            json!({
                "new": sample.new.json(),
                "replay": sample.replay.as_ref().map(Figures::json),
                "invalid": sample.invalid,
            })
        });
        json!({
            "way": self.way.label(),
            "connections": self.connections,
            "samples": samples.collect::<Vec<_>>(),
        })
    }
}

/// Measures all ways in turn, for each number of connections.
pub(crate) async fn run(
    plan: &Plan,
    ground: &Ground,
    mut progress: impl FnMut(String),
) -> Result<Vec<Row>, BenchError> {
    let pairs =
        plan.connections.iter().flat_map(|count| plan.ways.iter().map(|way| (*count, *way)));
    let mut rows: Vec<Row> =
        pairs.map(|(connections, way)| Row { way, connections, samples: Vec::new() }).collect();
    let count = rows.len();
    for round in 0..plan.rounds {
        for step in 0..count {
            // Who goes first changes, so that nobody always finds the machine as the same other left it.
            let at = (step + usize::try_from(round).unwrap_or(0)) % count;
            let Row { way, connections, .. } = rows[at];
            progress(format!("round {}: {}, {connections} connections", round + 1, way.label()));
            let sample = measure(ground, way, connections, plan.duration).await?;
            rows[at].samples.push(sample);
        }
    }
    Ok(rows)
}

async fn measure(
    ground: &Ground,
    way: Way,
    connections: usize,
    duration: Duration,
) -> Result<Sample, BenchError> {
    let stage = ground.stage(way, Purpose::Measure).await?;
    let mut trial =
        Trial { callers: connect(&stage, connections).await?, stage: &stage, failure: None };
    let warm_up = Until::Elapsed(duration / 6);
    let repeated = Keys::Replayed(replayed(connections));
    trial.drive(Keys::New, Until::Requests(replayed(connections))).await;
    trial.drive(Keys::New, warm_up).await;
    let new = trial.timed(Keys::New, duration).await?;
    let mut replay = None;
    if way.protects() {
        trial.drive(repeated, warm_up).await;
        replay = Some(trial.timed(repeated, duration).await?);
    }
    let invalid = trial.wrong().await?;
    drop(trial);
    stage.end().await?;
    Ok(Sample { new, replay, invalid })
}

async fn connect(stage: &Stage<'_>, connections: usize) -> Result<Vec<Caller>, BenchError> {
    let mut callers = Vec::with_capacity(connections);
    for number in 0..connections {
        callers.push(Caller::new(stage.client(0).await?, number));
    }
    Ok(callers)
}

struct Trial<'a> {
    callers: Vec<Caller>,
    stage: &'a Stage<'a>,
    failure: Option<String>,
}

impl Trial<'_> {
    async fn drive(&mut self, keys: Keys, until: Until) -> Load {
        let load = drive(&mut self.callers, keys, until).await;
        if let Some(failure) = &load.failure {
            self.failure.get_or_insert_with(|| sentence(failure));
        }
        load
    }

    async fn timed(&mut self, keys: Keys, duration: Duration) -> Result<Figures, BenchError> {
        let before = self.used()?;
        let load = self.drive(keys, Until::Elapsed(duration)).await;
        let after = self.used()?;
        let each = |before: Duration, after: Duration| {
            let used = after.saturating_sub(before).as_secs_f64() * 1e6;
            used / float(load.requests.max(1))
        };
        Ok(Figures {
            per_second: load.per_second(),
            p50_ms: load.latency_ms(50),
            p99_ms: load.latency_ms(99),
            server_us: each(before.0, after.0),
            store_us: each(before.1, after.1),
        })
    }

    /// CPU time the server and its store have used.
    fn used(&self) -> Result<(Duration, Duration), BenchError> {
        let store = self.stage.store_pid().map(family_cpu).transpose()?;
        Ok((family_cpu(self.stage.server(0).pid())?, store.unwrap_or_default()))
    }

    /// An answer that was not the handler's first, or a ledger that does not agree with the answers.
    async fn wrong(&self) -> Result<Option<String>, BenchError> {
        if let Some(failure) = &self.failure {
            return Ok(Some(failure.clone()));
        }
        let told = self.stage.ledger().await?;
        let Some(totals) = Totals::read(&told) else {
            return Ok(Some("the handler did not tell what it did".to_owned()));
        };
        Ok(totals.wrong(self.callers.iter().map(Caller::used).sum()))
    }
}

#[cfg(test)]
impl Figures {
    /// So many requests in a second, at no cost.
    pub(crate) fn at(per_second: f64) -> Self {
        Self { per_second, p50_ms: 0.0, p99_ms: 0.0, server_us: 0.0, store_us: 0.0 }
    }
}
