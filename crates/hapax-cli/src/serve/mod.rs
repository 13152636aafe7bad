//! `hapax serve`: the gateway as a process.

pub(crate) mod logs;

use std::{io, path::PathBuf};

use hapax_gateway::{
    Config, Gateway, StartError,
    config::{ConfigError, ConfigSource, Overrides, describe},
};
use hapax_messaging::{relay::RelayConfig, sink::SinkError};

use self::logs::{fail, say};
use crate::{
    args::{CheckConfigArgs, ServeArgs},
    relay::{Relays, RelaysEnded, figures, load_gateway},
    signals::{Signal, Signals},
    store::{self, Access, InvalidAddress, OpenError, OpenStore, StoreAddress},
    token::token_in,
};

/// Serves until told to stop. Says whether everything came to its end.
pub(crate) fn run(args: ServeArgs) -> Result<bool, ServeError> {
    logs::start(&args.log)?;
    let admin_token = admin_token(&args)?;
    let source = ConfigSource {
        file: args.config,
        overrides: Overrides {
            listen: args.listen,
            upstream: args.upstream,
            store: args.store,
            admin: args.admin,
            admin_token,
        },
    };
    let (config, relays) = load_gateway(&source)?;
    // Clients are served by the workers' own threads; this one accepts, sweeps and administers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServeError::Runtime)?.block_on(serve(config, relays, &source))
}

async fn serve(
    config: Config,
    relays: Vec<RelayConfig>,
    source: &ConfigSource,
) -> Result<bool, ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Runtime)?;
    let address: StoreAddress = config.store.parse()?;
    let store = OpenStore::open(&address, Access::Keep).await?;
    let (scheme, said) = (scheme(&config), greeting(&config, &address));
    let notes = config.notes.clone();
    let mut crew = relay(relays.clone(), &store, &address).await?;
    let mut gateway = Gateway::start(config, store.into_dyn()).await?;
    if let Some(crew) = &crew {
        let meters = crew.meters();
        gateway.show_relays(move || figures(&meters));
    }
    say(&format!("serving {scheme}://{}{said}", gateway.address()));
    notes.iter().for_each(|note| say(&format!("note: {note}")));
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::HangUp => reload(&mut gateway, &relays, source),
                Signal::Interrupt | Signal::Terminate => break,
            },
            gone = relay_gone(crew.as_mut()) => fail(&gone),
        }
    }
    say("letting requests finish; send the signal again to stop at once");
    tokio::select! {
        (drained, relayed) = async { tokio::join!(gateway.drain(), stop(crew.as_mut())) } => {
            say(match (drained, relayed) {
                (true, true) => "stopped",
                (true, false) => "stopped; a relay had ended before",
                (false, _) => "stopped; some requests were cut off",
            });
            Ok(drained && relayed)
        }
        () = signals.stop() => {
            say("stopped at once");
            Ok(false)
        }
    }
}

/// Starts the relays that the file names, on the gateway's own store.
async fn relay(
    relays: Vec<RelayConfig>,
    store: &OpenStore,
    address: &StoreAddress,
) -> Result<Option<Relays>, ServeError> {
    if relays.is_empty() {
        return Ok(None);
    }
    // Nothing can be emitted into a store in memory: the configuration was refused.
    let Some(outbox) = store::outbox_of(store, address).await? else { return Ok(None) };
    let crew = Relays::start(&outbox, relays)?;
    crew.greeting().iter().for_each(|line| say(line));
    Ok(Some(crew))
}

/// Ends when a relay does by itself, and says which; never if there is none.
async fn relay_gone(crew: Option<&mut Relays>) -> String {
    let Some(crew) = crew else { return std::future::pending().await };
    match crew.ended().await {
        RelaysEnded::One { name, error } => format!("relay {name}: {}", crate::sentence(&error)),
        RelaysEnded::All => std::future::pending().await,
    }
}

async fn stop(crew: Option<&mut Relays>) -> bool {
    match crew {
        Some(crew) => crew.stop().await,
        None => true,
    }
}

fn reload(gateway: &mut Gateway, running: &[RelayConfig], source: &ConfigSource) {
    let reloaded = load_gateway(source).map_err(ServeError::from).and_then(|(config, relays)| {
        let mut kept = gateway.reload(config)?;
        if relays != running {
            kept.push("relay");
        }
        Ok(kept)
    });
    match reloaded {
        Ok(kept) if kept.is_empty() => say("reloaded"),
        Ok(kept) => say(&format!("reloaded, except what needs a restart: {}", kept.join(", "))),
        Err(error) => {
            let why = crate::sentence(&error);
            fail(&format!("not reloaded, everything stays as it was: {why}"));
        }
    }
}

fn greeting(config: &Config, address: &StoreAddress) -> String {
    let mut said = format!(" in front of {}, records in {address}", config.upstream.url);
    if let Some(admin) = config.admin {
        said.push_str(&format!(", health and metrics on http://{admin}"));
    }
    said
}

fn scheme(config: &Config) -> &'static str {
    if config.tls.is_some() { "https" } else { "http" }
}

/// The token of the admin API; what is in a file counts for more.
fn admin_token(args: &ServeArgs) -> Result<Option<String>, ServeError> {
    if std::env::args_os()
        .any(|arg| arg.as_encoded_bytes().starts_with(b"--admin-token=") || arg == "--admin-token")
    {
        say("note: everybody on this machine can read --admin-token; give HAPAX_ADMIN_TOKEN or \
             --admin-token-file instead");
    }
    let Some(path) = &args.admin_token_file else { return Ok(args.admin_token.clone()) };
    let token = token_in(path);
    token.map(Some).map_err(|source| ServeError::TokenFile { path: path.clone(), source })
}

/// Reads a file, and says what would be in force.
pub(crate) fn check(args: CheckConfigArgs) -> Result<String, ServeError> {
    let source = ConfigSource { file: Some(args.file), overrides: Overrides::default() };
    let (config, _) = load_gateway(&source)?;
    config.store.parse::<StoreAddress>()?;
    Ok(describe(&config))
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
    #[error(transparent)]
    Relay(#[from] SinkError),
    #[error("cannot read --admin-token-file {}", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{filter}` is no log filter; write a level such as `info`, or `module=level`")]
    LogFilter { filter: String },
    #[error("the operating system refused what a server needs")]
    Runtime(#[source] io::Error),
}
