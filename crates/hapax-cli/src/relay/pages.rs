//! What operators see of relays that run alone.

use hapax_core::{OneLine, outbox::OutboxAdmin};
use hapax_gateway::admin::{NotReady, RelayPages};
use hapax_messaging::relay::RelayMeter;

use super::relays::figures;
use crate::{store::AnyOutbox, table::harmless};

/// The pages about these relays of this outbox.
pub(super) fn of(outbox: &AnyOutbox, meters: Vec<RelayMeter>) -> RelayPages {
    let (outbox, shown) = (outbox.clone(), meters.clone());
    RelayPages::new(
        move || figures(&shown),
        move || {
            let (outbox, meters) = (outbox.clone(), meters.clone());
            async move { readiness(&outbox, &meters).await }
        },
    )
}

/// Ready is a relay whose outbox answers, that has lanes, and whose destination takes what it is sent. One that
/// somebody paused does as it was told.
async fn readiness(outbox: &AnyOutbox, meters: &[RelayMeter]) -> Result<(), NotReady> {
    let refused = |error| NotReady { reason: "outbox", detail: OneLine::of(&error).to_string() };
    outbox.destinations().await.map_err(refused)?;
    for status in meters.iter().map(RelayMeter::status).filter(|status| !status.paused) {
        let name = harmless(&status.destination);
        if let Some(trouble) = &status.trouble {
            let detail = format!("{name}: {}", harmless(trouble));
            return Err(NotReady { reason: "destination", detail });
        }
        if status.lanes == 0 {
            let detail =
                format!("{name}: it has no lanes; others have them, or it has just started");
            return Err(NotReady { reason: "lanes", detail });
        }
    }
    Ok(())
}
