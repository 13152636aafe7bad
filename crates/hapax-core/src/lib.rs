//! The Hapax machine: one effect per key, decided here and nowhere else.
//!
//! This crate has no clock, no IO and no async runtime. Time is an argument, a store is a trait,
//! and every decision is a value:
//!
//! - [`operation`]: which operation is meant (tenant, scope, key), parsed once;
//! - [`fingerprint`]: what makes two requests the same;
//! - [`record`]: what is stored, and the states it can be in;
//! - [`policy`]: leases, retention, what recovery may do;
//! - [`mod@decide`]: an arrival meets a record, and is told what to do;
//! - [`mod@settle`]: an attempt ends, and what that means is written down;
//! - [`apply`]: what each write does to a record;
//! - [`store`]: the contract a store keeps, and [`memory`], the reference;
//! - [`step`]: what the parts of an operation came to, so that none is repeated;
//! - [`note`]: what people did to records, and why;
//! - [`transaction`]: the same promise inside the caller's own transaction, and [`outbox`], what is
//!   published if it commits; [`inbox`], messages acted on once, and what is kept of them;
//! - [`codec`]: how records are stored, versioned and checked;
//! - [`retry`]: when to try again, how long to wait first, and when to stop;
//! - [`limits`], [`time`], [`clock`], how far a store's clock is trusted, [`incarnation`], whether a store has
//!   forgotten something, [`error_chain`], errors with their causes, and [`fault`], where tests make things fail.
//!
//! ```
//! use hapax_core::{
//!     Arrival, Decision, Key, Operation, Owner, Policy, RequestParts, Salt, Scope, Tenant,
//!     Timestamp, RunMode, decide,
//! };
//!
//! let operation = Operation::new(
//!     Tenant::parse("acme")?,
//!     Scope::parse("POST /payments")?,
//!     Key::parse("9f1c2d")?,
//! );
//! let salt = Salt::from_bytes([7; 32]);
//! let request = RequestParts { body: b"{\"amount\":100}", ..RequestParts::default() };
//! let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(&request);
//! let arrival =
//!     Arrival { operation, fingerprint, owner: Owner(1), mode: RunMode::Run { request: None } };
//!
//! let decision = decide(Timestamp::ZERO, &arrival, None, &Policy::default());
//! assert!(matches!(decision, Decision::Execute(_)));
//! # Ok::<(), hapax_core::InvalidName>(())
//! ```

pub mod apply;
pub mod clock;
pub mod codec;
pub mod decide;
pub mod error_chain;
pub mod fault;
pub mod fingerprint;
pub mod inbox;
pub mod incarnation;
pub mod limits;
pub mod memory;
pub mod note;
pub mod operation;
pub mod outbox;
pub mod outcome;
pub mod policy;
pub mod record;
pub mod retry;
pub mod settle;
pub mod step;
pub mod store;
pub mod time;
pub mod transaction;

pub use self::{
    decide::{Arrival, Decision, RunMode, decide, quiet_from},
    error_chain::OneLine,
    fault::{Faults, Injected},
    fingerprint::{Difference, Fingerprint, Part, RequestParts, Salt, TenantKey},
    note::{Deed, InvalidReason, Note, Noted, Phase, Reason},
    operation::{InvalidId, InvalidName, Key, Operation, OperationId, Scope, SignedId, Tenant},
    outbox::{Event, InvalidEvent},
    outcome::{Body, Header, InvalidOutcome, Outcome},
    policy::{InvalidPolicy, Policy, Recovery, RetainFrom, Retention},
    record::{Doubt, Fence, Owner, Record, Stamp, State, StateTag},
    settle::{AnswerMeaning, Attempt, AttemptAnswer, AttemptEnd, Sweep, give_back, settle, sweep},
    step::{InvalidStep, Step, StepName, StoredStep},
    store::{DynStore, Store, StoreError},
    time::Timestamp,
    transaction::{Database, TransactionError},
};
