//! Changes by a person: shown, confirmed, made.

use std::io::{self, BufRead, IsTerminal, Write};

use hapax_core::outbox::{
    OutboxAdmin, OutboxLog, Parked, ParkedPage, Selection, find_parked, replay_order,
};
use hapax_gateway::admin::documents::{OutboxChange, OutboxForecast, ParkedEvent};

use super::{error::OutboxError, known, open, select};
use crate::{
    args::{CareArgs, DestinationArgs, ParkedChangeArgs, RemoveArgs},
    store::{Access, AnyOutbox},
};

pub(super) async fn replay(args: ParkedChangeArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.of.store, args.care.access()).await?;
    let name = &args.of.destination;
    let (now, selection) = (known(&outbox, name).await?.now, select::selection(&args.which)?);
    let (dry_run, yes) = (args.care.dry_run, args.care.yes);
    if dry_run || asks(yes) {
        let mut events = replay_order(&outbox, name, &selection, usize::MAX).await?;
        refuse_nothing(&events)?;
        events.retain(|parked| !parked.replaying);
        let events: Vec<_> = events.iter().map(|one| ParkedEvent::of(one, now, false)).collect();
        let would = format!("{} would be sent again, in this order", counted(events.len()));
        if dry_run {
            return printer.foreseen(&OutboxForecast { destination: name.clone(), would, events });
        }
        confirm(yes, &format!("{} will be sent to {name} again", counted(events.len())))?;
    }
    let events = changed(outbox.replay(name, selection.clone()).await)?;
    if events == 0 && replay_order(&outbox, name, &selection, usize::MAX).await?.is_empty() {
        return Err(OutboxError::NothingParked);
    }
    printer.changed(&OutboxChange::replaying(name, events))
}

pub(super) async fn forget(args: ParkedChangeArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.of.store, args.care.access()).await?;
    let name = &args.of.destination;
    let (now, selection) = (known(&outbox, name).await?.now, select::selection(&args.which)?);
    let (dry_run, yes) = (args.care.dry_run, args.care.yes);
    if dry_run || asks(yes) {
        let events = meant(&outbox, name, &selection).await?;
        let events: Vec<_> = events.iter().map(|one| ParkedEvent::of(one, now, false)).collect();
        let count = counted(events.len());
        if dry_run {
            let would = format!("{count} would be removed for good");
            return printer.foreseen(&OutboxForecast { destination: name.clone(), would, events });
        }
        confirm(yes, &format!("{count} will never be sent to {name}"))?;
    }
    match changed(outbox.forget(name, selection).await)? {
        0 => Err(OutboxError::NothingParked),
        events => printer.changed(&OutboxChange::forgotten(name, events)),
    }
}

pub(super) async fn set_paused(args: DestinationArgs, paused: bool) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.store, Access::Change).await?;
    let name = &args.destination;
    if !changed(outbox.set_paused(name, paused).await)? {
        return Err(OutboxError::unknown(name));
    }
    printer.changed(&OutboxChange::paused(name, paused))
}

pub(super) async fn remove(args: RemoveArgs) -> Result<(), OutboxError> {
    let (outbox, printer) = open(&args.of.store, args.care.access()).await?;
    let name = &args.of.destination;
    let lag = known(&outbox, name).await?;
    let loss = format!("{} not yet sent and {} parked", counted(lag.events()), lag.parked);
    let CareArgs { dry_run, yes } = args.care;
    if dry_run {
        let would = format!("it would be forgotten, with {loss}");
        let foreseen = OutboxForecast { destination: name.clone(), would, events: Vec::new() };
        return printer.foreseen(&foreseen);
    }
    confirm(yes, &format!("{name} will be forgotten, with {loss}"))?;
    if !changed(outbox.remove(name).await)? {
        return Err(OutboxError::unknown(name));
    }
    printer.changed(&OutboxChange::removed(name))
}

async fn meant(
    outbox: &AnyOutbox,
    name: &str,
    selection: &Selection,
) -> Result<Vec<Parked>, OutboxError> {
    let all = ParkedPage { after: 0, limit: usize::MAX };
    let events = find_parked(outbox, name, selection, all).await?;
    refuse_nothing(&events)?;
    Ok(events)
}

fn refuse_nothing(events: &[Parked]) -> Result<(), OutboxError> {
    if events.is_empty() { Err(OutboxError::NothingParked) } else { Ok(()) }
}

/// What a change answered; of one that failed it is known whether it may have been made.
fn changed<T>(answer: Result<T, hapax::StoreError>) -> Result<T, OutboxError> {
    answer.map_err(|error| match error {
        hapax::StoreError::Unconfirmed(_) => OutboxError::Unconfirmed(error),
        hapax::StoreError::Unavailable(_)
        | hapax::StoreError::Damaged(_)
        | hapax::StoreError::TooNew(_) => OutboxError::Store(error),
    })
}

impl CareArgs {
    /// What is wanted of the store.
    fn access(&self) -> Access {
        if self.dry_run { Access::Look } else { Access::Change }
    }
}

/// Whether somebody sits there to be asked.
fn asks(yes: bool) -> bool {
    !yes && io::stdin().is_terminal()
}

/// Asks on a terminal; where there is none, whoever wrote the command has decided.
fn confirm(yes: bool, consequence: &str) -> Result<(), OutboxError> {
    if !asks(yes) {
        return Ok(());
    }
    let mut terminal = io::stderr().lock();
    write!(terminal, "{consequence}. Type yes to go on: ")?;
    terminal.flush()?;
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    if said.trim() == "yes" { Ok(()) } else { Err(OutboxError::Declined) }
}

pub(super) fn counted(events: impl TryInto<u64>) -> String {
    match events.try_into().unwrap_or(u64::MAX) {
        1 => "1 event".to_owned(),
        events => format!("{events} events"),
    }
}
