//! Events that are published if, and only if, a transaction commits: what they are, and the
//! contract between the log that keeps them and the relay that sends them.
//!
//! - `event`: [`Event`], what is said; `stored`: [`Stored`], what the log keeps of it;
//! - `destination`: [`Destination`], who wants which topics; `lanes`: how relays share the work;
//! - `reader`: [`Reader`], which knows what was read, what is missing, and how far is done;
//!   `reading`: what it asks and is shown; `gaps`: when a missing position never comes;
//! - `sealed`: events that are encrypted in the log, and [`EventOpener`], who opens them;
//! - `parked`: what was put aside so that it is in nobody's way;
//! - `log`: [`OutboxLog`], what a backend does for a relay; `admin`: [`OutboxAdmin`], what it does for
//!   operators; `replay_order`: what it would send again; `forward`: outboxes around others; `memory`: the reference;
//! - `bell`: [`Bell`], a hint inside one process; `ringer`: [`Ringer`], who gives it.
//!
//! A backend states facts. Every decision (what may be delivered, what is final, who may take which
//! lane) is made here, and the model in `hapax-verify` explores this code.

mod admin;
mod bell;
mod destination;
mod event;
mod forward;
mod gaps;
mod lanes;
mod log;
pub mod memory;
mod parked;
mod reader;
mod reading;
mod replay_order;
mod ringer;
mod sealed;
mod stored_event;

pub use self::{
    admin::{Lag, LaneLag, OutboxAdmin, Registered},
    bell::{Bell, Rung},
    destination::{Destination, InvalidDestination, Start, Topics},
    event::{Event, InvalidEvent},
    gaps::{Gaps, Writer},
    lanes::{LanePlan, ServingRelay, plan, share},
    log::{Leased, Leases, OutboxLog, RelayLease, Retired, poll, segment},
    parked::{Hold, Park, Parked, ParkedPage, Parking, Selection},
    reader::Reader,
    reading::{
        DeliverySource, EventBatch, EventDelivery, LaneHeld, LaneProgress, Look, Low, ReadLimits,
        Replayed, Seen, SeenRow,
    },
    replay_order::{find_parked, replay_order},
    ringer::Ringer,
    sealed::{EventOpener, OpeningEvent, SEALED_EVENT_TYPE, UnopenedEvent},
    stored_event::{EventId, Lane, Position, Stored},
};
