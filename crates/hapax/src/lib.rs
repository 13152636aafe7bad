#![cfg_attr(feature = "sqlite", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sqlite"),
    doc = "One effect per key: the library a Rust service adds to make retries harmless."
)]

pub use hapax_core::{
    Attempt, Body, Deed, Difference, Doubt, Ended, Fence, Fingerprint, Header, InvalidName,
    InvalidOutcome, InvalidPolicy, InvalidReason, Key, Note, Noted, Operation, OperationId,
    Outcome, Owner, Part, Phase, Policy, Reason, Record, Recovery, RequestParts, ResultPolicy,
    RetainFrom, Retention, Salt, Scope, Stamp, State, StateTag, Step, StepName, Store, StoreError,
    StoredStep, Tenant, TenantKey, Timestamp, Wish, limits, memory, retry, store,
};
pub use hapax_engine::{
    Ask, BeginError, Begun, Engine, Finisher, Options, Permit, Probed, Ran, Run, SettleError,
    Settled, Stats, StepError, Steps, WorkflowError, Workflows, operator, steps,
};
#[cfg(feature = "postgres")]
pub use hapax_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use hapax_sqlite as sqlite;
#[cfg(feature = "tower")]
pub use hapax_tower as tower;
