//! `hapax relay`: what was emitted, sent to where it is wanted.
//!
//! - `wish` is what the arguments say, as the tables of a file say it;
//! - `crew` runs relays side by side, here and in `hapax serve`;
//! - `sink` makes what a destination's address stands for;
//! - `progress` says how far they are, `error` what went wrong.

mod crew;
mod error;
mod progress;
mod sink;
mod wish;

pub(crate) use self::{
    crew::{Crew, Ended},
    error::RelayRunError,
    sink::SinkError,
};
use self::{progress::Progress, wish::Wish};
use crate::{
    args::RelayArgs,
    serve::{
        logs::{self, fail, say},
        signals::{Signal, Signals},
    },
    store::{Access, Address, open_outbox},
};

/// Relays until told to stop. Says whether everything came to its end.
pub(crate) fn run(args: &RelayArgs) -> Result<bool, RelayRunError> {
    logs::start(&args.log)?;
    let wish = Wish::read(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(RelayRunError::Runtime)?.block_on(relay(args, wish))
}

async fn relay(args: &RelayArgs, wish: Wish) -> Result<bool, RelayRunError> {
    let mut signals = Signals::listen().map_err(RelayRunError::Runtime)?;
    let address: Address = wish.store.parse()?;
    let mut outbox = open_outbox(&address, Access::Change).await?.ok_or(RelayRunError::Memory)?;
    if args.follow {
        outbox = outbox.follow(&address).await?.ok_or(RelayRunError::NoLog)?;
    }
    let mut crew = Crew::start(&outbox, wish.destinations)?;
    for line in crew.greeting() {
        say(&format!("{line}, from {address}"));
    }
    let mut progress = Progress::new(outbox, crew.meters(), args.every);
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                // There is nothing to read again.
                Signal::Reload => {}
                Signal::Stop => break,
            },
            ended = crew.ended() => match ended {
                Ended::One { name, error } => fail(&format!("{name}: {}", crate::sentence(&error))),
                Ended::All => return Ok(false),
            },
            lines = progress.next() => lines.iter().for_each(|line| say(line)),
        }
    }
    say("finishing what is under way; send the signal again to stop at once");
    tokio::select! {
        finished = crew.stop() => {
            progress.last().await.iter().for_each(|line| say(line));
            say("stopped");
            Ok(finished)
        }
        () = signals.stop() => {
            say("stopped at once; what was under way is sent again by the next relay");
            Ok(false)
        }
    }
}
