//! The load: many connections, each asking again when it is answered.

use std::time::Duration;

use tokio::{task::JoinSet, time::Instant};

use crate::{
    effect,
    wire::{Client, Wrong},
};

/// Keys that are replayed, over all connections.
const REPLAYED_KEYS: u64 = 1024;

/// A connection of the load, with keys that nobody else uses.
#[derive(Debug)]
pub(crate) struct Caller {
    client: Client,
    number: usize,
    /// How many keys it has used.
    used: u64,
}

/// Which keys the requests carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A new one each time.
    New,
    /// The first few of each connection, again and again.
    Replayed(u64),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Load {
    /// Requests answered as they should be.
    pub(crate) requests: u64,
    elapsed: Duration,
    /// In microseconds, in order.
    latencies: Vec<u64>,
    /// Why a connection stopped early.
    pub(crate) failure: Option<Wrong>,
}

impl Load {
    pub(crate) fn per_second(&self) -> f64 {
        float(self.requests) / self.elapsed.as_secs_f64()
    }

    /// The latency that this percentage of the requests did not exceed, in milliseconds.
    pub(crate) fn latency_ms(&self, percent: usize) -> f64 {
        let at = self.latencies.len().saturating_sub(1) * percent / 100;
        float(self.latencies.get(at).copied().unwrap_or(0)) / 1000.0
    }
}

impl Caller {
    pub(crate) fn new(client: Client, number: usize) -> Self {
        Self { client, number, used: 0 }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    async fn call(&mut self, keys: Keys, turn: u64) -> Result<(), Wrong> {
        let key_number = match keys {
            Keys::New => self.used,
            Keys::Replayed(count) => turn % count.max(1),
        };
        let (key, body) = request(self.number, key_number);
        let (status, answer) = self.client.pay_raw(&key, &body).await?;
        let first = answer.starts_with(b"run=1;") && answer.len() == effect::ANSWER_BYTES;
        if status != 201 || !first {
            let text = String::from_utf8_lossy(answer).chars().take(80).collect();
            return Err(Wrong::Refused { status, text });
        }
        self.used += u64::from(keys == Keys::New);
        Ok(())
    }
}

/// The keys of each connection that are replayed when there are this many.
pub(crate) fn replayed(connections: usize) -> u64 {
    REPLAYED_KEYS.div_ceil(u64::try_from(connections).unwrap_or(1).max(1))
}

/// A key that no other connection uses, and a body of about 250 bytes that belongs to it.
fn request(connection: usize, number: u64) -> (String, String) {
    let key = format!("{connection:08x}-{number:016x}");
    let note = "x".repeat(150);
    let body = format!(
        r#"{{"amount":1250,"currency":"EUR","reference":"{key}","customer":"4711","note":"{note}"}}"#
    );
    (key, body)
}

/// When a connection stops.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    Elapsed(Duration),
    Requests(u64),
}

/// Lets all connections ask until told to stop. Those that were answered well are given back.
pub(crate) async fn drive(callers: &mut Vec<Caller>, keys: Keys, until: Until) -> Load {
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for mut caller in callers.drain(..) {
        tasks.spawn(async move {
            let mut micros = Vec::new();
            let outcome = ask(&mut caller, keys, until, began, &mut micros).await;
            (caller, micros, outcome)
        });
    }
    let mut load =
        Load { requests: 0, elapsed: Duration::ZERO, latencies: Vec::new(), failure: None };
    while let Some(ended) = tasks.join_next().await {
        let failed = match ended {
            Ok((caller, micros, outcome)) => {
                load.requests += u64::try_from(micros.len()).unwrap_or(u64::MAX);
                load.latencies.extend(micros);
                callers.push(caller);
                outcome.err()
            }
            Err(error) => Some(error.into()),
        };
        load.failure = load.failure.or(failed);
    }
    load.elapsed = began.elapsed();
    load.latencies.sort_unstable();
    load
}

async fn ask(
    caller: &mut Caller,
    keys: Keys,
    until: Until,
    began: Instant,
    micros: &mut Vec<u64>,
) -> Result<(), Wrong> {
    for turn in 0.. {
        let over = match until {
            Until::Elapsed(duration) => began.elapsed() >= duration,
            Until::Requests(count) => turn >= count,
        };
        if over {
            break;
        }
        let asked = Instant::now();
        caller.call(keys, turn).await?;
        micros.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}
