//! The API under test tells us what it did, by its webhooks.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use tokio::time::Instant;

use super::{
    Arrivals, EffectOracle, ListenerReply, ListeningTask, OracleFault, OracleLevel, WholeArrival,
    arrival::has_marker,
};

/// Most that is kept of what arrives.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;
const ARRIVALS_MAX: usize = 1_000_000;

/// Listens for webhooks, and counts those whose body has the marker in it: every one that arrives, also the same twice.
#[derive(Debug)]
pub struct WebhookSink {
    listening: ListeningTask,
    ledger: Arc<WebhookLedger>,
}

/// A webhook that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookArrival {
    /// When, since it is listened.
    pub at: Duration,
    /// Its body.
    pub body: Bytes,
}

#[derive(Debug)]
struct WebhookLedger {
    began: Instant,
    kept: Mutex<KeptWebhooks>,
}

#[derive(Debug, Default)]
struct KeptWebhooks {
    arrivals: Vec<WebhookArrival>,
    bytes: usize,
    is_full: bool,
}

impl WebhookSink {
    /// Listens at this address.
    pub async fn listen(address: SocketAddr) -> io::Result<Self> {
        let ledger = Arc::new(WebhookLedger { began: Instant::now(), kept: Mutex::default() });
        let listening = ListeningTask::begin(address, ledger.clone()).await?;
        Ok(Self { listening, ledger })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// What arrived with this marker, in order.
    pub fn arrivals(&self, marker: &str) -> Vec<WebhookArrival> {
        let kept = self.ledger.kept();
        let with_it = kept.arrivals.iter().filter(|arrival| has_marker(&arrival.body, marker));
        with_it.cloned().collect()
    }
}

impl EffectOracle for WebhookSink {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        let is_full = self.ledger.kept().is_full;
        let count = u64::try_from(self.arrivals(marker).len()).unwrap_or(u64::MAX);
        let too_many = || OracleFault::new("more webhooks arrived than can be kept");
        Box::pin(ready(if is_full { Err(too_many()) } else { Ok(count) }))
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Received
    }

    fn describe(&self) -> String {
        format!("webhooks that arrive at http://{}", self.address())
    }
}

impl WebhookLedger {
    fn kept(&self) -> MutexGuard<'_, KeptWebhooks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrivals for WebhookLedger {
    async fn arrive(&self, request: WholeArrival) -> Option<ListenerReply> {
        if request.method == "POST" {
            let mut kept = self.kept();
            kept.bytes += request.body.len();
            if kept.bytes > KEPT_BYTES_MAX || kept.arrivals.len() >= ARRIVALS_MAX {
                kept.is_full = true;
            } else {
                let at = self.began.elapsed();
                kept.arrivals.push(WebhookArrival { at, body: request.body });
            }
        }
        Some(ListenerReply { status: 200, body: "{}".to_owned() })
    }
}
