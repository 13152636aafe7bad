//! `hapax relay`: what was emitted, sent to where it is wanted.
//!
//! - `tables` reads destinations from a file, a gateway's or a relay's own `file`; `settings` is
//!   what the arguments say, in the same form;
//! - `relays` runs relays side by side, here and in `hapax serve`;
//! - `reporter` says how far they are, `pages` shows it to operators, `error` is what went wrong.

mod error;
mod file;
mod pages;
mod relays;
mod reporter;
mod settings;
mod tables;

pub(crate) use self::{
    error::RelayRunError,
    relays::{Relays, RelaysEnded, figures},
    tables::{GatewayFile, load_gateway},
};
use hapax_gateway::serve_relay_pages;

use self::{reporter::RelayReporter, settings::RelaySettings};
use crate::{
    args::RelayArgs,
    serve::logs::{self, fail, say},
    signals::{Signal, Signals},
    store::{Access, OpenStore, StoreAddress, open_outbox, opener},
    telemetry::Reporting,
};

/// Relays until told to stop. Says whether everything came to its end.
pub(crate) fn run(args: &RelayArgs) -> Result<bool, RelayRunError> {
    logs::start(&args.log)?;
    let wish = RelaySettings::read(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(RelayRunError::Runtime)?.block_on(relay(args, wish))
}

async fn relay(args: &RelayArgs, wish: RelaySettings) -> Result<bool, RelayRunError> {
    let mut signals = Signals::listen().map_err(RelayRunError::Runtime)?;
    let address: StoreAddress = wish.store.parse()?;
    let mut outbox = open_outbox(&address, Access::Change).await?.ok_or(RelayRunError::Memory)?;
    if args.follow {
        outbox = outbox.follow(&address).await?.ok_or(RelayRunError::NoLog)?;
    }
    let (mut reporting, _) = Reporting::open(&wish.telemetry)?;
    let opener = match wish.encryption {
        Some(encryption) => {
            Some(opener(OpenStore::open(&address, Access::Look).await?, encryption).await?)
        }
        None => None,
    };
    let mut crew = Relays::start(&outbox, opener.as_ref(), wish.destinations)?;
    let pages = pages::of(&outbox, crew.meters());
    let admin = match wish.admin {
        Some(admin) => Some(serve_relay_pages(admin, pages.clone()).await?),
        None => None,
    };
    reporting.start(move || pages.families())?;
    for line in crew.greeting() {
        say(&format!("{line}, from {address}"));
    }
    if let Some(admin) = admin {
        say(&format!("health and metrics on http://{admin}"));
    }
    wish.telemetry.describe().iter().for_each(|line| say(line));
    let mut progress = RelayReporter::new(outbox, crew.meters(), args.every);
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                // There is nothing to read again.
                Signal::HangUp => {}
                Signal::Interrupt | Signal::Terminate => break,
            },
            ended = crew.ended() => match ended {
                RelaysEnded::One { name, error } => {
                    fail(&format!("{name}: {}", crate::sentence(&error)));
                }
                RelaysEnded::All => return Ok(false),
            },
            lines = progress.next() => lines.iter().for_each(|line| say(line)),
        }
    }
    say("finishing what is under way; send the signal again to stop at once");
    tokio::select! {
        finished = crew.stop() => {
            progress.last().await.iter().for_each(|line| say(line));
            reporting.finish().await;
            say("stopped");
            Ok(finished)
        }
        () = signals.stop() => {
            say("stopped at once; what was under way is sent again by the next relay");
            Ok(false)
        }
    }
}
