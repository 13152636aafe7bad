//! What belongs to one line: a destination of the outbox, a stream and a consumer.

use hapax_core::{
    Scope,
    outbox::{Destination, Topics},
};

use crate::error::CrashError;

/// One way from the outbox to the effects, beside others on the same servers.
///
/// A relay that died keeps its lanes for as long as its lease: lines are what lets many die in a
/// minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line(pub usize);

impl Line {
    /// What its destination, its stream and its consumer are called.
    pub fn name(self) -> String {
        format!("line-{}", self.0)
    }

    /// The one topic of its events.
    pub fn topic(self) -> String {
        format!("line-{}.orders", self.0)
    }

    /// What its stream takes.
    pub fn subjects(self) -> String {
        format!("line-{}.>", self.0)
    }

    /// What its relays serve.
    pub fn destination(self) -> Result<Destination, CrashError> {
        let topics = Topics::parse([format!("line-{}.*", self.0)]);
        let destination = topics.and_then(|topics| Destination::new(self.name(), topics));
        destination.map_err(CrashError::refused("name a destination"))
    }

    /// What its consumers are known as.
    pub fn consumer(self) -> Result<Scope, CrashError> {
        Scope::parse(self.name()).map_err(CrashError::name)
    }
}
