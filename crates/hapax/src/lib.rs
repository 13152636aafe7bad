#![cfg_attr(feature = "sqlite", doc = include_str!("../README.md"))]
#![cfg_attr(
    not(feature = "sqlite"),
    doc = "One effect per key: the library a Rust service adds to make retries harmless."
)]

#[cfg(feature = "client")]
pub use hapax_client::{self as client, Client};
pub use hapax_core::{
    Attempt, Body, Database, Deed, Difference, Doubt, Ended, Event, Fence, Fingerprint, Header,
    InvalidEvent, InvalidId, InvalidName, InvalidOutcome, InvalidPolicy, InvalidReason, Key, Note,
    Noted, Operation, OperationId, Outcome, Owner, Part, Phase, Policy, Reason, Record, Recovery,
    RequestParts, ResultPolicy, RetainFrom, Retention, Salt, Scope, SignedId, Stamp, State,
    StateTag, Step, StepName, Store, StoreError, StoredStep, Tenant, TenantKey, Timestamp,
    TransactionError, Wish, clock, inbox, limits, memory, outbox, retry, store, transaction,
};
pub use hapax_engine::{
    Answered, Ask, BeginError, Begun, ClockWatch, Engine, Fate, Finisher, OnceError, Options,
    Permit, Probed, Ran, Run, SettleError, Settled, Stats, StepError, Steps, TransactionOptions,
    Transactional, WorkflowError, Workflows, operator, steps, transactional,
};
#[cfg(feature = "messaging")]
pub use hapax_messaging as messaging;
#[cfg(feature = "postgres")]
pub use hapax_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use hapax_sqlite as sqlite;
#[cfg(feature = "tower")]
pub use hapax_tower as tower;
