//! What must be true of every event once all is over.

use std::collections::{HashMap, HashSet};

use hapax_core::outbox::EventId;
use hapax_messaging::audit::{self, Audit, Emitted, Rules};

use super::{
    args::Role,
    report::Counts,
    writer::{CommittedEvent, WriterLedger},
};

/// What a hunt has left behind.
#[derive(Debug, Clone, Default)]
pub struct MessagingFacts {
    /// What was committed, by the business's own books.
    pub written: Vec<CommittedEvent>,
    /// What whoever wrote was told.
    pub told: WriterLedger,
    /// What the broker has, in its order.
    pub arrived: Vec<ArrivedEvent>,
    /// The events of all effects.
    pub effects: Vec<String>,
    /// The events that were put aside.
    pub letters: Vec<String>,
}

/// An event at the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrivedEvent {
    /// Its id.
    pub id: String,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: String,
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessagingViolation {
    /// An event was lost, doubled or swapped, or had not one effect.
    #[error("{0}")]
    Event(audit::Finding),
    /// A commit was confirmed, and is gone.
    #[error("{id} was confirmed as committed, and is gone")]
    Forgotten {
        /// The event's id.
        id: String,
    },
    /// A transaction was rolled back, and is there.
    #[error("{id} was rolled back, and is there")]
    Survived {
        /// The event's id.
        id: String,
    },
    /// An event was put aside that can be acted on.
    #[error("{id} was put aside though it can be acted on")]
    PutAside {
        /// The event's id.
        id: String,
    },
    /// An event had an effect that cannot be acted on.
    #[error("{id} had an effect though it cannot be acted on")]
    Acted {
        /// The event's id.
        id: String,
    },
    /// Something was not over in time.
    #[error("not over in time: {what}")]
    Unfinished {
        /// What.
        what: String,
    },
    /// A victim ended otherwise than by being killed.
    #[error("a {} failed: {how}", role.as_str())]
    Failed {
        /// What it was.
        role: Role,
        /// How it ended.
        how: String,
    },
}

/// Compares what was committed with what arrived and what was done about it.
pub fn check(facts: &MessagingFacts) -> (Counts, Vec<MessagingViolation>) {
    let mut audit = Audit::new();
    let mut violations = Vec::new();
    let written: HashMap<_, _> = facts.written.iter().map(|event| (&event.id, event)).collect();
    for event in &facts.written {
        let (topic, key) = (event.topic.clone(), event.key.clone());
        audit.emitted(Emitted { id: id(&event.id), position: event.version, topic, key });
    }
    for ArrivedEvent { id: name, topic, key } in &facts.arrived {
        audit.arrived(id(name), topic, key);
    }
    for name in &facts.effects {
        audit.acted(id(name));
        if written.get(name).is_some_and(|event| event.poison) {
            violations.push(MessagingViolation::Acted { id: name.clone() });
        }
    }
    for name in &facts.letters {
        audit.declined(id(name));
        if written.get(name).is_none_or(|event| !event.poison) {
            violations.push(MessagingViolation::PutAside { id: name.clone() });
        }
    }
    let gone = facts.told.committed.iter().filter(|id| !written.contains_key(id));
    violations.extend(gone.map(|id| MessagingViolation::Forgotten { id: id.clone() }));
    let there = facts.told.rolled_back.iter().filter(|id| written.contains_key(id));
    violations.extend(there.map(|id| MessagingViolation::Survived { id: id.clone() }));
    let report = audit.report(Rules { effects: true, ..Rules::default() });
    violations.extend(report.findings.iter().cloned().map(MessagingViolation::Event));
    (counts(facts, &report), violations)
}

fn counts(facts: &MessagingFacts, report: &audit::Report) -> Counts {
    let letters: HashSet<_> = facts.letters.iter().collect();
    Counts {
        events: report.emitted,
        rolled_back: facts.told.rolled_back.len() as u64,
        unknown: facts.told.unknown.len() as u64,
        repeats: report.repeats,
        effects: report.effects,
        dead_letters: letters.len() as u64,
    }
}

/// What bears no name of an event is nobody's, and found as unknown.
fn id(text: &str) -> EventId {
    EventId::parse(text).unwrap_or(EventId::from_bytes([0; 16]))
}
