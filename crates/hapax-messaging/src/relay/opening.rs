//! Encrypted events: a sink is given them in the clear, or not at all.

use std::sync::Arc;

use hapax_core::outbox::{EventOpener, Stored, UnopenedEvent};

use crate::sink::{Outage, Sink, Verdict};

/// What became of an event on its way through a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FlightVerdict {
    /// What the sink said of it.
    Sink(Verdict),
    /// It is never sent, and this is why.
    Unsendable(String),
}

/// Who opens encrypted events, and whether others are sent at all.
#[derive(Debug, Clone)]
pub(super) struct Opening {
    pub(super) opener: Option<Arc<dyn EventOpener>>,
    pub(super) encrypted_only: bool,
}

/// Sends these events, those that are encrypted in the clear.
///
/// One that cannot be decrypted now keeps all of them back, and costs none an attempt.
pub(super) async fn send(
    sink: &impl Sink,
    opening: &Opening,
    events: &[Stored],
) -> Result<Vec<FlightVerdict>, Outage> {
    if !opening.encrypted_only && !events.iter().any(Stored::is_sealed) {
        let verdicts = sink.send(events).await?;
        return Ok(verdicts.into_iter().map(FlightVerdict::Sink).collect());
    }
    let (mut opened, mut fates) = (Vec::with_capacity(events.len()), Vec::new());
    for event in events {
        match opening.open(event).await? {
            Ok(event) => {
                opened.push(event);
                fates.push(None);
            }
            Err(why) => fates.push(Some(FlightVerdict::Unsendable(why))),
        }
    }
    let verdicts = if opened.is_empty() { Vec::new() } else { sink.send(&opened).await? };
    let mut verdicts = verdicts.into_iter();
    let silent = || Verdict::Missed("the sink said nothing of it".to_owned());
    let verdict = |fate: Option<FlightVerdict>| {
        fate.unwrap_or_else(|| FlightVerdict::Sink(verdicts.next().unwrap_or_else(silent)))
    };
    Ok(fates.into_iter().map(verdict).collect())
}

impl Opening {
    /// The event in the clear, or why it is never sent.
    async fn open(&self, event: &Stored) -> Result<Result<Stored, String>, Outage> {
        if !event.is_sealed() {
            let is_sent = !self.encrypted_only;
            return Ok(if is_sent { Ok(event.clone()) } else { Err(NOT_ENCRYPTED.to_owned()) });
        }
        let position = event.position;
        let Some(opener) = &self.opener else {
            return Err(Outage::new(format!(
                "event {position} is encrypted, and this relay was given no master key"
            )));
        };
        match opener.open(event.clone()).await {
            Ok(opened) if opened.is_sealed() => Ok(Err("it is encrypted twice".to_owned())),
            Ok(opened) => Ok(Ok(opened)),
            Err(UnopenedEvent::Never(why)) => Ok(Err(why)),
            Err(UnopenedEvent::NotNow(error)) => {
                Err(Outage::new(format!("event {position} cannot be decrypted now: {error}")))
            }
        }
    }
}

const NOT_ENCRYPTED: &str = "it is not encrypted, and only encrypted events are sent here";
