//! What a relay waits for.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use hapax_core::{
    Fence, Owner, StoreError,
    outbox::{Lane, LaneProgress, Leases, Look, OutboxLog, Park, RelayLease, Seen, Writer},
};
use tokio::time::{Instant, sleep};

use super::{
    opening::{self, FlightVerdict, Opening},
    pipe::Name,
    queues::InFlightEvents,
};
use crate::sink::{Outage, Sink};

/// Something that ended.
pub(super) enum RelayStep {
    Leased {
        asked: Instant,
        leases: Result<Option<Leases>, StoreError>,
    },
    Looked {
        look: u64,
        seen: Result<Option<Seen>, StoreError>,
    },
    Listed(Result<Vec<Writer>, StoreError>),
    Landed {
        flight: InFlightEvents,
        verdicts: Result<Vec<FlightVerdict>, Outage>,
    },
    Acknowledged {
        progress: LaneProgress,
        lost: Result<Vec<Lane>, StoreError>,
    },
    Parked {
        park: Park,
        name: Name,
        done: Result<bool, StoreError>,
    },
    Released {
        lanes: Vec<(Lane, Fence)>,
        progress: LaneProgress,
        done: Result<Vec<Lane>, StoreError>,
    },
    Paused(Result<bool, StoreError>),
    Retired(Result<(), StoreError>),
}

pub(super) type Waiting = BoxFuture<'static, RelayStep>;

pub(super) fn lease<O: OutboxLog>(outbox: &Arc<O>, lease: RelayLease, asked: Instant) -> Waiting {
    let outbox = Arc::clone(outbox);
    Box::pin(async move { RelayStep::Leased { asked, leases: outbox.lease(lease).await } })
}

pub(super) fn look<O: OutboxLog>(outbox: &Arc<O>, name: &str, number: u64, look: Look) -> Waiting {
    let (outbox, name) = (Arc::clone(outbox), name.to_owned());
    Box::pin(
        async move { RelayStep::Looked { look: number, seen: outbox.look(&name, look).await } },
    )
}

pub(super) fn list<O: OutboxLog>(outbox: &Arc<O>) -> Waiting {
    let outbox = Arc::clone(outbox);
    Box::pin(async move { RelayStep::Listed(outbox.writers().await) })
}

/// Sends in a task of its own, so that sinks may use every core. A sink that panics took nothing, as
/// far as anybody knows.
pub(super) fn send<S: Sink>(sink: &Arc<S>, opening: &Opening, flight: InFlightEvents) -> Waiting {
    let (sink, opening) = (Arc::clone(sink), opening.clone());
    let flight = Arc::new(flight);
    let flying = Arc::clone(&flight);
    let task =
        tokio::spawn(async move { opening::send(sink.as_ref(), &opening, &flying.events).await });
    Box::pin(async move {
        let verdicts = task.await.unwrap_or_else(|panicked| Err(Outage::new(panicked)));
        let flight = Arc::try_unwrap(flight).unwrap_or_else(|shared| shared.as_ref().clone());
        RelayStep::Landed { flight, verdicts }
    })
}

pub(super) fn acknowledge<O: OutboxLog>(
    outbox: &Arc<O>,
    name: &str,
    progress: LaneProgress,
) -> Waiting {
    let (outbox, name) = (Arc::clone(outbox), name.to_owned());
    Box::pin(async move {
        let lost = outbox.acknowledge(&name, progress.clone()).await;
        RelayStep::Acknowledged { progress, lost }
    })
}

/// Stores how far lanes are, and then gives some of them back.
pub(super) fn release<O: OutboxLog>(
    outbox: &Arc<O>,
    name: &str,
    owner: Owner,
    lanes: Vec<(Lane, Fence)>,
    progress: LaneProgress,
) -> Waiting {
    let (outbox, name) = (Arc::clone(outbox), name.to_owned());
    Box::pin(async move {
        let done = async {
            let lost = outbox.acknowledge(&name, progress.clone()).await?;
            outbox.release(&name, owner, lanes.clone()).await?;
            Ok(lost)
        };
        let done = done.await;
        RelayStep::Released { lanes, progress, done }
    })
}

pub(super) fn park<O: OutboxLog>(
    outbox: &Arc<O>,
    park: Park,
    name: Name,
    pause: Option<Duration>,
) -> Waiting {
    let outbox = Arc::clone(outbox);
    Box::pin(async move {
        if let Some(pause) = pause {
            sleep(pause).await;
        }
        let done = outbox.park(park.clone()).await;
        RelayStep::Parked { park, name, done }
    })
}

pub(super) fn pause<O: OutboxLog>(outbox: &Arc<O>, name: &str) -> Waiting {
    let (outbox, name) = (Arc::clone(outbox), name.to_owned());
    Box::pin(async move { RelayStep::Paused(outbox.set_paused(&name, true).await) })
}

/// How many events one call may remove from a log that has no segments.
const RETIRE_MAX: usize = 10_000;

/// Removes what is final everywhere, until nothing more is.
pub(super) fn retire<O: OutboxLog>(outbox: &Arc<O>) -> Waiting {
    let outbox = Arc::clone(outbox);
    Box::pin(async move {
        loop {
            match outbox.retire(RETIRE_MAX).await {
                Ok(retired) if retired.events > 0 => {}
                Ok(_) => return RelayStep::Retired(Ok(())),
                Err(error) => return RelayStep::Retired(Err(error)),
            }
        }
    })
}
