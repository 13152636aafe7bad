//! Operations of several effects: each once, and a crash resumes after the last finished one.
//!
//! [`Steps`] belongs to one attempt. [`Steps::step`] runs an effect and keeps its result under the
//! operation; whoever takes the operation over is given the kept result instead of the effect. The
//! key it hands to the effect is the same in every attempt, for a downstream that deduplicates.
//! [`Workflows`] runs whole operations this way, for their clients and for those nobody waits for.
//!
//! ```
//! use hapax_core::{
//!     AttemptAnswer, Key, Operation, Outcome, Policy, Salt, Scope, Tenant, Timestamp, memory,
//! };
//! use hapax_engine::{Engine, Options, Ran, Workflows};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let payments = Workflows::new().on("POST /payments", Policy::default(), |run| async move {
//!     // The provider and the mailer deduplicate by the key they are given.
//!     let receipt = run.step("charge", |key| charge(key, 100)).await?;
//!     run.step("mail", |key| mail(key, receipt)).await?;
//!     Ok(AttemptAnswer::completed(Outcome::bare(201)))
//! });
//! let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
//! let finisher = Some(payments.finisher());
//! let engine = Engine::start(store, Options { finisher, ..Options::default() });
//!
//! let operation = Operation::new(
//!     Tenant::parse("acme")?,
//!     Scope::parse("POST /payments")?,
//!     Key::parse("9f1c2d")?,
//! );
//! let ran = payments.run(&engine, &operation, "pay 100".into()).await?;
//! assert_eq!(ran, Ran::Answered(AttemptAnswer::completed(Outcome::bare(201))));
//! let again = payments.run(&engine, &operation, "pay 100".into()).await?;
//! assert_eq!(again, Ran::Replayed(Outcome::bare(201)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # async fn charge(_: Key, amount: u64) -> Result<u64, std::io::Error> { Ok(amount) }
//! # async fn mail(_: Key, _: u64) -> Result<(), std::io::Error> { Ok(()) }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call;
mod error;
mod handle;
mod run;
mod workflow;

pub use self::{
    call::{Probed, StepCall},
    error::{Cause, RunError, StepError, Stop, WorkflowError},
    handle::Steps,
    run::{Ran, Run},
    workflow::Workflows,
};
