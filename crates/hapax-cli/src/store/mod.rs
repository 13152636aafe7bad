//! The store behind an address, and its outbox.

mod outbox;

pub(crate) use hapax::{Access, InvalidAddress, OpenError, OpenStore, StoreAddress};

pub(crate) use self::outbox::{AnyOutbox, open_outbox, opener, outbox_of};
