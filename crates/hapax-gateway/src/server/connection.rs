//! One connection of a client, from its first byte to its last.

use std::{convert::Infallible, fmt, pin::Pin, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use hapax_tower::{Cors, Idempotency, Room};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::Service};
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
    tunnel::TunnelSlot,
    watch::{Bounds, ConnectionWatch, Liveness},
    watched_io::WatchedIo,
};
use crate::{
    admin::Meter,
    config::Limits,
    proxy::{LongLivedCall, Proxy},
    telemetry::Telemetry,
};

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
    /// How slowly the messages of a call may come that lasts as long as both ends wish.
    pub(crate) call_pace: Pace,
    pub(crate) proxy: Proxy,
    pub(crate) meter: Arc<Meter>,
}

impl Serving {
    /// How fast the body of a request has to come. One that may last is told apart from here on.
    pub(super) fn pace<B>(&self, request: &mut Request<B>) -> Pace {
        if !self.proxy.lets_last(request) {
            return self.body_pace;
        }
        request.extensions_mut().insert(LongLivedCall);
        self.call_pace
    }
}

/// The protocols spoken to clients, within the same limits.
#[derive(Debug)]
pub(crate) struct Protocols {
    /// Whichever a connection begins with.
    any: auto::Builder<TokioExecutor>,
    http1: http1::Builder,
    http2: auto::Builder<TokioExecutor>,
}

impl Protocols {
    pub(crate) fn new(limits: &Limits) -> Self {
        let any = protocols(limits);
        Self { http1: http1_alone(limits), http2: any.clone().http2_only(), any }
    }

    /// What is spoken where TLS agreed on this: that, and nothing else.
    pub(super) fn agreed(&self, alpn: Option<&[u8]>) -> AgreedProtocol<'_> {
        match alpn {
            Some(HTTP2) => AgreedProtocol::Http2(&self.http2),
            Some(HTTP1) => AgreedProtocol::Http1(&self.http1),
            // Nobody said: connections without TLS, and clients that know no ALPN.
            Some(_) | None => AgreedProtocol::Any(&self.any),
        }
    }
}

/// What a client may speak on its connection, and who understands it.
#[derive(Clone, Copy)]
pub(super) enum AgreedProtocol<'a> {
    Any(&'a auto::Builder<TokioExecutor>),
    Http1(&'a http1::Builder),
    Http2(&'a auto::Builder<TokioExecutor>),
}

/// HTTP/1.1 as `protocols` speaks it.
fn http1_alone(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes_max.max(BUFFER_MIN));
    if limits.headers_max != HYPER_HEADERS_DEFAULT {
        builder.max_headers(limits.headers_max);
    }
    builder
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
    let tunnel = TunnelSlot::default();
    let handler =
        |peer| Handler::new(Arc::clone(&wiring), Arc::clone(&watch), peer, tunnel.clone());
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
    if let Some(tunnel) = tunnel.take() {
        // Boxed, so that other connections do not pay for its size.
        Box::pin(tunnel.run(wiring.bounds.answer.span, wiring.draining.clone())).await;
    }
}

/// Has a handler answer what comes over a connection, within the bounds of its watch.
pub(super) async fn drive<I, H>(
    io: I,
    handler: H,
    watch: &Arc<ConnectionWatch>,
    agreed: AgreedProtocol<'_>,
    draining: channel::Receiver<bool>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>,
    H::Future: Send + 'static,
{
    let io = TokioIo::new(WatchedIo::new(Lingering::new(io), Arc::clone(watch)));
    match agreed {
        AgreedProtocol::Any(builder) => {
            let connection = builder.serve_connection_with_upgrades(io, handler);
            attend(connection, |open| open.graceful_shutdown(), watch, draining).await;
        }
        AgreedProtocol::Http1(builder) => {
            let connection = builder.serve_connection(io, handler).with_upgrades();
            attend(connection, |open| open.graceful_shutdown(), watch, draining).await;
        }
        AgreedProtocol::Http2(builder) => {
            let connection = builder.serve_connection(io, handler);
            attend(connection, |open| open.graceful_shutdown(), watch, draining).await;
        }
    }
}

/// Lets a connection go on until it ends, is overdue, or everything does.
async fn attend<C, E>(
    connection: C,
    tell_to_end: impl Fn(Pin<&mut C>),
    watch: &Arc<ConnectionWatch>,
    mut draining: channel::Receiver<bool>,
) where
    C: Future<Output = Result<(), E>>,
    E: fmt::Display,
{
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
                tell_to_end(connection.as_mut());
                told_to_end = true;
            }
            _ = draining.wait_for(|draining| *draining), if !told_to_end => {
                tell_to_end(connection.as_mut());
                told_to_end = true;
            }
        }
    }
}
