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
use hapax_core::DynStore;
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
    admin::{self, AdminSecret, AdminState, Meter, Meters, RelayFigures},
    client::{UpstreamClient, UpstreamClientError},
    config::{Config, Limits, Upstream},
    proxy::{self, Proxy},
    server::{
        Acceptor, AdminServer, Bounds, Pace, Protocols, Serving, Shares, TlsError, Wiring, Workers,
        for_clients, server_config,
    },
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
    admin_address: Option<SocketAddr>,
}

impl Gateway {
    /// Starts to serve clients. Must be called on a tokio runtime, which the engine then lives on.
    pub async fn start(config: Config, store: impl Into<DynStore>) -> Result<Self, StartError> {
        let later = Later::new(config.routes.clone(), Site::default());
        let engine = Engine::start(store, engine_options(&config, &later));
        let (meters, draining) = (Meters::default(), Arc::<AtomicBool>::default());
        let labels: Arc<[String]> = config.routes.labels().into();
        later.serve(proxy_for(&config, 1, meters.meter(&labels))?);
        let listener = listen(config.listen, "--listen").await?;
        let address = listener.local_addr().map_err(StartError::System)?;
        let admin_address = match config.admin {
            Some(admin) => {
                let token = config.admin_token.clone().and_then(AdminSecret::new);
                let (engine, meters) = (engine.clone(), meters.clone());
                let state = AdminState { engine, token, meters, draining: Arc::clone(&draining) };
                Some(administer(admin, state, &config.limits).await?)
            }
            None => None,
        };
        let (stop_accepting, stop) = watch::channel(false);
        let tls = config.tls.as_ref().map(server_config).transpose()?;
        let tls = Arc::new(ArcSwapOption::new(tls));
        let layer = layer(&config, &engine, &later);
        let (mut wirings, shares) = (Vec::new(), shares(&config.limits));
        for proxy in proxies(&config, &meters, &labels, worker_count(&config))? {
            wirings.push(Arc::new(Wiring {
                serving: ArcSwap::from_pointee(serving(&config, &layer, proxy)),
                tls: Arc::clone(&tls),
                bounds: bounds(&config.limits),
                shares: shares.clone(),
                protocols: Protocols::new(&config.limits),
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
            admin_address,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where health, metrics and the admin API are.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// What drives the store.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Shows relays that run beside it in its metrics: what `relays` says whenever somebody looks.
    pub fn show_relays(&self, relays: impl Fn() -> Vec<RelayFigures> + Send + Sync + 'static) {
        self.meters.show_relays(relays);
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
        let layer = layer(&config, &self.engine, &self.later);
        let fresh = proxies.into_iter().map(|proxy| serving(&config, &layer, proxy));
        self.workers.replace(fresh.collect());
        self.meters.record_reload();
        self.tls.store(tls);
        let kept = unchangeable(&self.config, &config);
        self.config = Config { listen: self.config.listen, ..config };
        Ok(kept)
    }

    /// Takes no new connections, lets requests under way finish, and ends.
    ///
    /// Says whether everything did within the time configured; what did not is left to its lease.
    pub async fn drain(self) -> bool {
        let until = Instant::now() + self.config.drain;
        self.draining.store(true, Relaxed);
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
        sweep_every: config.sweep_every,
        clock_stays: config.clock_stays,
        finisher: Some(later.finisher()),
        ..Options::default()
    }
}

async fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, StartError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|cause| StartError::Listen { address, flag, cause })
}

/// Serves the admin side for as long as the process lives.
async fn administer(
    address: SocketAddr,
    state: AdminState,
    limits: &Limits,
) -> Result<SocketAddr, StartError> {
    let listener = listen(address, "--admin").await?;
    let address = listener.local_addr().map_err(StartError::System)?;
    let server = AdminServer {
        router: admin::router(state),
        connections_max: limits.admin_connections_max,
        bounds: bounds(limits),
        body_pace: body_pace(limits),
        protocols: Protocols::new(limits),
    };
    tokio::spawn(server.run(listener));
    Ok(address)
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
    let Upstream { connections_max, reserve, .. } = config.upstream;
    let (connections_max, reserve) = (connections_max.div_ceil(clients), reserve.div_ceil(clients));
    let upstream = Upstream { connections_max, reserve, ..config.upstream.clone() };
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
fn layer(config: &Config, engine: &Engine, later: &Later) -> IdempotencyLayer {
    let layer = IdempotencyLayer::with_later(engine.clone(), config.tenancy.clone(), later)
        .with_origin(proxy::origin)
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
        service: layer.layer(proxy),
        hosts: config.hosts.clone(),
        cors: config.cors.clone().map(Arc::new),
        body_pace: body_pace(&config.limits),
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
        ("store", old.store != new.store),
        ("workers", old.workers != new.workers),
        ("tls", old.tls.is_some() != new.tls.is_some()),
        ("cache", old.cache_bytes_max != new.cache_bytes_max),
        ("sweep", old.sweep_every != new.sweep_every),
        ("clock_stays", old.clock_stays != new.clock_stays),
    ];
    differs.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect()
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
