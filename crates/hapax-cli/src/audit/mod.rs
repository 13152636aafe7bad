//! `hapax audit`: what was emitted beside what arrived and what was acted on.
//!
//! - `emitted` reads the outbox, or a file; `arrivals` reads a destination back, `effects` an inbox;
//! - `lines` is how events stand in files;
//! - `print` says what was found, `error` why nothing could be.
//!
//! The outbox is read first: what it says was sent must then be found at the destination, however
//! much is sent meanwhile.

mod arrivals;
mod effects;
mod emitted_events;
mod error;
mod lines;
mod print;

use std::process::ExitCode;

use hapax_messaging::audit::{Audit, Report, Rules};

pub(crate) use self::error::AuditError;
use crate::args::AuditArgs;

const FOUND: u8 = 1;
const CANNOT_TELL: u8 = 2;

/// Compares, and answers with the code to exit with.
pub(crate) fn run(args: &AuditArgs) -> ExitCode {
    let audited = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(AuditError::Runtime)
        .and_then(|runtime| runtime.block_on(audit(args)))
        .and_then(|report| print::report(&report, args.json).map(|()| report));
    match audited {
        Ok(report) if report.is_clean() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(FOUND),
        Err(error) => {
            error::tell(&error);
            ExitCode::from(CANNOT_TELL)
        }
    }
}

async fn audit(args: &AuditArgs) -> Result<Report, AuditError> {
    let mut audit = Audit::new();
    let outbox = args.file.or(&args.store);
    match (&args.emitted, &args.destination) {
        (Some(path), _) => emitted_events::from_file(&mut audit, path)?,
        (None, Some(name)) => emitted_events::from_outbox(&mut audit, &outbox, name).await?,
        // Clap has made sure that there is one of them.
        (None, None) => {}
    }
    if let Some(at) = &args.at {
        arrivals::read(&mut audit, at, args).await?;
    }
    if let Some(path) = &args.acted {
        effects::from_file(&mut audit, path)?;
    }
    if let Some(consumer) = &args.consumer {
        let store = args.inbox.as_deref().unwrap_or(&outbox);
        effects::from_inbox(&mut audit, store, consumer).await?;
    }
    Ok(audit.report(Rules {
        arrivals: args.at.is_some(),
        effects: args.acted.is_some() || args.consumer.is_some(),
        repeats: !args.no_repeats,
        // The outbox forgets what everybody has.
        strangers: args.emitted.is_none(),
        waiting: !args.drained,
    }))
}
