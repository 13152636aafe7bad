//! The store behind an address.

mod any;
mod open;

pub(crate) use self::{
    any::AnyStore,
    open::{Address, InvalidAddress, OpenError, open},
};
