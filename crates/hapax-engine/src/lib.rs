//! Drives a Hapax store for everyone who has operations to protect.
//!
//! The machine of `hapax-core` decides; this crate does. It gathers concurrent writes into group
//! commits, renews leases, lets duplicates in one process wait for each other instead of the
//! store, answers finished operations from memory, and cleans up after owners that vanished. It
//! knows neither HTTP nor SQL.
//!
//! - [`Engine::begin`] brings an operation and says what to do with it ([`Begun`]);
//! - a [`Permit`] is the right to run it, and [`Permit::settle`] says how that ended;
//! - [`steps`] runs operations of several effects, and resumes them after the last finished one;
//! - [`transactional`] runs operations whose effect is in a database, in one transaction with it;
//! - [`operator`] is for people: look, understand, release, resolve;
//! - [`Options`] are the bounds, [`Stats`] the counts, [`Spreads`] how they are spread.

mod again;
mod batcher;
mod begin;
mod cache;
mod clock;
mod detached;
mod digest;
mod engine;
mod error;
mod flights;
mod histogram;
mod leave;
pub mod operator;
mod options;
mod permit;
mod purger;
mod queued;
mod readiness;
mod renewer;
mod stats;
pub mod steps;
mod sweeper;
pub mod transactional;
mod watcher;

pub use self::{
    begin::{Ask, Begun},
    clock::ClockWatch,
    engine::Engine,
    error::{BeginError, SettleError},
    histogram::{Distribution, Histogram},
    leave::STEPS_PAUSE,
    options::{Finisher, Options},
    permit::{Permit, Settled},
    queued::Queued,
    readiness::BELIEVED_FOR,
    stats::{LATENCY_MICROS, Named, Spreads, Stats},
    steps::{Probed, Ran, Run, StepError, Steps, WorkflowError, Workflows},
    transactional::{Answered, Fate, OnceError, TransactionOptions, Transactional, Tx},
};
