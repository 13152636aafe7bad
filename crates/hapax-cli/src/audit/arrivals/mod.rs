//! What arrived, read back from where it was sent to.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;

use std::path::Path;

use hapax_messaging::{audit::Audit, sink::SinkAddress};

use super::{
    error::AuditError,
    lines::{self, ReadLine},
};
use crate::args::AuditArgs;

/// Reads everything that is there now; nothing is changed there.
#[cfg_attr(
    not(any(feature = "kafka", feature = "nats")),
    expect(unused_variables, reason = "files need nothing but their path")
)]
pub(super) async fn read(audit: &mut Audit, at: &str, args: &AuditArgs) -> Result<(), AuditError> {
    if let Some(path) = at.strip_prefix("file:") {
        return from_file(audit, Path::new(path));
    }
    match at.parse().map_err(AuditError::At)? {
        #[cfg(feature = "nats")]
        SinkAddress::Nats(url) => {
            let stream = args.stream.as_deref().ok_or(AuditError::NoStream)?;
            nats::read(audit, &url, stream).await
        }
        #[cfg(not(feature = "nats"))]
        SinkAddress::Nats(_) => Err(AuditError::NotBuilt { feature: "nats" }),
        #[cfg(feature = "kafka")]
        SinkAddress::Kafka(address) => kafka::read(audit, &address, &args.prefix).await,
        #[cfg(not(feature = "kafka"))]
        SinkAddress::Kafka(_) => Err(AuditError::NotBuilt { feature: "kafka" }),
        SinkAddress::Stdout
        | SinkAddress::Webhook(_)
        | SinkAddress::RabbitMq(_)
        | SinkAddress::Sqs(_) => Err(AuditError::NotReadable),
    }
}

fn from_file(audit: &mut Audit, path: &Path) -> Result<(), AuditError> {
    lines::read(path, |line| match line {
        ReadLine::Event { id, topic, key } => audit.arrived(id, topic, key),
        ReadLine::Unreadable => audit.arrived_unreadable(),
    })
}

/// One arrival, as far as its headers say what it is.
#[cfg(any(feature = "kafka", feature = "nats"))]
fn arrive(audit: &mut Audit, id: Option<&str>, topic: Option<String>, key: Option<String>) {
    match (id.and_then(hapax_core::outbox::EventId::parse), topic, key) {
        (Some(id), Some(topic), Some(key)) => audit.arrived(id, topic, key),
        _ => audit.arrived_unreadable(),
    }
}
