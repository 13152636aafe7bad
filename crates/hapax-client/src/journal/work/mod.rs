//! What a journal can be asked for, each as work in somebody's transaction.

mod keep;
mod look;
mod remove;
mod take;

pub(super) use self::{
    keep::{Release, Renew, Settle},
    look::{Find, List},
    remove::{Forget, Purge},
    take::{Start, Take},
};
pub use self::{
    look::{Filter, Listed, Position},
    remove::{Force, Forgotten},
};
