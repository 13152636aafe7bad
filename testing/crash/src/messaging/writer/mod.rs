//! Whoever writes events all the while, in transactions of a business.
//!
//! Every event is the next version of its key, counted in the same transaction: what is kept of
//! that is the truth about what was committed, and in which order.

mod business;
mod postgres;
mod sqlite;

use std::{
    collections::HashSet,
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub(super) use self::business::Business;
use super::line::Line;

/// What is written beside the events, and read by the check.
const BUSINESS: &str = "
    CREATE TABLE versions (name text PRIMARY KEY, version bigint NOT NULL);
    CREATE TABLE emitted (id text NOT NULL, topic text NOT NULL, key text NOT NULL, version bigint NOT NULL, poison boolean NOT NULL)";
const COUNT: &str = "INSERT INTO versions (name, version) VALUES ($1, 1) \
     ON CONFLICT (name) DO UPDATE SET version = versions.version + 1 RETURNING version";
const KEEP: &str =
    "INSERT INTO emitted (id, topic, key, version, poison) VALUES ($1, $2, $3, $4, $5)";
const READ: &str = "SELECT id, topic, key, version, poison FROM emitted";

/// Keys of each line: few, so that their order is put to the test.
const KEYS: usize = 12;
/// Most events of a transaction.
const EVENTS_MAX: usize = 5;
/// One transaction in so many is rolled back, is left open for a while; one event is poison.
const ROLLED_BACK: u32 = 5;
const LEFT_OPEN: u32 = 12;
const POISON: u32 = 40;

/// An event that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedEvent {
    /// Its id.
    pub id: String,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: String,
    /// Which of its key's events it is, counted from one in the order of commits.
    pub version: i64,
    /// Whether nobody can act on it.
    pub poison: bool,
}

/// What whoever wrote was told about its events.
#[derive(Debug, Default)]
pub(super) struct SharedLedger(Mutex<WriterLedger>);

/// Ids of events, by what became of their transactions.
#[derive(Debug, Clone, Default)]
pub struct WriterLedger {
    /// The commit was confirmed.
    pub committed: HashSet<String>,
    /// There was no commit.
    pub rolled_back: HashSet<String>,
    /// The commit was sent, and no word came back.
    pub unknown: HashSet<String>,
}

impl SharedLedger {
    pub(super) fn ledger(&self) -> MutexGuard<'_, WriterLedger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction to be written.
#[derive(Debug)]
struct Draft {
    events: Vec<Planned>,
    commits: bool,
    left_open: Option<Duration>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    topic: String,
    key: String,
    poison: bool,
}

impl Planned {
    fn name(&self) -> String {
        format!("{}/{}", self.topic, self.key)
    }

    fn payload(&self) -> &'static str {
        if self.poison { POISONED } else { "{}" }
    }
}

/// What a message says that no consumer can act on.
pub(super) const POISONED: &str = r#"{"poison":true}"#;

impl Draft {
    fn draw(dice: &mut fastrand::Rng, lines: usize, open_ms: Range<u64>) -> Self {
        let plan = |dice: &mut fastrand::Rng| Planned {
            topic: Line(dice.usize(..lines)).topic(),
            key: format!("order-{}", dice.usize(..KEYS)),
            poison: dice.u32(..POISON) == 0,
        };
        let mut events: Vec<_> = (0..dice.usize(1..=EVENTS_MAX)).map(|_| plan(dice)).collect();
        // In the same order for all, so that transactions wait for each other in no circle.
        events.sort();
        let left_open = dice.u32(..LEFT_OPEN) == 0;
        let left_open = left_open.then(|| Duration::from_millis(dice.u64(open_ms)));
        Self { events, commits: dice.u32(..ROLLED_BACK) != 0, left_open }
    }
}
