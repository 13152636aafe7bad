//! Operations of several effects: each once, and a crash resumes after the last finished one.
//!
//! [`Steps`] belongs to one attempt. [`Steps::step`] runs an effect and keeps its result under the
//! operation; whoever takes the operation over is given the kept result instead of the effect. The
//! key it hands to the effect is the same in every attempt, for a downstream that deduplicates.
//! [`Workflows`] runs whole operations this way, for their clients and for those nobody waits for.

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
