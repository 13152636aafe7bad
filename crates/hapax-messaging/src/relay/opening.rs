//! Encrypted events: a sink is given them in the clear, or not at all.

use std::sync::Arc;

use hapax_core::outbox::{EventOpener, Stored, UnopenedEvent};

use crate::sink::{Outage, Sink, Verdict};

/// What became of an event on its way through a relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FlightVerdict {
    /// What the sink said of it.
    Sink(Verdict),
    /// It can never be sent, because nobody can decrypt it, and this is why.
    Unreadable(String),
}

/// Sends these events, those that are encrypted in the clear.
///
/// One that cannot be decrypted now keeps all of them back, and costs none an attempt.
pub(super) async fn send(
    sink: &impl Sink,
    opener: Option<&Arc<dyn EventOpener>>,
    events: &[Stored],
) -> Result<Vec<FlightVerdict>, Outage> {
    if !events.iter().any(Stored::is_sealed) {
        let verdicts = sink.send(events).await?;
        return Ok(verdicts.into_iter().map(FlightVerdict::Sink).collect());
    }
    let (mut opened, mut fates) = (Vec::with_capacity(events.len()), Vec::new());
    for event in events {
        match open(opener, event).await? {
            Ok(event) => {
                opened.push(event);
                fates.push(None);
            }
            Err(why) => fates.push(Some(FlightVerdict::Unreadable(why))),
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

/// The event in the clear, or why it never will be.
async fn open(
    opener: Option<&Arc<dyn EventOpener>>,
    event: &Stored,
) -> Result<Result<Stored, String>, Outage> {
    if !event.is_sealed() {
        return Ok(Ok(event.clone()));
    }
    let position = event.position;
    let Some(opener) = opener else {
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
