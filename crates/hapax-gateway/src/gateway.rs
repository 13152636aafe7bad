//! The gateway as a whole: started, reloaded, drained.

use std::{
    io,
    net::SocketAddr,
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use hapax_core::{DynStore, inbox::InboxAdmin, outbox::OutboxAdmin};
use hapax_encryption::KEYS_SEEN_FOR;
use hapax_engine::{Engine, Options};
use hapax_tower::{IdempotencyLayer, Later, Room, Routes, Site};
use rustls::ServerConfig;
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tower_layer::Layer;

use crate::{
    admin::{self, AdminAccess, AdminSecret, AdminState, Meter, Meters, RelayFigures, RelayPages},
    client::{UpstreamClient, UpstreamClientError},
    config::{Config, Limits, Upstream, describe},
    proxy::{self, Proxy},
    server::{
        Acceptor, AdminServer, Bounds, Pace, Protocols, Serving, Shares, TlsError, Wiring, Workers,
        for_clients, server_config,
    },
    telemetry::Telemetry,
};

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    address: SocketAddr,
    engine: Engine,
    later: Later,
    /// The routes keys in doubt are shown by.
    routes: Arc<ArcSwap<Routes>>,
    workers: Arc<Workers>,
    tls: Arc<ArcSwapOption<ServerConfig>>,
    stop_accepting: watch::Sender<bool>,
    meters: Meters,
    /// Tells the admin side that the gateway is no longer ready.
    draining: Arc<AtomicBool>,
    /// Where operators look, and what they see.
    admin: Option<(SocketAddr, AdminState)>,
}

impl Gateway {
    /// Starts to serve clients. Must be called on a tokio runtime, which the engine then lives on.
    pub async fn start(config: Config, store: impl Into<DynStore>) -> Result<Self, StartError> {
        Self::start_with(config, store, GatewayParts::default()).await
    }

    /// The same with what somebody else has made ready for it.
    pub async fn start_with(
        config: Config,
        store: impl Into<DynStore>,
        parts: GatewayParts,
    ) -> Result<Self, StartError> {
        let GatewayParts { listeners, telemetry } = parts;
        let telemetry = Arc::new(telemetry);
        let later = Later::new(config.routes.clone(), Site::default());
        if let Some(tracer) = telemetry.tracer.clone() {
            later.prepare_with(move |request, attempt| tracer.resume(request, attempt));
        }
        let engine = Engine::start(store, engine_options(&config, &later));
        let (meters, draining) = (Meters::default(), Arc::<AtomicBool>::default());
        meters.show_losses(&telemetry);
        let labels: Arc<[String]> = config.routes.labels().into();
        later.serve(proxy_for(&config, 1, meters.meter(&labels))?);
        let listener = listen(listeners.clients, config.listen, "--listen").await?;
        let address = listener.local_addr().map_err(StartError::System)?;
        let admin = match admin_listener(listeners.admin, &config).await? {
            Some(listener) => {
                let watched = (engine.clone(), meters.clone(), Arc::clone(&draining));
                Some(administer(listener, watched, &config)?)
            }
            None => None,
        };
        let (stop_accepting, stop) = watch::channel(false);
        let tls = config.tls.as_ref().map(server_config).transpose()?;
        let tls = Arc::new(ArcSwapOption::new(tls));
        let layer = layer(&config, &engine, &later, &meters);
        let (mut wirings, shares) = (Vec::new(), shares(&config.limits));
        for proxy in proxies(&config, &meters, &labels, worker_count(&config))? {
            wirings.push(Arc::new(Wiring {
                serving: ArcSwap::from_pointee(serving(&config, &layer, proxy)),
                tls: Arc::clone(&tls),
                bounds: bounds(&config.limits),
                shares: shares.clone(),
                protocols: Protocols::new(&config.limits),
                telemetry: Arc::clone(&telemetry),
                draining: stop.clone(),
            }));
        }
        let workers = Arc::new(Workers::start(wirings).map_err(StartError::System)?);
        let acceptor = Acceptor {
            listener,
            workers: Arc::clone(&workers),
            connections_max: for_clients(&config),
            meter: meters.meter(&labels),
            stop,
        };
        tokio::spawn(acceptor.run());
        let routes = Arc::new(ArcSwap::from_pointee(config.routes.clone()));
        let looking = (engine.clone(), meters.clone(), Arc::clone(&routes));
        tokio::spawn(look_for_doubts(looking, config.sweep_every, stop_accepting.subscribe()));
        Ok(Self {
            config,
            address,
            engine,
            later,
            routes,
            workers,
            tls,
            stop_accepting,
            meters,
            draining,
            admin,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where health, metrics, the admin API and the dashboard are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(address, _)| *address)
    }

    /// What drives the store.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What is counted of it.
    pub fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Shows relays that run beside it in its metrics: what `relays` says whenever somebody looks.
    pub fn show_relays(&self, relays: impl Fn() -> Vec<RelayFigures> + Send + Sync + 'static) {
        self.meters.show_relays(relays);
    }

    /// Lets operators look after this outbox.
    pub fn show_outbox(&self, outbox: impl OutboxAdmin + 'static) {
        if let Some((_, admin)) = &self.admin {
            admin.show_outbox(outbox);
        }
    }

    /// Lets operators look after the consumers of this inbox.
    pub fn show_inbox(&self, inbox: impl InboxAdmin + 'static) {
        if let Some((_, admin)) = &self.admin {
            admin.show_inbox(inbox);
        }
    }

    /// How many connections of clients are open.
    pub fn connections(&self) -> usize {
        self.workers.connections()
    }

    /// Serves new requests as `config` says; requests under way and connections are left alone.
    ///
    /// Gives back what stays as it was until the next start. On an error nothing is changed.
    pub fn reload(&mut self, config: Config) -> Result<Vec<&'static str>, StartError> {
        let tls = config.tls.as_ref().map(server_config).transpose()?;
        let labels: Arc<[String]> = config.routes.labels().into();
        let for_later = proxy_for(&config, 1, self.meters.meter(&labels))?;
        let proxies = proxies(&config, &self.meters, &labels, self.workers.count())?;
        self.later.replace(config.routes.clone());
        self.routes.store(Arc::new(config.routes.clone()));
        self.later.serve(for_later);
        let layer = layer(&config, &self.engine, &self.later, &self.meters);
        let fresh = proxies.into_iter().map(|proxy| serving(&config, &layer, proxy));
        self.workers.replace(fresh.collect());
        self.meters.record_reload();
        self.tls.store(tls);
        let kept = unchangeable(&self.config, &config);
        self.config = Config { listen: self.config.listen, ..config };
        if let Some((_, admin)) = &self.admin {
            admin.show_configuration(describe(&self.config));
        }
        Ok(kept)
    }

    /// Is not ready any more and serves on for as long as configured, so that nobody sends new
    /// requests here. Then takes no new connections, lets requests under way finish, and ends.
    ///
    /// Says whether everything did within the time configured; what did not is left to its lease.
    pub async fn drain(self) -> bool {
        self.draining.store(true, Relaxed);
        sleep(self.config.drain_delay).await;
        let until = Instant::now() + self.config.drain;
        self.stop_accepting.send_replace(true);
        let left = || until.saturating_duration_since(Instant::now());
        let closed = timeout(left(), async {
            while self.workers.connections() > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        });
        let closed = closed.await.is_ok();
        let settled = self.engine.shut_down(left().max(LAST_MOMENT)).await;
        self.workers.stop();
        closed && settled
    }
}

/// Time to settle for operations whose clients took all of the drain.
const LAST_MOMENT: Duration = Duration::from_millis(500);

fn engine_options(config: &Config, later: &Later) -> Options {
    Options {
        cache_bytes_max: config.cache_bytes_max,
        // Answers in memory are in the clear: what was erased in the store must not be told from there.
        cache_cleared_every: config.encryption.as_ref().map(|_| KEYS_SEEN_FOR),
        sweep_every: config.sweep_every,
        clock_stays: config.clock_stays,
        finisher: Some(later.finisher()),
        ..Options::default()
    }
}

/// What a gateway does not make for itself.
#[derive(Debug, Default)]
pub struct GatewayParts {
    /// Sockets it is given.
    pub listeners: Listeners,
    /// Whom it tells of each request.
    pub telemetry: Telemetry,
}

/// Sockets that somebody else has opened, and listens on: they are used instead of the addresses
/// that are configured.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For clients.
    pub clients: Option<std::net::TcpListener>,
    /// For health, metrics and the admin API.
    pub admin: Option<std::net::TcpListener>,
}

/// The socket that was opened, or else one at this address.
async fn listen(
    opened: Option<std::net::TcpListener>,
    address: SocketAddr,
    flag: &'static str,
) -> Result<TcpListener, StartError> {
    if let Some(listener) = opened {
        listener.set_nonblocking(true).map_err(StartError::System)?;
        return TcpListener::from_std(listener).map_err(StartError::System);
    }
    let listener = TcpListener::bind(address).await;
    listener.map_err(|cause| StartError::Listen { address, flag, cause })
}

/// Serves the pages of relays that run without a gateway for as long as the process lives, and says where. Must be
/// called on a tokio runtime.
pub async fn serve_relay_pages(
    address: SocketAddr,
    pages: RelayPages,
) -> Result<SocketAddr, StartError> {
    let listener = listen(None, address, "--admin").await?;
    let address = listener.local_addr().map_err(StartError::System)?;
    serve_pages(listener, pages.router(), &Limits::default());
    Ok(address)
}

/// Where operators connect, if anywhere. Who opened the socket may not have asked for a token.
async fn admin_listener(
    opened: Option<std::net::TcpListener>,
    config: &Config,
) -> Result<Option<TcpListener>, StartError> {
    let Some(address) = config.admin else { return Ok(None) };
    let listener = listen(opened, address, "--admin").await?;
    let address = listener.local_addr().map_err(StartError::System)?;
    let is_guarded = config.admin_token.is_some() || config.admin_oidc.is_some();
    if !address.ip().is_loopback() && !is_guarded {
        return Err(StartError::OpenToAnybody { address });
    }
    Ok(Some(listener))
}

/// Serves the admin side for as long as the process lives.
fn administer(
    listener: TcpListener,
    (engine, meters, draining): (Engine, Meters, Arc<AtomicBool>),
    config: &Config,
) -> Result<(SocketAddr, AdminState), StartError> {
    let address = listener.local_addr().map_err(StartError::System)?;
    let access = AdminAccess {
        operate: config.admin_token.clone().and_then(AdminSecret::new),
        read: config.admin_read_token.clone().and_then(AdminSecret::new),
        hosts: config.admin_hosts.clone(),
        address,
        oidc: config.admin_oidc.clone(),
    };
    let state = AdminState::new(engine, access, meters, draining);
    state.show_configuration(describe(config));
    tokio::spawn(state.clone().keep_figures());
    serve_pages(listener, admin::router(state.clone()), &config.limits);
    Ok((address, state))
}

/// Answers operators for as long as the process lives.
fn serve_pages(listener: TcpListener, router: Router, limits: &Limits) {
    let server = AdminServer {
        router,
        connections_max: limits.admin_connections_max,
        bounds: bounds(limits),
        body_pace: body_pace(limits),
        protocols: Protocols::new(limits),
    };
    tokio::spawn(server.run(listener));
}

/// Keeps the metrics of keys in doubt as the store has them, until told to stop.
async fn look_for_doubts(
    (engine, meters, routes): (Engine, Meters, Arc<ArcSwap<Routes>>),
    every: Duration,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        // While the store cannot be asked, what was last seen is shown, and how old that is.
        if let Err(error) = meters.look_for_doubts(&engine, &routes.load_full()).await {
            tracing::debug!(%error, "keys in doubt could not be looked for");
        }
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(every) => {}
        }
    }
}

/// How long what may take on a connection.
fn bounds(limits: &Limits) -> Bounds {
    Bounds {
        head: limits.head_timeout,
        idle: limits.idle_timeout,
        answer: Pace::new(limits.body_bytes_per_second_min, limits.send_timeout),
        taken_back_max: limits.streams_max,
    }
}

fn body_pace(limits: &Limits) -> Pace {
    Pace::new(limits.body_bytes_per_second_min, limits.body_timeout)
}

fn shares(limits: &Limits) -> Shares {
    Shares {
        answers: Room::of(limits.answers_bytes_max),
        bytes_max: limits.share_bytes_max,
        under_way_max: usize::try_from(limits.streams_max).unwrap_or(usize::MAX),
    }
}

/// One of `clients` that share what the upstream is given.
fn proxy_for(
    config: &Config,
    clients: usize,
    meter: Arc<Meter>,
) -> Result<Proxy, UpstreamClientError> {
    let Upstream { connections_max, reserve, long_lived_max, .. } = config.upstream;
    let [connections_max, reserve, long_lived_max] =
        [connections_max, reserve, long_lived_max].map(|all| all.div_ceil(clients));
    let upstream = Upstream { connections_max, reserve, long_lived_max, ..config.upstream.clone() };
    Ok(Proxy::new(UpstreamClient::new(&upstream)?, &upstream, meter))
}

/// A proxy and a meter for each worker.
fn proxies(
    config: &Config,
    meters: &Meters,
    labels: &Arc<[String]>,
    workers: usize,
) -> Result<Vec<(Proxy, Arc<Meter>)>, UpstreamClientError> {
    let one = |_| {
        let meter = meters.meter(labels);
        Ok((proxy_for(config, workers, Arc::clone(&meter))?, meter))
    };
    (0..workers).map(one).collect()
}

/// The layer all workers share, and with it the room for bodies.
fn layer(config: &Config, engine: &Engine, later: &Later, meters: &Meters) -> IdempotencyLayer {
    let observations = meters.observations();
    observations.observe(config.routes.observed_labels());
    let layer = IdempotencyLayer::with_later(engine.clone(), config.tenancy.clone(), later)
        .with_origin(proxy::origin)
        .observed_by(observations.observer())
        .buffer_at_most(config.limits.buffered_bytes_max);
    match &config.cors {
        Some(cors) => layer.cors(cors.clone()),
        None => layer,
    }
}

fn serving(
    config: &Config,
    layer: &IdempotencyLayer,
    (proxy, meter): (Proxy, Arc<Meter>),
) -> Serving {
    Serving {
        service: layer.layer(proxy.clone()),
        proxy,
        hosts: config.hosts.clone(),
        cors: config.cors.clone().map(Arc::new),
        body_pace: body_pace(&config.limits),
        // Any byte will do.
        call_pace: Pace::new(0, config.upstream.silence_max),
        meter,
    }
}

fn worker_count(config: &Config) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    config.workers.unwrap_or_else(cores).max(1)
}

/// Settings that differ and need a new start to matter.
fn unchangeable(old: &Config, new: &Config) -> Vec<&'static str> {
    let differs = [
        ("listen", old.listen != new.listen),
        ("admin", old.admin != new.admin),
        ("admin_token", old.admin_token != new.admin_token),
        ("admin_read_token", old.admin_read_token != new.admin_read_token),
        ("admin_hosts", old.admin_hosts != new.admin_hosts),
        ("admin_oidc", old.admin_oidc != new.admin_oidc),
        ("store", old.store != new.store),
        ("encryption", keys(old) != keys(new)),
        ("workers", old.workers != new.workers),
        ("tls", old.tls.is_some() != new.tls.is_some()),
        ("cache", old.cache_bytes_max != new.cache_bytes_max),
        ("sweep", old.sweep_every != new.sweep_every),
        ("clock_stays", old.clock_stays != new.clock_stays),
    ];
    differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
}

/// What of the encryption can be compared: the names of its keys, and for how long data keys are used.
fn keys(config: &Config) -> Option<(Vec<&str>, Option<Duration>)> {
    let encryption = config.encryption.as_ref()?;
    let masters = std::iter::once(&encryption.master).chain(&encryption.previous);
    Some((masters.map(|master| master.name()).collect(), encryption.rotate_after))
}

/// Why nobody can listen there, as what a person can do about it.
fn why_not(cause: &io::Error) -> &'static str {
    let known = [
        (io::ErrorKind::AddrInUse, "something else listens there"),
        (io::ErrorKind::AddrNotAvailable, "this machine has no such address"),
        (
            io::ErrorKind::PermissionDenied,
            "this user may not (ports below 1024 are for root, or need CAP_NET_BIND_SERVICE)",
        ),
    ];
    let why = known.into_iter().find(|(kind, _)| *kind == cause.kind());
    why.map_or("the operating system refused", |(_, why)| why)
}

/// Why a gateway could not start, or could not be reloaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {}; choose another by {flag}", why_not(cause))]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What chooses it.
        flag: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A socket for the admin side was passed that others can reach.
    #[error(
        "anybody who reaches {address} could change keys; give the admin side a token, or a socket \
         of 127.0.0.1"
    )]
    OpenToAnybody {
        /// The address.
        address: SocketAddr,
    },
    /// The upstream cannot be spoken to.
    #[error("the upstream cannot be used")]
    Upstream(#[from] UpstreamClientError),
    /// The certificate cannot be used.
    #[error("TLS cannot be offered")]
    Tls(#[from] TlsError),
    /// The operating system gave no thread or socket.
    #[error("the operating system refused what a gateway needs")]
    System(#[source] io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_needs_a_right_is_not_said_to_be_taken() {
        let refused = StartError::Listen {
            address: SocketAddr::from(([127, 0, 0, 1], 80)),
            flag: "--listen",
            cause: io::Error::from(io::ErrorKind::PermissionDenied),
        };
        let said = refused.to_string();
        assert!(said.contains("this user may not") && !said.contains("something else"), "{said}");
    }
}
