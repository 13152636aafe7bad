//! Drives a Hapax store for everyone who has operations to protect.
//!
//! The machine of `hapax-core` decides; this crate does. It gathers concurrent writes into group
//! commits, renews leases, lets duplicates in one process wait for each other instead of the
//! store, answers finished operations from memory, and cleans up after owners that vanished. It
//! knows neither HTTP nor SQL.
//!
//! - [`Engine::begin`] brings an operation and says what to do with it ([`Admission`]);
//! - a [`Permit`] is the right to run it, and [`Permit::settle`] says how that ended;
//! - [`steps`] runs operations of several effects, and resumes them after the last finished one;
//! - [`transactional`] runs operations whose effect is in a database, in one transaction with it;
//! - [`operator`] is for people: look, understand, release, resolve;
//! - [`Options`] are the bounds, [`Stats`] the counts, [`Spreads`] how they are spread.

mod acknowledged;
mod batcher;
mod begin;
mod cache;
mod clock;
mod detached_task;
mod digest;
mod engine;
mod error;
mod handover;
mod histogram;
mod history;
mod in_flight;
mod incarnation;
mod next_attempt;
pub mod operator;
mod options;
mod permit;
mod purger;
mod queued_operation;
mod readiness;
mod renewer;
mod restore;
mod stats;
pub mod steps;
mod sweeper;
mod tenant_keys;
pub mod transactional;
mod wall_clock;
mod watcher;

pub use self::{
    begin::{Admission, BeginRequest, RequestIdentity},
    clock::ClockWatch,
    engine::Engine,
    error::{BeginError, SettleError},
    handover::STEPS_PAUSE,
    histogram::{Distribution, Histogram},
    options::{Finisher, Options},
    permit::{Permit, Settled},
    queued_operation::Queued,
    readiness::BELIEVED_FOR,
    stats::{LATENCY_MICROS, Named, Spreads, Stats},
    steps::{Probed, Ran, Run, StepError, Steps, WorkflowError, Workflows},
    tenant_keys::TenantKeys,
    transactional::{
        Answered, Completion, Fate, InTransactionError, KeyLook, TransactionOptions, Transactional,
        Tx,
    },
    wall_clock::wall_clock,
};
