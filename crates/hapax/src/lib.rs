#![cfg_attr(all(feature = "axum", feature = "deadpool", feature = "sqlite"), doc = include_str!("../README.md"))]
#![cfg_attr(
    not(all(feature = "axum", feature = "deadpool", feature = "sqlite")),
    doc = "One effect per key: the library a Rust service adds to make retries harmless."
)]

mod address;
mod comparison;
mod data_keys;
mod durations;
mod effect_error;
mod hapax;
mod once;
mod once_error;
pub mod open;
#[cfg(feature = "tower")]
mod transactions;

#[cfg(feature = "client")]
pub use hapax_client::{self as client, Client};
pub use hapax_core::{
    AnswerMeaning, Attempt, AttemptAnswer, AttemptEnd, Body, Database, Deed, Difference, Doubt,
    DynStore, Event, Fence, Fingerprint, Header, InvalidEvent, InvalidId, InvalidName,
    InvalidOutcome, InvalidPolicy, InvalidReason, Key, Note, Noted, Operation, OperationId,
    Outcome, Owner, Part, Phase, Policy, Reason, Record, Recovery, RequestParts, RetainFrom,
    Retention, RunMode, Salt, Scope, SignedId, Stamp, State, StateTag, Step, StepName, Store,
    StoreError, StoredStep, Tenant, TenantKey, Timestamp, TransactionError, clock, inbox,
    incarnation, limits, memory, outbox, retry, store, transaction,
};
pub use hapax_encryption::{
    self as encryption, Encryption, EncryptionError, LocalMasterKey, MasterKey,
};
pub use hapax_engine::{
    Admission, Answered, BeginError, BeginRequest, ClockWatch, Completion, Engine, Fate, Finisher,
    InTransactionError, KeyLook, Options, Permit, Probed, Ran, RequestIdentity, Run, SettleError,
    Settled, Stats, StepError, Steps, TransactionOptions, Transactional, WorkflowError, Workflows,
    operator, steps, transactional, wall_clock,
};
#[cfg(feature = "messaging")]
pub use hapax_messaging as messaging;
#[cfg(feature = "postgres")]
pub use hapax_postgres as postgres;
#[cfg(feature = "sqlite")]
pub use hapax_sqlite as sqlite;
#[cfg(feature = "tower")]
pub use hapax_tower as tower;

#[cfg(feature = "deadpool")]
pub use self::transactions::deadpool;
#[cfg(feature = "sqlx-0_8-postgres")]
pub use self::transactions::sqlx_0_8_postgres;
#[cfg(feature = "sqlx-postgres")]
pub use self::transactions::sqlx_postgres;
#[cfg(feature = "sqlx-sqlite")]
pub use self::transactions::sqlx_sqlite;
#[cfg(feature = "tower")]
pub use self::transactions::{InTransactions, IntoDatabase};
pub use self::{
    address::{InvalidAddress, StoreAddress},
    comparison::{Json, JsonIgnoring},
    durations::{days, hours, minutes, secs},
    effect_error::EffectError,
    hapax::Hapax,
    once::{Once, OperationName},
    once_error::OnceError,
    open::{Access, OpenError, OpenStore},
};
