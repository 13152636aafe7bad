//! Processes that run operations of one effect on a real store, killed: one effect for each key.
//!
//! - [`victim`]: asks for many operations at once, until it dies; its callers (`caller`), what they
//!   do with the right to run (`hand`), and operations for the purger (`fleeting`);
//! - [`work`]: the operations; [`upstream`]: where their effects happen, outside of the store, one
//!   file per key; [`journal`]: what its clients were told, line by line;
//! - [`RecordHunt`]: kills victims, lets others recover (`episode`, in its `scene`), also while the
//!   database itself stops (`outage`), until enough have died;
//! - [`check`]: what must be true afterwards, for every key.
//!
//! A journal line or an effect is one `write` to a file opened for appending. The kernel keeps it
//! when the process is killed, and effects are synced as well.

mod args;
mod caller;
pub mod check;
mod episode;
mod facts;
mod fleeting;
mod hand;
mod hunt;
pub mod journal;
mod outage;
mod report;
mod scene;
mod strike;
pub mod upstream;
pub mod victim;
pub mod work;

pub use self::{
    args::{RecordMistake, RecordVictimArgs},
    hunt::{RecordBackend, RecordHunt},
    report::RecordReport,
};
