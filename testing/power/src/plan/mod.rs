//! What a workload does, planned before it is done: the process that does it and the judge of what is left
//! draw the same plan from the same seed.
//!
//! Every key belongs to one thread, and the clock stands still within a phase, so what each task leaves
//! behind is known although threads run as they like.

mod books;
mod planner;

use std::fmt;

use bytes::Bytes;
use clap::ValueEnum;
use hapax_core::{
    Attempt, AttemptAnswer, Fingerprint, Key, Note, Operation, Outcome, Policy, Scope, Tenant,
    Timestamp, store::Write,
};

pub use self::books::{Books, KeyState};
pub(crate) use self::planner::newcomer;
use crate::error::PowerError;

/// What is done while the calls are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Workload {
    /// A store is made, closed and opened again.
    Opening,
    /// A bit of everything, by several threads, in several phases, with a purge in some.
    Mixed,
    /// Large outcomes, so that the log is copied into the file again and again.
    Checkpoints,
    /// Many keys on top of many that are there, and a purge of many.
    ManyKeys,
    /// Two processes that open the same file at the same time, and share it.
    Processes,
}

impl Workload {
    /// Every workload.
    pub const ALL: [Self; 5] =
        [Self::Opening, Self::Mixed, Self::Checkpoints, Self::ManyKeys, Self::Processes];

    /// How many processes do it.
    pub fn processes(self) -> usize {
        match self {
            Self::Processes => 2,
            Self::Opening | Self::Mixed | Self::Checkpoints | Self::ManyKeys => 1,
        }
    }

    /// How many records are there before it begins.
    pub fn filled(self) -> usize {
        match self {
            Self::ManyKeys => FILLED_KEYS,
            Self::Opening | Self::Mixed | Self::Checkpoints | Self::Processes => 0,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Mixed => "mixed",
            Self::Checkpoints => "checkpoints",
            Self::ManyKeys => "many-keys",
            Self::Processes => "processes",
        })
    }
}

/// A few keys short of 4,096: a store that keeps them in sorted pieces of a power of two, and makes larger ones
/// of those, does both while the workload goes on.
const FILLED_KEYS: usize = 3700;

/// Everything that is done, in order.
#[derive(Debug)]
pub struct WorkPlan {
    /// What fills the store before anything is recorded.
    pub filling: Vec<PlannedTask>,
    /// What is there then.
    pub before: Books,
    /// What is recorded, one after the other.
    pub phases: Vec<PlannedPhase>,
}

/// What happens between two moments at which nothing is under way.
#[derive(Debug)]
pub struct PlannedPhase {
    /// What the store's clock says all the while.
    pub now: Timestamp,
    /// What each thread does, at the same time as the others.
    pub threads: Vec<Vec<PlannedTask>>,
}

/// One call of a store, or of what shares its file.
#[derive(Debug, Clone)]
pub struct PlannedTask {
    /// No other has it.
    pub number: usize,
    /// What the store's clock says.
    pub now: Timestamp,
    /// What is called.
    pub action: TaskAction,
}

/// What is called.
#[derive(Debug, Clone)]
pub enum TaskAction {
    /// A batch of writes.
    Commit(Vec<Write>),
    /// The withdrawal of a claim.
    Withdraw(Attempt),
    /// A note of a person.
    Note(Note),
    /// Purges until there is nothing to purge.
    Purge,
    /// An operation in a transaction with its effect, on a connection of its own.
    Once(OnceTask),
    /// The log is copied into the file, by a connection of its own, in this mode.
    Checkpoint(&'static str),
}

impl TaskAction {
    /// In a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Commit(batch) => match batch.as_slice() {
                [Write::Claim(_), ..] => "claim",
                [Write::Settle(_), ..] => "settle",
                [Write::Renew(_), ..] => "renew",
                [Write::Step(_), ..] => "step",
                [] => "nothing",
            },
            Self::Withdraw(_) => "withdraw",
            Self::Note(_) => "note",
            Self::Purge => "purge",
            Self::Once(_) => "once",
            Self::Checkpoint(_) => "checkpoint",
        }
    }
}

/// An operation that is run in a transaction with its effect.
#[derive(Debug, Clone)]
pub struct OnceTask {
    /// Which operation.
    pub operation: Operation,
    /// What it answers, and what that means for its effect.
    pub answer: AttemptAnswer,
}

impl OnceTask {
    /// How it is treated.
    pub fn policy() -> Policy {
        Policy::default()
    }
}

impl WorkPlan {
    /// The plan of this workload that this seed stands for.
    pub fn draw(workload: Workload, seed: u64) -> Result<Self, PowerError> {
        planner::draw(workload, seed)
    }

    /// All tasks that are recorded.
    pub fn tasks(&self) -> impl Iterator<Item = &PlannedTask> {
        self.phases.iter().flat_map(|phase| phase.threads.iter().flatten())
    }
}

/// The operation with this key.
pub(crate) fn operation(key: &str) -> Result<Operation, PowerError> {
    let named = || {
        let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("POST /payments")?);
        Ok::<_, hapax_core::InvalidName>(Operation::new(tenant, scope, Key::parse(key)?))
    };
    named().map_err(PowerError::refused("name an operation"))
}

/// The request all operations come with.
pub(crate) fn fingerprint() -> Fingerprint {
    Fingerprint::from_bytes([7; Fingerprint::BYTES])
}

/// An outcome with these bytes.
pub(crate) fn outcome(bytes: impl Into<Bytes>) -> Result<Outcome, PowerError> {
    Outcome::value(bytes.into()).map_err(PowerError::refused("make an outcome"))
}
