//! What a journal can be asked for, each as work in somebody's transaction.

mod keep;
mod look;
mod remove;
mod take;

pub(super) use self::{
    keep::{ReleaseHold, RenewHold, SettleEntry},
    look::{Find, List},
    remove::{Forget, PurgeEntries},
    take::{BeginEntry, Take},
};
pub use self::{
    look::{EntryFilter, EntryPosition, ListedEntry},
    remove::{Force, Forgotten},
};
