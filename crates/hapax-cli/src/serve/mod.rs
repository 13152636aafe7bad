//! `hapax serve`: the gateway as a process.

mod logs;
mod signals;

use std::io::{self, Write};

use hapax_gateway::{
    Config, Gateway, StartError,
    config::{ConfigError, Overrides, Source, describe},
};

use self::signals::{Signal, Signals};
use crate::{
    args::{CheckConfigArgs, ServeArgs},
    store::{self, Address, AnyStore, InvalidAddress, OpenError},
};

/// Serves until told to stop. Says whether everything came to its end.
pub(crate) fn run(args: ServeArgs) -> Result<bool, ServeError> {
    logs::start(&args.log)?;
    let source = Source {
        file: args.config,
        overrides: Overrides {
            listen: args.listen,
            upstream: args.upstream,
            store: args.store,
            admin: args.admin,
            admin_token: args.admin_token,
        },
    };
    let config = Config::load(&source)?;
    // Clients are served by the workers' own threads; this one accepts, sweeps and administers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServeError::Runtime)?.block_on(serve(config, &source))
}

async fn serve(config: Config, source: &Source) -> Result<bool, ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Runtime)?;
    let address: Address = config.store.parse()?;
    let store = store::open(&address).await?;
    let said = greeting(&config, &address);
    let mut gateway = Gateway::start(config, store).await?;
    say(&format!("serving http://{}{said}", gateway.address()));
    while signals.next().await == Signal::Reload {
        reload(&mut gateway, source);
    }
    say("letting requests finish; send the signal again to stop at once");
    tokio::select! {
        drained = gateway.drain() => {
            say(if drained { "stopped" } else { "stopped; some requests were cut off" });
            Ok(drained)
        }
        () = signals.stop() => {
            say("stopped at once");
            Ok(false)
        }
    }
}

fn reload(gateway: &mut Gateway<AnyStore>, source: &Source) {
    let reloaded = Config::load(source).map_err(ServeError::from).and_then(|config| {
        let kept = gateway.reload(config)?;
        Ok(kept)
    });
    match reloaded {
        Ok(kept) if kept.is_empty() => say("reloaded"),
        Ok(kept) => say(&format!("reloaded, except what needs a restart: {}", kept.join(", "))),
        Err(error) => say(&format!("not reloaded, everything stays as it was: {error}")),
    }
}

fn greeting(config: &Config, address: &Address) -> String {
    let mut said = format!(" in front of {}, records in {address}", config.upstream.url);
    if let Some(admin) = config.admin {
        said.push_str(&format!(", health and metrics on http://{admin}"));
    }
    for note in &config.notes {
        said.push_str(&format!("\nhapax: note: {note}"));
    }
    said
}

/// Reads a file, and says what would be in force.
pub(crate) fn check(args: CheckConfigArgs) -> Result<String, ServeError> {
    let source = Source { file: Some(args.file), overrides: Overrides::default() };
    let config = Config::load(&source)?;
    config.store.parse::<Address>()?;
    Ok(describe(&config))
}

fn say(what: &str) {
    // Nobody is left to be told when the terminal is gone.
    let _ = writeln!(io::stderr(), "hapax: {what}");
}

/// Why the gateway could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    #[error("the configuration cannot be used:\n{0}")]
    Config(#[from] ConfigError),
    #[error("the store's address cannot be used")]
    Address(#[from] InvalidAddress),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("`{filter}` is no log filter; write a level such as `info`, or `module=level`")]
    LogFilter { filter: String },
    #[error("the operating system refused what a server needs")]
    Runtime(#[source] io::Error),
}
