//! Changes by a person: shown, confirmed, made.

use std::{fs, io, io::Read, path::Path};

use hapax::{
    Body, Fence, Header, Outcome, Reason,
    operator::{Change, Order, Resolution},
    tower::{resolved_as_completed, resolved_as_failed},
};

use super::{confirm, error::KeysError, open, print::KeysPrinter, source::KeysSource};
use crate::{
    args::{ChangeArgs, ReleaseArgs, ResolveArgs, ResolvedAs},
    store::Access,
    user::user_name,
};

pub(super) async fn release(args: ReleaseArgs) -> Result<(), KeysError> {
    carry_out(&args.change, Change::Release).await
}

pub(super) async fn resolve(args: ResolveArgs) -> Result<(), KeysError> {
    let resolution = match args.resolution {
        ResolvedAs::Completed => resolved_as_completed(outcome(&args)?)?,
        ResolvedAs::Failed => resolved_as_failed(outcome(&args)?)?,
        ResolvedAs::Released => Resolution::Released,
    };
    carry_out(&args.change, Change::Resolve(resolution)).await
}

async fn carry_out(args: &ChangeArgs, change: Change) -> Result<(), KeysError> {
    let who = args.who.clone().unwrap_or_else(user_name);
    let reason = Reason::new(&who, &args.why)?;
    let access = if args.dry_run { Access::Look } else { Access::Change };
    let (source, printer) = open(&args.source, access).await?;
    let id = super::one(&source, &printer, &args.name).await?;
    let shown = source.show(id, false).await?.ok_or(KeysError::NotFound)?;
    let record = shown.record.as_ref().ok_or(KeysError::NotFound)?;
    let present = Fence::from_stored(record.operation.fence);
    let seen = args.fence.or(present).unwrap_or(Fence::FIRST);
    let order = Order { id, seen, even_if_running: args.even_if_running, reason };
    let foreseen = source.foresee(&order, &change).await?;
    if args.dry_run {
        return printer.foreseen(&shown, &foreseen);
    }
    if !args.yes {
        confirm::ask(&record.operation, change.consequence())?;
    }
    make(&source, &printer, &order, change).await
}

async fn make(
    source: &KeysSource,
    printer: &KeysPrinter,
    order: &Order,
    change: Change,
) -> Result<(), KeysError> {
    let changed = source.change(order, change).await?;
    printer.changed(&changed)?;
    if changed.noted { Ok(()) } else { Err(KeysError::EndNotNoted) }
}

fn outcome(args: &ResolveArgs) -> Result<Outcome, KeysError> {
    let headers = args.header.iter().map(|(name, value)| Header {
        name: name.clone(),
        value: value.clone().into_bytes().into(),
    });
    let body = args.body.as_deref().map(body).transpose()?.unwrap_or_default();
    // Clap has made sure that there is one.
    let status = args.status.unwrap_or(200);
    Ok(Outcome::new(status, headers.collect(), Body::Kept(body.into()))?)
}

fn body(raw: &str) -> Result<Vec<u8>, KeysError> {
    let Some(path) = raw.strip_prefix('@') else { return Ok(raw.as_bytes().to_vec()) };
    let read = if path == "-" {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|source| KeysError::Body { path: Path::new(path).to_owned(), source })
}
