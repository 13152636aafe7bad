//! `hapax keys`: what a person does with keys.
//!
//! - `source` is where the keys are, the store or an `admin` API: both tell about keys in the same
//!   documents;
//! - `find` finds out which key is meant;
//! - `count` counts them;
//! - `purge` removes what is past retention;
//! - `change` releases and resolves, after `confirm` has asked;
//! - `print` says it in tables, `error` says what went wrong and with which code to exit.

mod admin;
mod change;
mod confirm;
mod count;
mod error;
mod find;
mod print;
mod purge;
mod source;

use std::process::ExitCode;

pub(crate) use self::{
    admin::{Admin, AdminError},
    error::KeysError,
    source::KeysSource,
};
use self::{find::NameMatch, print::KeysPrinter};
use crate::{
    args::{ExplainArgs, KeysTask, ListArgs, NameArgs, ShowArgs, SourceArgs},
    store::Access,
};

/// Does the task, and answers with the code to exit with.
pub(crate) fn run(task: KeysTask) -> Result<ExitCode, KeysError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(KeysError::Runtime)?.block_on(perform(task));
    match done {
        Err(error) if error.is_closed_pipe() => Ok(ExitCode::SUCCESS),
        Err(error) => {
            error::tell(&error);
            Ok(error.exit_code())
        }
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

async fn perform(task: KeysTask) -> Result<(), KeysError> {
    match task {
        KeysTask::List(args) => list(args).await,
        KeysTask::Count(args) => count::count(args).await,
        KeysTask::Show(args) => show(args).await,
        KeysTask::Explain(args) => explain(args).await,
        KeysTask::Release(args) => change::release(args).await,
        KeysTask::Resolve(args) => change::resolve(args).await,
        KeysTask::Purge(args) => purge::purge(args).await,
    }
}

async fn list(args: ListArgs) -> Result<(), KeysError> {
    let (source, printer) = open(&args.source, Access::Look).await?;
    let listing = find::list(&source, &args).await?;
    printer.list(&listing)
}

async fn show(args: ShowArgs) -> Result<(), KeysError> {
    let (source, printer) = open(&args.source, Access::Look).await?;
    let id = one(&source, &printer, &args.name).await?;
    let shown = source.show(id, args.body).await?.ok_or(KeysError::NotFound)?;
    printer.shown(&shown)
}

async fn explain(args: ExplainArgs) -> Result<(), KeysError> {
    let (source, printer) = open(&args.source, Access::Look).await?;
    let id = one(&source, &printer, &args.name).await?;
    printer.explanation(&source.explain(id).await?)
}

async fn open(args: &SourceArgs, access: Access) -> Result<(KeysSource, KeysPrinter), KeysError> {
    Ok((KeysSource::open(args, access).await?, KeysPrinter::new(args.json)))
}

/// The one operation that is meant. Where several are, they are listed for a person to choose.
async fn one(
    source: &KeysSource,
    printer: &KeysPrinter,
    name: &NameArgs,
) -> Result<hapax::OperationId, KeysError> {
    match find::find(source, name).await? {
        NameMatch::One(id) => Ok(id),
        NameMatch::Several(listing) => {
            printer.list(&listing)?;
            Err(KeysError::Several { count: listing.operations.len() })
        }
    }
}
