//! Events that are published if, and only if, a transaction commits: what they are, and the
//! contract between the log that keeps them and the relay that sends them.
//!
//! - `event`: [`Event`], what is said; `stored`: [`Stored`], what the log keeps of it;
//! - `destination`: [`Destination`], who wants which topics; `lanes`: how relays share the work;
//! - `reader`: [`Reader`], which knows what was read, what is missing, and how far is done;
//!   `reading`: what it asks and is shown; `gaps`: when a missing position never comes;
//! - `parked`: what was put aside so that it is in nobody's way;
//! - `log`: [`Outbox`], what a backend does; `memory`: the reference;
//! - `bell`: [`Bell`], a hint inside one process; `ringer`: [`Ringer`], who gives it.
//!
//! A backend states facts. Every decision (what may be delivered, what is final, who may take which
//! lane) is made here, and the model in `hapax-verify` explores this code.

mod bell;
mod destination;
mod event;
mod gaps;
mod lanes;
mod log;
pub mod memory;
mod parked;
mod reader;
mod reading;
mod ringer;
mod stored;

pub use self::{
    bell::{Bell, Rung},
    destination::{Destination, InvalidDestination, Start, Topics},
    event::{Event, InvalidEvent},
    gaps::{Gaps, Writer},
    lanes::{Plan, Relay, plan, share},
    log::{Lag, LaneLag, Lease, Leased, Leases, Outbox, Registered, Retired, poll, segment},
    parked::{Hold, Park, Parked, ParkedPage, Parking, Selection},
    reader::Reader,
    reading::{
        Batch, Delivery, LaneHeld, Limits, Look, Low, Progress, Replayed, Seen, SeenRow, Source,
    },
    ringer::Ringer,
    stored::{EventId, Lane, Position, Stored},
};
