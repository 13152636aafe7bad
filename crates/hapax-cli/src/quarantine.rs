//! `hapax quarantine`: a store that may have forgotten keys, and what a person says about that.

use std::io::{self, Write};

use hapax::{
    InvalidReason, Reason, StoreError,
    incarnation::{Finding, IncarnationMark, IncarnationReading, compare},
    operator::Operator,
};

use crate::{
    args::{LiftArgs, QuarantineStoreArgs, QuarantineTask},
    store::{Access, InvalidAddress, OpenError, OpenStore, StoreAddress},
    user::user_name,
};

/// Does the task, and says what is so then.
pub(crate) fn run(task: &QuarantineTask) -> Result<(), QuarantineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(QuarantineError::Runtime)?.block_on(perform(task))
}

async fn perform(task: &QuarantineTask) -> Result<(), QuarantineError> {
    match task {
        QuarantineTask::Show(args) => show(args).await,
        QuarantineTask::Begin(args) => {
            open(args, Access::Change).await?.begin_quarantine().await?;
            tell("quarantined: keys that are not in the store are not run, within seconds")
        }
        QuarantineTask::Lift(args) => lift(args).await,
    }
}

async fn lift(args: &LiftArgs) -> Result<(), QuarantineError> {
    let who = args.who.clone().unwrap_or_else(user_name);
    let reason = Reason::new(&who, &args.why)?;
    let mark = open(&args.store, Access::Change).await?.lift_quarantine(&reason).await?;
    tell(&format!(
        "lifted: keys that are not in the store are run, within seconds. It is {}",
        mark.incarnation
    ))
}

async fn show(args: &QuarantineStoreArgs) -> Result<(), QuarantineError> {
    let reading = open(args, Access::Look).await?.incarnation().await?;
    let mut out = io::stdout().lock();
    for line in lines(&reading) {
        writeln!(out, "{line}").map_err(QuarantineError::Print)?;
    }
    Ok(())
}

/// What is to be said about the store, most important first.
fn lines(reading: &IncarnationReading) -> Vec<String> {
    let mark = reading.mark.as_ref();
    let mut lines = vec![verdict(reading), format!("it is    {}", reading.incarnation)];
    if let Some(mark) = mark {
        lines.extend(past(mark));
    }
    for process in &reading.processes {
        let waits = if process.synchronous { ", commits wait for a standby" } else { "" };
        let is_here = process.incarnation == reading.incarnation;
        let place = if is_here { "" } else { ", before the change" };
        let (name, seen_at) = (process.process, process.seen_at);
        lines.push(format!("process  {name:016x} seen {seen_at}{place}{waits}"));
    }
    lines
}

/// Whether it is quarantined, and why, in a line.
pub(crate) fn verdict(reading: &IncarnationReading) -> String {
    let quarantine = reading.mark.as_ref().and_then(|mark| mark.quarantine.as_ref());
    match (compare(reading, None), quarantine) {
        (Finding::New, _) => "not quarantined: nothing has used this store yet".to_owned(),
        (Finding::Changed(cause), _) => {
            format!("will be quarantined by the next process that uses it: {}", cause.in_words())
        }
        (Finding::Same | Finding::Noted | Finding::Outdated, Some(quarantine)) => {
            format!("quarantined since {}: {}", quarantine.since, quarantine.cause.in_words())
        }
        (Finding::Same | Finding::Noted | Finding::Outdated, None) => "not quarantined".to_owned(),
    }
}

fn past(mark: &IncarnationMark) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(quarantine) = &mark.quarantine {
        lines.push(format!("it was   {}", quarantine.before));
        let missing = quarantine.missing_after();
        lines.extend(missing.map(|at| format!("missing  what was acknowledged after {at}")));
    }
    if let Some(lifted) = &mark.lifted {
        let (at, who, why) = (lifted.at, lifted.reason.who(), lifted.reason.why());
        lines.push(format!("lifted   {at} by {who}: {why}"));
    }
    lines
}

async fn open(args: &QuarantineStoreArgs, access: Access) -> Result<Operator, QuarantineError> {
    let address: StoreAddress = args.address().parse()?;
    if let StoreAddress::Memory = address {
        return Err(QuarantineError::Memory);
    }
    Ok(Operator::new(OpenStore::open(&address, access).await?.into_dyn()))
}

fn tell(line: &str) -> Result<(), QuarantineError> {
    writeln!(io::stdout(), "{line}").map_err(QuarantineError::Print)
}

/// Why nothing was shown or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum QuarantineError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("a store in memory forgets everything when its process ends; name another")]
    Memory,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the store did not answer, or not as it should")]
    Store(#[from] StoreError),
    #[error("the reason cannot be kept")]
    Reason(#[from] InvalidReason),
    #[error("cannot print the answer")]
    Print(#[source] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}
