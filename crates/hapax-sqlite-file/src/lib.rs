//! One SQLite file, one thread that writes it, group commit.
//!
//! What the embedded store and the client's journal share, below both. It knows neither: they say how
//! their file is recognised and made ([`Connect`]), and what their writes do ([`GroupWrite`]).
//!
//! - `file`: which file it is, whether it is still there, how it is opened; `private` and `network`: for
//!   whose eyes, and where it must not be;
//! - `writer`: a transaction, and what its failure means; `group`: the thread that takes everything that
//!   is queued, performs it in one transaction and pays for one sync to disk;
//! - `threads`: a queue, who serves it, and how it ends;
//! - `error`: what can go wrong, and what to do about it.

mod error;
mod file;
mod group;
mod network;
mod permissions;
mod threads;
mod writer;

pub use self::{
    error::{Cause, FileError, Stopped, TransactError, is_busy},
    file::{DatabaseFile, Durability},
    group::{GroupSize, GroupWrite, WriterJob, WriterTask},
    threads::Threads,
    writer::{Connect, FileWriter, Places},
};
