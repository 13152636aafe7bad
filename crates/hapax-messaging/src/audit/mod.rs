//! Whether everything that was emitted arrived and had its effect: nothing lost, doubled or swapped.
//!
//! An [`Audit`] is told what was emitted, what arrived and what was acted on, in any order of these
//! three, and then [reports](Audit::report). It reads nothing itself: `hapax audit` does, and so do
//! tests and benchmarks that check what they have done.
//!
//! - `rules`: [`Rules`], what is forgiven;
//! - `finding`: [`Finding`], what is wrong; `report`: [`Report`], all of it.

mod finding;
mod report;
mod rules;

use std::collections::{BTreeSet, HashMap, HashSet};

use hapax_core::outbox::{EventId, Position, Stored};

use self::report::ReportTally;
pub use self::{
    finding::{Finding, Kind},
    report::Report,
    rules::{Excuse, Rules},
};

/// What was emitted, what arrived, and what was acted on.
///
/// ```
/// use hapax_core::outbox::EventId;
/// use hapax_messaging::audit::{Audit, Emitted, Kind, Rules};
///
/// let (topic, key) = ("orders.placed".to_owned(), "order-17".to_owned());
/// let mut audit = Audit::new();
/// for position in 1..=2 {
///     let id = EventId::from_bytes([position; 16]);
///     let (topic, key) = (topic.clone(), key.clone());
///     audit.emitted(Emitted { id, position: position.into(), topic, key });
/// }
/// audit.arrived(EventId::from_bytes([1; 16]), topic, key);
/// assert_eq!(audit.report(Rules::default()).count(Kind::Lost), 1);
/// ```
#[derive(Debug, Default)]
pub struct Audit {
    /// Topics and keys, by the number under which `events` knows them.
    keys: HashMap<(String, String), usize>,
    events: HashMap<EventId, EventFate>,
    /// What arrived before, or without, being told as emitted.
    strangers: HashMap<EventId, EventFate>,
    arrivals: u64,
    unreadable: u64,
}

/// An event that was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its name.
    pub id: EventId,
    /// Where it stands among those of its key; what is told out of order is put in it.
    pub position: Position,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: String,
}

impl From<&Stored> for Emitted {
    fn from(event: &Stored) -> Self {
        let (topic, key) = (event.topic.clone(), event.key.clone());
        Self { id: event.id, position: event.position, topic, key }
    }
}

/// What is known of an event.
#[derive(Debug, Clone, Default)]
struct EventFate {
    /// Where it was emitted, if that was told.
    emitted: Option<(usize, Position)>,
    /// Under which key, and as which of all arrivals, it came first.
    arrived: Option<(usize, u64)>,
    /// Whether it came under another key, too.
    astray: bool,
    arrivals: u64,
    effects: u64,
    declined: bool,
    excuse: Option<Excuse>,
}

impl Audit {
    /// One that has been told nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An event was committed.
    pub fn emitted(&mut self, event: Emitted) {
        let key = self.key(event.topic, event.key);
        let mut fate = self.strangers.remove(&event.id).unwrap_or_default();
        fate.emitted = Some((key, event.position));
        self.events.entry(event.id).or_insert(fate).emitted = Some((key, event.position));
    }

    /// Something arrived. Arrivals of one topic and key are told in the order in which they came.
    pub fn arrived(&mut self, id: EventId, topic: impl Into<String>, key: impl Into<String>) {
        let key = self.key(topic.into(), key.into());
        let at = self.arrivals;
        self.arrivals += 1;
        let fate = self.fate(id);
        fate.arrivals += 1;
        let first = *fate.arrived.get_or_insert((key, at));
        fate.astray |= first.0 != key;
    }

    /// Something arrived that bears no name of an event.
    pub fn arrived_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// A consumer acted on it, once.
    pub fn acted(&mut self, id: EventId) {
        self.fate(id).effects += 1;
    }

    /// A consumer decided that it has no effect: it failed for good, or was passed over.
    pub fn declined(&mut self, id: EventId) {
        self.fate(id).declined = true;
    }

    /// It need not have arrived yet.
    pub fn excuse(&mut self, id: EventId, excuse: Excuse) {
        self.fate(id).excuse = Some(excuse);
    }

    /// The topics of what was told as emitted so far.
    pub fn topics(&self) -> BTreeSet<&str> {
        let emitted = self.events.values().filter_map(|fate| fate.emitted);
        let keys: HashSet<_> = emitted.map(|(key, _)| key).collect();
        let named = self.keys.iter().filter(|(_, number)| keys.contains(number));
        named.map(|((topic, _), _)| topic.as_str()).collect()
    }

    /// What is wrong, by these rules.
    pub fn report(self, rules: Rules) -> Report {
        let mut names = vec![("", ""); self.keys.len()];
        for ((topic, key), number) in &self.keys {
            names[*number] = (topic, key);
        }
        let mut tally = ReportTally::new(rules, names, self.arrivals, self.unreadable);
        let mut events: Vec<_> = self.events.iter().collect();
        events.sort_unstable_by_key(|(id, fate)| (fate.emitted.map(|(_, at)| at), **id));
        for (id, fate) in events {
            tally.event(*id, fate);
        }
        for (id, fate) in &self.strangers {
            tally.stranger(*id, fate);
        }
        tally.into_report()
    }

    fn key(&mut self, topic: String, key: String) -> usize {
        let next = self.keys.len();
        *self.keys.entry((topic, key)).or_insert(next)
    }

    fn fate(&mut self, id: EventId) -> &mut EventFate {
        match self.events.get_mut(&id) {
            Some(_) => self.events.entry(id).or_default(),
            None => self.strangers.entry(id).or_default(),
        }
    }
}
