//! We are the provider that the API under test calls, and count what it wants of us.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use serde_json::json;

use super::{
    Arrivals, EffectOracle, ListenerReply, ListeningTask, OracleFault, OracleLevel, WholeArrival,
    arrival::has_marker,
};

const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How we play the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpstreamConduct {
    /// From the effect to its answer.
    pub delay: Duration,
    /// How many of the next answers are not sent: the connection is closed after the effect.
    pub answers_dropped: u32,
    /// One answer in so many is not sent either: the second of two, the third of three. None if it is nothing.
    pub drops_one_in: Option<u32>,
}

/// Answers every POST with 201 and an `id`, and counts those that bring the marker.
///
/// It is idempotent itself: requests with one `Idempotency-Key` are one effect, and have one `id`.
#[derive(Debug)]
pub struct UpstreamDouble {
    listening: ListeningTask,
    ledger: Arc<DoubleLedger>,
}

#[derive(Debug)]
struct DoubleLedger {
    inner: Mutex<UpstreamEffects>,
}

#[derive(Debug)]
struct UpstreamEffects {
    conduct: UpstreamConduct,
    answers: u32,
    effects: Vec<UpstreamEffect>,
    bytes: usize,
    is_full: bool,
}

/// Something that the provider did.
#[derive(Debug)]
struct UpstreamEffect {
    key: Option<String>,
    request: Bytes,
}

impl UpstreamDouble {
    /// Listens at this address.
    pub async fn listen(address: SocketAddr, conduct: UpstreamConduct) -> io::Result<Self> {
        let effects =
            UpstreamEffects { conduct, answers: 0, effects: Vec::new(), bytes: 0, is_full: false };
        let ledger = Arc::new(DoubleLedger { inner: Mutex::new(effects) });
        let listening = ListeningTask::begin(address, ledger.clone()).await?;
        Ok(Self { listening, ledger })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Plays it differently from now on.
    pub fn set_conduct(&self, conduct: UpstreamConduct) {
        self.ledger.inner().conduct = conduct;
    }
}

impl EffectOracle for UpstreamDouble {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        let inner = self.ledger.inner();
        let found = inner.effects.iter().filter(|effect| has_marker(&effect.request, marker));
        let count = u64::try_from(found.count()).unwrap_or(u64::MAX);
        let too_many = || OracleFault::new("more was wanted of the upstream than can be kept");
        Box::pin(ready(if inner.is_full { Err(too_many()) } else { Ok(count) }))
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Received
    }

    fn describe(&self) -> String {
        let UpstreamConduct { delay, drops_one_in, .. } = self.ledger.inner().conduct;
        let mut text =
            format!("what is wanted of the upstream that we play at http://{}", self.address());
        if !delay.is_zero() {
            text.push_str(&format!(", which takes {} ms", delay.as_millis()));
        }
        if let Some(many) = drops_one_in {
            text.push_str(&format!(", and loses one answer in {many}"));
        }
        text
    }
}

impl DoubleLedger {
    fn inner(&self) -> MutexGuard<'_, UpstreamEffects> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UpstreamEffects {
    /// The number of the effect that a request has, or has had.
    fn act(&mut self, request: &WholeArrival) -> usize {
        let key = request.header("idempotency-key").map(str::to_owned);
        let is_known = |effect: &UpstreamEffect| key.is_some() && effect.key == key;
        if let Some(known) = self.effects.iter().position(is_known) {
            return known;
        }
        self.bytes += request.bytes.len();
        if self.bytes > KEPT_BYTES_MAX {
            self.is_full = true;
        } else {
            self.effects.push(UpstreamEffect { key, request: request.bytes.clone() });
        }
        self.effects.len().saturating_sub(1)
    }

    fn drops_answer(&mut self) -> bool {
        self.answers = self.answers.wrapping_add(1);
        let is_one_of_many =
            self.conduct.drops_one_in.is_some_and(|many| self.answers.is_multiple_of(many.max(1)));
        let left = self.conduct.answers_dropped.checked_sub(1);
        self.conduct.answers_dropped = left.unwrap_or_default();
        left.is_some() || is_one_of_many
    }
}

impl Arrivals for DoubleLedger {
    async fn arrive(&self, request: WholeArrival) -> Option<ListenerReply> {
        if request.method != "POST" {
            return Some(ListenerReply { status: 200, body: "{}".to_owned() });
        }
        let (number, delay, is_dropped) = {
            let mut inner = self.inner();
            (inner.act(&request), inner.conduct.delay, inner.drops_answer())
        };
        tokio::time::sleep(delay).await;
        let body = json!({ "id": format!("upstream-{}", number + 1), "status": "succeeded" });
        (!is_dropped).then(|| ListenerReply { status: 201, body: body.to_string() })
    }
}
