//! The store behind an address.

mod any;
mod open;
mod outbox;

pub(crate) use self::{
    any::AnyStore,
    open::{Access, Address, InvalidAddress, OpenError, open},
    outbox::{AnyOutbox, open_outbox, outbox_of},
};
