//! A place of the tests' own that takes events, keeps a ledger, and can be told to misbehave.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use hapax_core::outbox::{EventId, Stored};
use hapax_messaging::sink::{Outage, Sink, Verdict};
use tokio::time::sleep;

#[derive(Clone, Default)]
pub(crate) struct Place {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    ledger: Mutex<Vec<Entry>>,
    moods: Mutex<Moods>,
    calls: AtomicU64,
    attempts: AtomicU64,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: EventId,
    pub(crate) position: i64,
    pub(crate) key: String,
    pub(crate) payload: String,
}

#[derive(Default)]
struct Moods {
    down: bool,
    gone: bool,
    panics: u32,
    takes: Duration,
    refused: HashSet<String>,
    missed: HashMap<String, u32>,
    /// One of so many events is missed, and one of so many calls finds it down.
    flaky: Option<(u32, u32)>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.moods().down = down;
    }

    pub(crate) fn set_gone(&self, gone: bool) {
        self.moods().gone = gone;
    }

    pub(crate) fn panic_next(&self, times: u32) {
        self.moods().panics = times;
    }

    pub(crate) fn take_so_long(&self, takes: Duration) {
        self.moods().takes = takes;
    }

    pub(crate) fn refuse(&self, payload: &str) {
        self.moods().refused.insert(payload.to_owned());
    }

    pub(crate) fn accept(&self, payload: &str) {
        self.moods().refused.remove(payload);
    }

    pub(crate) fn miss(&self, payload: &str, times: u32) {
        self.moods().missed.insert(payload.to_owned(), times);
    }

    pub(crate) fn be_flaky(&self, flaky: Option<(u32, u32)>) {
        self.moods().flaky = flaky;
    }

    /// How often it was called.
    pub(crate) fn calls(&self) -> u64 {
        self.shared.calls.load(SeqCst)
    }

    /// How often an event was tried, taken or not.
    pub(crate) fn attempts(&self) -> u64 {
        self.shared.attempts.load(SeqCst)
    }

    pub(crate) fn ledger(&self) -> Vec<Entry> {
        self.shared.ledger.lock().unwrap().clone()
    }

    pub(crate) fn payloads(&self) -> Vec<String> {
        self.ledger().into_iter().map(|entry| entry.payload).collect()
    }

    /// How many different events were taken.
    pub(crate) fn distinct(&self) -> usize {
        self.ledger().iter().map(|entry| entry.id).collect::<HashSet<_>>().len()
    }

    /// First arrivals of each key come in the order of the log.
    pub(crate) fn assert_in_order(&self) {
        let mut seen = HashSet::new();
        let mut last: HashMap<String, i64> = HashMap::new();
        for entry in self.ledger() {
            if seen.insert(entry.id) {
                let last = last.entry(entry.key.clone()).or_default();
                assert!(*last < entry.position, "{entry:?} came after position {last}");
                *last = entry.position;
            }
        }
    }

    /// Nothing came twice.
    pub(crate) fn assert_no_duplicate(&self) {
        let ledger = self.ledger();
        assert_eq!(ledger.len(), self.distinct(), "{ledger:?}");
    }

    pub(crate) async fn until(&self, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn until_taken(&self, events: usize) {
        self.until(|place| place.distinct() >= events).await;
    }

    fn moods(&self) -> MutexGuard<'_, Moods> {
        self.shared.moods.lock().unwrap()
    }

    fn verdict(&self, event: &Stored) -> Verdict {
        self.shared.attempts.fetch_add(1, SeqCst);
        let payload = String::from_utf8(event.payload.to_vec()).unwrap();
        let mut moods = self.moods();
        if moods.refused.contains(&payload) {
            return Verdict::Refused("it is not wanted".to_owned());
        }
        let flaky = moods.flaky.is_some_and(|(miss, _)| fastrand::u32(0..miss) == 0);
        if let Some(left) = moods.missed.get_mut(&payload).filter(|left| **left > 0) {
            *left -= 1;
            return Verdict::Missed("not now".to_owned());
        }
        if flaky {
            return Verdict::Missed("by chance".to_owned());
        }
        let (id, position, key) = (event.id, event.position, event.key.clone());
        self.shared.ledger.lock().unwrap().push(Entry { id, position, key, payload });
        Verdict::Taken
    }
}

impl Sink for Place {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        self.shared.calls.fetch_add(1, SeqCst);
        let takes = self.moods().takes;
        if !takes.is_zero() {
            sleep(takes).await;
        }
        {
            let mut moods = self.moods();
            if moods.panics > 0 {
                moods.panics -= 1;
                drop(moods);
                panic!("the place panics on purpose");
            }
            if moods.gone {
                return Err(Outage::until_resumed("410 Gone"));
            }
            let down = moods.flaky.is_some_and(|(_, down)| fastrand::u32(0..down) == 0);
            if moods.down || down {
                return Err(Outage::new("connection refused"));
            }
        }
        let mut stuck: HashSet<(String, String)> = HashSet::new();
        let mut verdicts = Vec::new();
        for event in events {
            let name = (event.topic.clone(), event.key.clone());
            let verdict = if stuck.contains(&name) { Verdict::Behind } else { self.verdict(event) };
            if verdict != Verdict::Taken {
                stuck.insert(name);
            }
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }
}
