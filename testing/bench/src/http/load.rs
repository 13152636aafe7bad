//! The load: many connections, in a closed loop or by a timetable.

use std::{sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    client::{KeepAliveClient, WrongAnswer},
    error::HttpError,
};
use crate::{
    BenchError,
    load::{CallersStop, Numbers, float, histogram},
    timetable::Timetable,
};

/// How long the last answers may take once no more requests are made.
const PATIENCE: Duration = Duration::from_secs(30);

/// Which keys the requests carry.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KeyChoice {
    /// A new one each time.
    Fresh,
    /// The same few, again and again.
    Repeated(u64),
}

/// When each connection makes its next request.
#[derive(Debug, Clone)]
pub(crate) enum RequestPace {
    /// When the last one is answered.
    Closed(CallersStop),
    /// When the timetable says so, or as soon afterwards as a connection is free.
    Open(Arc<Timetable>),
}

/// Connections, and the numbers of their requests.
#[derive(Debug)]
pub(crate) struct Traffic {
    clients: Vec<KeepAliveClient>,
    numbers: Arc<Numbers>,
    pub(super) keys: KeyChoice,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct HttpLoad {
    /// Requests answered as they should be.
    pub(crate) requests: u64,
    elapsed: Duration,
    latencies: Histogram<u64>,
    /// Why a connection stopped early.
    pub(crate) failure: Option<WrongAnswer>,
}

impl HttpLoad {
    pub(crate) fn per_second(&self) -> f64 {
        float(self.requests) / self.elapsed.as_secs_f64()
    }

    /// The latency that this share of the requests did not exceed, in milliseconds.
    pub(crate) fn latency_ms(&self, quantile: f64) -> f64 {
        float(self.latencies.value_at_quantile(quantile)) / 1000.0
    }
}

impl Traffic {
    /// Opens so many connections.
    pub(crate) async fn connect(
        port: u16,
        connections: usize,
        keys: KeyChoice,
    ) -> Result<Self, HttpError> {
        let mut clients = Vec::with_capacity(connections);
        for _ in 0..connections {
            clients.push(KeepAliveClient::connect(port).await.map_err(HttpError::Connect)?);
        }
        Ok(Self { clients, numbers: Arc::default(), keys })
    }

    /// Lets all connections make requests until the pace says stop. The connections that served
    /// well are kept for the next time.
    pub(crate) async fn drive(&mut self, pace: &RequestPace, duration: Duration) -> HttpLoad {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for client in self.clients.drain(..) {
            let (numbers, keys) = (Arc::clone(&self.numbers), self.keys);
            tasks.spawn(call(client, numbers, keys, pace.clone(), began));
        }
        let mut load =
            HttpLoad { requests: 0, elapsed: duration, latencies: histogram(), failure: None };
        let mut called = Vec::with_capacity(tasks.len());
        let all = async {
            while let Some(ended) = tasks.join_next().await {
                called.push(ended);
            }
        };
        if timeout(duration + PATIENCE, all).await.is_err() {
            load.failure = Some(WrongAnswer::Silent);
        }
        load.elapsed = began.elapsed();
        for ended in called {
            let failed = match ended {
                Ok((client, micros, outcome)) => {
                    load.requests += u64::try_from(micros.len()).unwrap_or(u64::MAX);
                    for latency in micros {
                        load.latencies.saturating_record(u64::from(latency));
                    }
                    self.clients.push(client);
                    outcome.err()
                }
                Err(error) => Some(error.into()),
            };
            load.failure = load.failure.or(failed);
        }
        load
    }

    /// What makes the figures of these loads worthless: an answer that is none, or another number of
    /// effects, as the upstream on this port counts them, than of keys.
    pub(crate) async fn wrong<'a>(
        &self,
        upstream: u16,
        loads: impl Iterator<Item = &'a HttpLoad> + Clone,
    ) -> Result<Option<String>, BenchError> {
        if let Some(failure) = loads.clone().find_map(|load| load.failure.as_ref()) {
            return Ok(Some(crate::sentence(failure)));
        }
        let keys = match self.keys {
            KeyChoice::Fresh => loads.map(|load| load.requests).sum(),
            KeyChoice::Repeated(keys) => keys,
        };
        let mut client = KeepAliveClient::connect(upstream).await.map_err(HttpError::Connect)?;
        Ok(client.totals().await.map_err(HttpError::Ledger)?.wrong(keys))
    }
}

/// One connection: the latency of each request in microseconds, and why it stopped, if it had to.
async fn call(
    mut client: KeepAliveClient,
    numbers: Arc<Numbers>,
    keys: KeyChoice,
    pace: RequestPace,
    began: Instant,
) -> (KeepAliveClient, Vec<u32>, Result<(), WrongAnswer>) {
    let mut micros = Vec::new();
    loop {
        let due = match &pace {
            RequestPace::Closed(_) => Some(Instant::now()),
            RequestPace::Open(timetable) => timetable.next().await,
        };
        let number = match &pace {
            RequestPace::Closed(CallersStop::After(duration)) if began.elapsed() >= *duration => {
                None
            }
            RequestPace::Closed(CallersStop::After(_)) | RequestPace::Open(_) => {
                Some(numbers.next())
            }
            RequestPace::Closed(CallersStop::Before(end)) => numbers.next_below(*end),
        };
        let Some((due, number)) = due.zip(number) else { return (client, micros, Ok(())) };
        let number = match keys {
            KeyChoice::Fresh => number,
            KeyChoice::Repeated(count) => number % count.max(1),
        };
        if let Err(wrong) = client.pay(number).await {
            return (client, micros, Err(wrong));
        }
        micros.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
}
