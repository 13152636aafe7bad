//! What a relay is told about a destination.

use std::{fmt, time::Duration};

use hapax_core::outbox::{Destination, Start};

use super::{OnFailure, RelayOptions};
use crate::sink::{CloudEvents, SinkAddress};

/// The names under which files say it.
pub const RELAY_SETTINGS: &[&str] = &[
    "name",
    "to",
    "to_env",
    "to_file",
    "topics",
    "from",
    "on_failure",
    "encrypted_only",
    "attempts",
    "refusals",
    "lease",
    "source",
    "secret_env",
    "secret_file",
    "exchange",
    "prefix",
];
/// Shortest lease: a relay has to renew it some times before it ends.
pub const RELAY_LEASE_MIN: Duration = Duration::from_secs(1);

/// A destination, and how its events are sent there.
///
/// ```
/// use hapax_core::outbox::{Destination, Start, Topics};
/// use hapax_messaging::{
///     relay::{RelayConfig, RelayOptions},
///     sink::{AnySink, CloudEvents},
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = RelayConfig {
///     destination: Destination::new("shipping", Topics::parse(["orders.*"])?)?,
///     address: "stdout:".parse()?,
///     start: Start::Beginning,
///     options: RelayOptions::default(),
///     events: CloudEvents::from_source("/shop")?,
///     secrets: Vec::new(),
///     exchange: String::new(),
///     prefix: String::new(),
/// };
/// assert!(matches!(AnySink::new(&config)?, AnySink::Lines(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RelayConfig {
    /// Its name, under which its progress is kept, and the topics it wants.
    pub destination: Destination,
    /// Where it is.
    pub address: SinkAddress,
    /// Where it begins, the first time.
    pub start: Start,
    /// How patient the relay is, and what becomes of events that are not taken.
    pub options: RelayOptions,
    /// What its events say about where they come from.
    pub events: CloudEvents,
    /// What its events are signed with, the newest first; of webhooks alone.
    pub secrets: Vec<String>,
    /// The exchange events go to; of RabbitMQ alone.
    pub exchange: String,
    /// What is put before topics; of NATS and Kafka alone.
    pub prefix: String,
}

impl fmt::Debug for RelayConfig {
    /// Leaves out what is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut config = f.debug_struct("RelayConfig");
        config.field("destination", &self.destination).field("address", &self.address.to_string());
        config.finish_non_exhaustive()
    }
}

impl fmt::Display for RelayConfig {
    /// In one line, without anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { destination, address, options, .. } = self;
        let topics = destination.topics().patterns().join(", ");
        let failing = match options.on_failure {
            OnFailure::Block => "keeps its key waiting",
            OnFailure::ParkMessage => "is parked alone",
            OnFailure::ParkTail => "is parked with its key's tail",
        };
        write!(f, "{}: {topics} to {address}; what is not taken {failing}", destination.name())
    }
}

/// The words of `on_failure`.
pub const ON_FAILURE: [(&str, OnFailure); 3] = [
    ("block", OnFailure::Block),
    ("park-message", OnFailure::ParkMessage),
    ("park-tail", OnFailure::ParkTail),
];

/// The secrets in a variable or file: separated by commas or white space, the newest first.
pub fn secrets_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| c == ',' || c.is_whitespace());
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
