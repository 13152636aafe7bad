//! One connection of a client, from its first byte to its last.

use std::{convert::Infallible, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use hapax_tower::{Cors, Idempotency, Room};
use http::{Request, Response};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    pin,
    sync::watch as channel,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;

use super::{
    handler::Handler,
    linger::Lingering,
    pace::Pace,
    peer::{CertificateNames, Peer},
    response_body::ResponseBody,
    tls::{HTTP1, HTTP2},
    watch::{Bounds, ConnectionWatch, Liveness},
    watched_io::WatchedIo,
};
use crate::{admin::Meter, config::Limits, proxy::Proxy, telemetry::Telemetry};

/// What every connection of a worker needs.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) serving: ArcSwap<Serving>,
    pub(crate) tls: Arc<ArcSwapOption<ServerConfig>>,
    pub(crate) bounds: Bounds,
    pub(crate) shares: Shares,
    pub(crate) protocols: Protocols,
    /// Who is told of each request.
    pub(crate) telemetry: Arc<Telemetry>,
    /// Turns to true when connections should end after the request they have.
    pub(crate) draining: channel::Receiver<bool>,
}

/// What one connection may use, and of what.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    /// Room for the answers of all connections that are not taken.
    pub(crate) answers: Room,
    /// Most bytes one connection may take of it, and of the room for requests.
    pub(crate) bytes_max: usize,
    /// Most requests one connection may have under way.
    pub(crate) under_way_max: usize,
}

/// What a reload replaces.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) service: Idempotency<Proxy>,
    pub(crate) hosts: Vec<String>,
    /// Which pages of other origins may read what the gateway itself says.
    pub(crate) cors: Option<Arc<Cors>>,
    pub(crate) body_pace: Pace,
    pub(crate) meter: Arc<Meter>,
}

/// The protocols spoken to clients, within the same limits.
#[derive(Debug)]
pub(crate) struct Protocols {
    /// Whichever a connection begins with.
    any: auto::Builder<TokioExecutor>,
    http1: auto::Builder<TokioExecutor>,
    http2: auto::Builder<TokioExecutor>,
}

impl Protocols {
    pub(crate) fn new(limits: &Limits) -> Self {
        let any = protocols(limits);
        Self { http1: any.clone().http1_only(), http2: any.clone().http2_only(), any }
    }

    /// What is spoken where TLS agreed on this: that, and nothing else.
    pub(super) fn agreed(&self, alpn: Option<&[u8]>) -> &auto::Builder<TokioExecutor> {
        match alpn {
            Some(HTTP2) => &self.http2,
            Some(HTTP1) => &self.http1,
            // Nobody said: connections without TLS, and clients that know no ALPN.
            Some(_) | None => &self.any,
        }
    }
}

fn protocols(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Heads and idle connections are watched by `watch`, with one timer for each connection.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max.max(BUFFER_MIN));
    // Set only where it differs: hyper clears its room for a number that was set at each request.
    if limits.headers_max != HYPER_HEADERS_DEFAULT {
        builder.http1().max_headers(limits.headers_max);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .keep_alive_interval(None);
    builder
}

/// Most headers hyper reads unless told otherwise.
const HYPER_HEADERS_DEFAULT: usize = 100;
/// The smallest buffer hyper accepts.
const BUFFER_MIN: usize = 8 << 10;
/// Most streams a client may open and reset, before they are looked at, until its connection is
/// closed.
const RESETS_MAX: usize = 64;

/// Serves a connection of a client until it ends, is overdue, or everything does.
pub(crate) async fn serve(tcp: TcpStream, wiring: Arc<Wiring>) {
    let Ok(address) = tcp.peer_addr() else { return };
    let _ = tcp.set_nodelay(true);
    let _counted = wiring.serving.load().meter.connection();
    let watch = ConnectionWatch::new(wiring.bounds);
    let handler = |peer| Handler::new(Arc::clone(&wiring), Arc::clone(&watch), peer);
    let draining = wiring.draining.clone();
    match wiring.tls.load_full() {
        None => {
            let handler = handler(Peer::new(address, false));
            drive(tcp, handler, &watch, wiring.protocols.agreed(None), draining).await;
        }
        Some(config) => {
            let accepting = TlsAcceptor::from(config).accept(tcp);
            if let Ok(Ok(stream)) = timeout(wiring.bounds.head, accepting).await {
                let session = stream.get_ref().1;
                let agreed = wiring.protocols.agreed(session.alpn_protocol());
                let mut peer = Peer::new(address, true);
                if let Some([certificate, ..]) = session.peer_certificates() {
                    peer = peer.named(CertificateNames::of(certificate));
                }
                drive(stream, handler(peer), &watch, agreed, draining).await;
            }
        }
    }
}

/// Has a handler answer what comes over a connection, within the bounds of its watch.
pub(super) async fn drive<I, H>(
    io: I,
    handler: H,
    watch: &Arc<ConnectionWatch>,
    protocols: &auto::Builder<TokioExecutor>,
    mut draining: channel::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>,
    H::Future: Send + 'static,
{
    let io = TokioIo::new(WatchedIo::new(Lingering::new(io), Arc::clone(watch)));
    let connection = protocols.serve_connection(io, handler);
    let timer = sleep(Duration::ZERO);
    pin!(connection, timer);
    let mut told_to_end = false;
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection failed");
                }
                return;
            }
            () = timer.as_mut() => match watch.standing() {
                Liveness::Good { look_again } => timer.set(sleep(look_again)),
                Liveness::Overdue => return,
            },
            () = watch.too_many_taken_back(), if !told_to_end => {
                tracing::warn!("a client takes back more requests than it waits for");
                connection.as_mut().graceful_shutdown();
                told_to_end = true;
            }
            _ = draining.wait_for(|draining| *draining), if !told_to_end => {
                connection.as_mut().graceful_shutdown();
                told_to_end = true;
            }
        }
    }
}
