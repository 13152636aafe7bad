//! `hapax outbox`: what a person does about what is to be published.
//!
//! - `select` finds out which parked events are meant;
//! - `change` replays, forgets, pauses and removes, after it has asked;
//! - `print` says it in tables, or in JSON as the gateway's admin API does;
//! - `error` says what went wrong and with which code to exit.

mod change;
mod error;
mod print;
mod select;

use std::process::ExitCode;

use hapax::Encryption;
use hapax_core::outbox::{OutboxAdmin, Parked, ParkedPage, Registered, find_parked};
use hapax_gateway::admin::documents::{
    DestinationLag, DestinationRow, DestinationsDocument, ParkedEvent, ParkedEvents,
};

pub(crate) use self::error::OutboxError;
use self::print::OutboxPrinter;
use crate::{
    args::{DestinationArgs, OutboxListArgs, OutboxStoreArgs, OutboxTask, ParkedArgs},
    encryption::from_files,
    store::{Access, AnyOutbox, OpenStore, StoreAddress, open_outbox, opener},
};

/// Does the task, and answers with the code to exit with.
pub(crate) fn run(task: OutboxTask) -> Result<ExitCode, OutboxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(OutboxError::Runtime)?.block_on(perform(task));
    match done {
        Err(error) if error.is_closed_pipe() => Ok(ExitCode::SUCCESS),
        Err(error) => {
            error::tell(&error);
            Ok(error.exit_code())
        }
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

async fn perform(task: OutboxTask) -> Result<(), OutboxError> {
    match task {
        OutboxTask::List(args) => list(args).await,
        OutboxTask::Lag(args) => lag(args).await,
        OutboxTask::Parked(args) => parked(args).await,
        OutboxTask::Replay(args) => change::replay(args).await,
        OutboxTask::Forget(args) => change::forget(args).await,
        OutboxTask::Pause(args) => change::set_paused(args, true).await,
        OutboxTask::Resume(args) => change::set_paused(args, false).await,
        OutboxTask::Remove(args) => change::remove(args).await,
    }
}

async fn list(args: OutboxListArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.store, Access::Look).await?;
    let mut rows = Vec::new();
    for Registered { destination, .. } in outbox.destinations().await? {
        // One that is removed at this instant is not listed.
        if let Some(lag) = outbox.lag(destination.name()).await? {
            rows.push(DestinationRow::of(&destination, &lag));
        }
    }
    printer.destinations(&DestinationsDocument { destinations: rows })
}

async fn lag(args: DestinationArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.store, Access::Look).await?;
    let lag = outbox.lag(&args.destination).await?;
    let lag = lag.ok_or_else(|| OutboxError::unknown(&args.destination))?;
    printer.lag(&DestinationLag::of(&args.destination, &lag))
}

async fn parked(args: ParkedArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.of.store, Access::Look).await?;
    let name = &args.of.destination;
    let now = known(&outbox, name).await?.now;
    let selection = select::selection(&args.which)?;
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    // One more than is shown says whether there is another page.
    let page = ParkedPage { after: args.after, limit: limit.saturating_add(1) };
    let mut found = find_parked(&outbox, name, &selection, page).await?;
    if args.payload
        && let Some(encryption) = from_files(&args.keys)?
    {
        open_events(&mut found, &args.of.store, encryption).await?;
    }
    let next = found.get(limit).is_some().then(|| found[limit - 1].event.position);
    found.truncate(limit);
    let parked = found.iter().map(|parked| ParkedEvent::of(parked, now, args.payload)).collect();
    let listing = ParkedEvents { destination: name.clone(), parked, next };
    printer.parked(&listing, args.payload)
}

/// The events in the clear, as far as they can be.
async fn open_events(
    found: &mut [Parked],
    args: &OutboxStoreArgs,
    encryption: Encryption,
) -> Result<(), OutboxError> {
    let address: StoreAddress = args.file.or(&args.store).parse()?;
    let store = OpenStore::open(&address, Access::Look).await?;
    let opener = opener(store, encryption).await?;
    for parked in found {
        if let Ok(opened) = opener.open(parked.event.clone()).await {
            parked.event = opened;
        }
    }
    Ok(())
}

/// Opens what is there; nothing is created.
async fn open(
    args: &OutboxStoreArgs,
    access: Access,
) -> Result<(AnyOutbox, OutboxPrinter), OutboxError> {
    let address: StoreAddress = args.file.or(&args.store).parse()?;
    let outbox = open_outbox(&address, access).await?.ok_or(OutboxError::Memory)?;
    Ok((outbox, OutboxPrinter::new(args.json)))
}

/// How far the destination is, if there is one of this name.
async fn known(outbox: &AnyOutbox, name: &str) -> Result<hapax_core::outbox::Lag, OutboxError> {
    outbox.lag(name).await?.ok_or_else(|| OutboxError::unknown(name))
}
