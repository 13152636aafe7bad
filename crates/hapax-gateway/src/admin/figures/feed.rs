//! Samples at intervals, and tells everybody who listens.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};
use hapax_core::Timestamp;
use hapax_engine::wall_clock;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

use super::{
    documents::{DoubtsDocument, FiguresDocument, RelayDocument, RouteDocument},
    history::{FigureHistory, SAMPLE_EVERY},
    sample::{CountedRequests, all_routes, by_word},
};
use crate::admin::{
    AdminState,
    access::{SessionId, SessionRegistry},
    metrics::{MeterTotals, RelayFigures, RepeatedSums},
    problem::AdminProblem,
    quarantine::documents::QuarantineDocument,
};

/// How often listeners are told.
const TELL_EVERY: Duration = Duration::from_secs(2);
/// How long a stream is silent at most.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
/// Most streams at one time.
const STREAMS_MAX: usize = 32;

/// What streams are told last.
#[derive(Debug, Clone, Default)]
enum Tidings {
    #[default]
    Nothing,
    Figures(Bytes),
    /// The gateway was told to stop.
    End,
}

/// The figures of one gateway. Clones share them.
#[derive(Debug, Clone)]
pub(in crate::admin) struct FigureFeed(Arc<FeedState>);

#[derive(Debug)]
struct FeedState {
    began: Instant,
    history: Mutex<FigureHistory>,
    tidings: watch::Sender<Tidings>,
    streams: AtomicUsize,
    opened: Notify,
}

impl Default for FigureFeed {
    fn default() -> Self {
        Self(Arc::new(FeedState {
            began: Instant::now(),
            history: Mutex::default(),
            tidings: watch::Sender::default(),
            streams: AtomicUsize::new(0),
            opened: Notify::new(),
        }))
    }
}

impl FigureFeed {
    pub(super) fn with_history<T>(&self, work: impl FnOnce(&mut FigureHistory) -> T) -> T {
        work(&mut self.0.history.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Samples for as long as the gateway is not told to stop. While nobody listens, that is all it
    /// does.
    pub(in crate::admin) async fn run(self, state: AdminState) {
        let mut before = CountedRequests::now(&state.engine, &state.meters);
        loop {
            let sample_at = before.at() + SAMPLE_EVERY;
            let is_heard = self.0.streams.load(Relaxed) > 0;
            let tell_at = if is_heard { Instant::now() + TELL_EVERY } else { sample_at };
            tokio::select! {
                () = sleep_until(tell_at.min(sample_at)) => {}
                () = self.0.opened.notified() => {}
            }
            if state.draining.load(Relaxed) {
                self.0.tidings.send_replace(Tidings::End);
                return;
            }
            let at = Timestamp::from(wall_clock()).to_string();
            self.with_history(|history| history.note(&at, state.engine.stats()));
            if Instant::now() >= sample_at {
                let now = CountedRequests::now(&state.engine, &state.meters);
                let sample = now.since(&before, at);
                self.with_history(|history| history.keep(sample));
                before = now;
            }
            if self.0.streams.load(Relaxed) > 0 {
                self.0.tidings.send_replace(Tidings::Figures(event(&figures(&state))));
            }
        }
    }

    /// A stream of server-sent events, if there is room for one more.
    pub(super) fn open(
        &self,
        sessions: SessionRegistry,
        session: Option<SessionId>,
    ) -> Result<impl Stream<Item = Result<Bytes, Infallible>> + use<>, AdminProblem> {
        let tidings = self.0.tidings.subscribe();
        if matches!(*tidings.borrow(), Tidings::End) {
            return Err(AdminProblem::draining());
        }
        let room = |open: usize| (open < STREAMS_MAX).then_some(open + 1);
        if self.0.streams.fetch_update(Relaxed, Relaxed, room).is_err() {
            return Err(AdminProblem::too_many_streams(STREAMS_MAX));
        }
        let listener = FeedListener { feed: self.clone(), tidings, sessions, session };
        self.0.opened.notify_one();
        Ok(stream::unfold(Some(listener), async |listener| {
            let mut listener = listener?;
            Some(match listener.next().await {
                Some(bytes) => (Ok(bytes), Some(listener)),
                None => (Ok(Bytes::from_static(b"event: end\ndata: {}\n\n")), None),
            })
        }))
    }
}

/// One stream, counted until it is dropped.
struct FeedListener {
    feed: FigureFeed,
    tidings: watch::Receiver<Tidings>,
    sessions: SessionRegistry,
    session: Option<SessionId>,
}

impl FeedListener {
    /// What it is told next; nothing when it is over. One that is slow misses what is outdated.
    async fn next(&mut self) -> Option<Bytes> {
        let told = timeout(HEARTBEAT_EVERY, self.tidings.changed()).await;
        if self.session.as_ref().is_some_and(|id| self.sessions.holder(id).is_none()) {
            return None;
        }
        match told {
            Err(_) => Some(Bytes::from_static(b": still here\n\n")),
            Ok(Err(_)) => None,
            Ok(Ok(())) => match self.tidings.borrow_and_update().clone() {
                Tidings::Figures(event) => Some(event),
                Tidings::Nothing | Tidings::End => None,
            },
        }
    }
}

impl Drop for FeedListener {
    fn drop(&mut self) {
        self.feed.0.streams.fetch_sub(1, Relaxed);
    }
}

/// What is counted now.
pub(super) fn figures(state: &AdminState) -> FiguresDocument {
    let totals = state.meters.totals();
    let routes = totals
        .requests
        .iter()
        .map(|(route, counts)| RouteDocument { route: route.clone(), verdicts: by_word(counts) });
    let feed = &state.feed;
    FiguresDocument {
        at: Timestamp::from(wall_clock()).to_string(),
        uptime_seconds: feed.0.began.elapsed().as_secs(),
        draining: state.draining.load(Relaxed),
        in_flight: totals.in_flight.here(),
        connections: totals.connections.here(),
        verdicts: by_word(&all_routes(&totals)),
        routes: routes.collect(),
        repeated_amounts: repeated_amounts(&totals),
        observed: state.meters.observations().summary(),
        in_doubt: state.meters.doubts().map(|doubts| DoubtsDocument {
            keys: doubts.keys(),
            oldest_seconds: doubts.oldest().as_secs_f64(),
            looked_seconds: doubts.age().as_secs_f64(),
        }),
        quarantine: state.engine.quarantine().as_ref().map(QuarantineDocument::of),
        relays: state.meters.relays().iter().map(relay).collect(),
        sample: feed.with_history(|history| history.newest().cloned()),
    }
}

fn repeated_amounts(totals: &MeterTotals) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (currency, amount) in totals.repeated.values().flat_map(RepeatedSums::amounts) {
        *sums.entry(currency.to_owned()).or_default() += amount;
    }
    sums
}

fn relay(figures: &RelayFigures) -> RelayDocument {
    RelayDocument {
        destination: figures.destination.clone(),
        sent: figures.sent,
        parked: figures.parked,
        lag_events: figures.lag_events,
        lag_seconds: figures.lag.as_secs_f64(),
        troubled: figures.troubled,
    }
}

fn event(figures: &FiguresDocument) -> Bytes {
    // Numbers and texts can always be written, and JSON has no line breaks of its own.
    let document = serde_json::to_string(figures).unwrap_or_default();
    Bytes::from(format!("event: figures\ndata: {document}\n\n"))
}
