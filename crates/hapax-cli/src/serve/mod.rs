//! `hapax serve`: the gateway as a process.

pub(crate) mod logs;
mod passed_sockets;
mod service_manager;

use std::{io, path::PathBuf, sync::Arc};

use hapax::{
    EncryptionError,
    encryption::{EncryptedInbox, OpenedOutbox, TenantKeys},
};
use hapax_core::outbox::EventOpener;
use hapax_gateway::{
    Config, Gateway, GatewayParts, StartError,
    config::{ConfigError, ConfigSource, Overrides, RouteMode, describe},
};
use hapax_messaging::{relay::RelayConfig, sink::SinkError};
use http::Uri;

use self::{
    logs::{fail, say},
    passed_sockets::PassedSocketError,
    service_manager::{ServiceManager, ServiceState, signs_of_life},
};
use crate::{
    args::{CheckConfigArgs, ServeArgs},
    relay::{GatewayFile, Relays, RelaysEnded, figures, load_gateway},
    signals::{Signal, Signals},
    store::{self, Access, AnyOutbox, InvalidAddress, OpenError, OpenStore, StoreAddress},
    telemetry::{Reporting, ReportingError, TelemetrySettings},
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
            store: args.file.address().or(args.store),
            admin: args.admin,
            tenant: args.tenant,
            admin_token,
            mode: match (args.observe, args.enforce) {
                (true, _) => Some(RouteMode::Observe),
                (false, true) => Some(RouteMode::Enforce),
                (false, false) => None,
            },
        },
    };
    let file = load_gateway(&source)?;
    // Clients are served by the workers' own threads; this one accepts, sweeps and administers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServeError::Runtime)?.block_on(serve(file, &source))
}

async fn serve(file: GatewayFile, source: &ConfigSource) -> Result<bool, ServeError> {
    let mut signals = Signals::listen().map_err(ServeError::Runtime)?;
    let manager = ServiceManager::find().map_err(ServeError::Manager)?;
    let ServingParts { mut gateway, mut crew, reporting, running } = start(file).await?;
    manager.tell(ServiceState::Ready);
    let mut signs = signs_of_life();
    loop {
        tokio::select! {
            signal = signals.next() => match signal {
                Signal::HangUp => {
                    manager.tell(ServiceState::Reloading);
                    if let Err(error) = reporting.reopen() {
                        fail(&crate::sentence(&error));
                    }
                    reload(&mut gateway, &running, source);
                    manager.tell(ServiceState::Ready);
                }
                Signal::Interrupt | Signal::Terminate => break,
            },
            () = sign_of_life(signs.as_mut()) => manager.tell(ServiceState::Alive),
            gone = relay_gone(crew.as_mut()) => fail(&gone),
        }
    }
    manager.tell(ServiceState::Stopping);
    say("letting requests finish; send the signal again to stop at once");
    let alive = async {
        loop {
            sign_of_life(signs.as_mut()).await;
            manager.tell(ServiceState::Alive);
        }
    };
    tokio::select! {
        (drained, relayed) = async { tokio::join!(gateway.drain(), stop(crew.as_mut())) } => {
            reporting.finish().await;
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
        () = alive => Ok(false),
    }
}

/// What serves, and what runs beside it.
struct ServingParts {
    gateway: Gateway,
    crew: Option<Relays>,
    reporting: Reporting,
    running: RunningBeside,
}

/// Starts everything that the file names, and says where it is.
async fn start(file: GatewayFile) -> Result<ServingParts, ServeError> {
    let GatewayFile { config, relays, telemetry } = file;
    let listeners = passed_sockets::take()?;
    if listeners.admin.is_some() && config.admin.is_none() {
        return Err(PassedSocketError::AdminIsOff.into());
    }
    let address: StoreAddress = config.store.parse()?;
    let store = OpenStore::open(&address, Access::Keep).await?;
    let (scheme, upstream) = (scheme(&config), config.upstream.url.clone());
    let (callers, notes) = (config.callers.clone(), config.notes.clone());
    let (mut reporting, told) = Reporting::open(&telemetry)?;
    let is_administered = has_people(&config);
    let outbox = if relays.is_empty() && !is_administered {
        None
    } else {
        store::outbox_of(&store, &address).await?
    };
    let consumed = store.clone();
    let keys = match &config.encryption {
        Some(encryption) => Some(TenantKeys::new(store.clone(), encryption.clone()).await?),
        None => None,
    };
    let opener = keys.clone().map(|keys| Arc::new(keys) as Arc<dyn EventOpener>);
    let crew = relay(relays.clone(), outbox.as_ref(), opener.as_ref())?;
    let store = match &config.encryption {
        Some(encryption) => store.encrypted(encryption.clone()).await?,
        None => store.into_dyn(),
    };
    let parts = GatewayParts { listeners, telemetry: told };
    let gateway = Gateway::start_with(config, store, parts).await?;
    show_outbox(&gateway, outbox, opener);
    show_inbox(&gateway, consumed, keys);
    if let Some(crew) = &crew {
        let meters = crew.meters();
        gateway.show_relays(move || figures(&meters));
    }
    let (meters, engine) = (gateway.meters().clone(), gateway.engine().clone());
    reporting.start(move || meters.families(&engine))?;
    say(&greeting(scheme, &gateway, &upstream, &address, is_administered));
    say(&callers);
    telemetry.describe().iter().for_each(|line| say(line));
    notes.iter().for_each(|note| say(&format!("note: {note}")));
    let running = RunningBeside { relays, telemetry };
    Ok(ServingParts { gateway, crew, reporting, running })
}

/// Lets operators look after events; after encrypted ones in the clear, where the keys are at hand.
fn show_outbox(gateway: &Gateway, outbox: Option<AnyOutbox>, opener: Option<Arc<dyn EventOpener>>) {
    match (outbox, opener) {
        (Some(outbox), Some(opener)) => gateway.show_outbox(OpenedOutbox::new(outbox, opener)),
        (Some(outbox), None) => gateway.show_outbox(outbox),
        (None, _) => {}
    }
}

/// The same for messages of consumers.
fn show_inbox(gateway: &Gateway, store: OpenStore, keys: Option<TenantKeys<OpenStore>>) {
    match (store, keys) {
        (OpenStore::Memory(_), _) => {}
        (OpenStore::Sqlite(store), Some(keys)) => {
            gateway.show_inbox(EncryptedInbox::new(store, keys));
        }
        (OpenStore::Sqlite(store), None) => gateway.show_inbox(store),
        (OpenStore::Postgres(store), Some(keys)) => {
            gateway.show_inbox(EncryptedInbox::new(store, keys));
        }
        (OpenStore::Postgres(store), None) => gateway.show_inbox(store),
    }
}

/// Ends when a sign of life is due; never if nobody waits for one.
async fn sign_of_life(signs: Option<&mut tokio::time::Interval>) {
    match signs {
        Some(signs) => drop(signs.tick().await),
        None => std::future::pending().await,
    }
}

/// Starts the relays that the file names, on the gateway's own store.
fn relay(
    relays: Vec<RelayConfig>,
    outbox: Option<&AnyOutbox>,
    opener: Option<&Arc<dyn EventOpener>>,
) -> Result<Option<Relays>, ServeError> {
    // Nothing can be emitted into a store in memory: the configuration was refused.
    let Some(outbox) = outbox.filter(|_| !relays.is_empty()) else { return Ok(None) };
    let crew = Relays::start(outbox, opener, relays)?;
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

/// What runs beside the gateway, and stays as it is until the next start.
struct RunningBeside {
    relays: Vec<RelayConfig>,
    telemetry: TelemetrySettings,
}

fn reload(gateway: &mut Gateway, running: &RunningBeside, source: &ConfigSource) {
    let reloaded = load_gateway(source).map_err(ServeError::from).and_then(|fresh| {
        let mut kept = gateway.reload(fresh.config)?;
        if fresh.relays != running.relays {
            kept.push("relay");
        }
        if fresh.telemetry.otlp != running.telemetry.otlp {
            kept.push("telemetry");
        }
        if fresh.telemetry.access_log != running.telemetry.access_log {
            kept.push("access_log");
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

fn greeting(
    scheme: &str,
    gateway: &Gateway,
    upstream: &Uri,
    address: &StoreAddress,
    is_administered: bool,
) -> String {
    let clients = gateway.address();
    let mut said =
        format!("serving {scheme}://{clients} in front of {upstream}, records in {address}");
    if let Some(admin) = gateway.admin_address() {
        said.push_str(&match is_administered {
            true => format!(", health, metrics and dashboard on http://{admin}"),
            false => format!(
                ", health and metrics on http://{admin}; HAPAX_ADMIN_TOKEN opens its dashboard"
            ),
        });
    }
    said
}

/// Whether somebody can sign in.
fn has_people(config: &Config) -> bool {
    let has_token = config.admin_token.is_some() || config.admin_read_token.is_some();
    config.admin.is_some() && (has_token || config.admin_oidc.is_some())
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
    let GatewayFile { config, .. } = load_gateway(&source)?;
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
    Encryption(#[from] EncryptionError),
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Passed(#[from] PassedSocketError),
    #[error("NOTIFY_SOCKET names no socket")]
    Manager(#[source] io::Error),
    #[error(transparent)]
    Telemetry(#[from] ReportingError),
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
