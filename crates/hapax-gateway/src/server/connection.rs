//! One connection of a client, from its first byte to its last.

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use hapax_core::Store;
use hapax_tower::{Cors, Idempotency};
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
    peer::Peer,
    tls::{HTTP1, HTTP2},
    watch::{Bounds, Standing, Watch, Watched},
};
use crate::{admin::Meter, config::Limits, proxy::Proxy};

/// What every connection of a worker needs.
#[derive(Debug)]
pub(crate) struct Wiring<S: Store> {
    pub(crate) serving: ArcSwap<Serving<S>>,
    pub(crate) tls: Arc<ArcSwapOption<ServerConfig>>,
    pub(crate) bounds: Bounds,
    pub(crate) protocols: Protocols,
    /// Turns to true when connections should end after the request they have.
    pub(crate) draining: channel::Receiver<bool>,
}

/// What a reload replaces.
#[derive(Debug)]
pub(crate) struct Serving<S: Store> {
    pub(crate) service: Idempotency<Proxy, S>,
    pub(crate) hosts: Vec<String>,
    /// Which pages of other origins may read what the gateway itself says.
    pub(crate) cors: Option<Arc<Cors>>,
    pub(crate) body_timeout: Duration,
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
    fn agreed(&self, alpn: Option<&[u8]>) -> &auto::Builder<TokioExecutor> {
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
    // Said only where it differs: room for a number that is said is cleared for each request.
    if limits.headers_max != HEADERS_MAX_UNSAID {
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
const HEADERS_MAX_UNSAID: usize = 100;
/// The smallest buffer hyper accepts.
const BUFFER_MIN: usize = 8 << 10;
/// Most streams a client may open and reset before its connection is closed.
const RESETS_MAX: usize = 64;

/// Serves a connection until it ends, is overdue, or everything does.
pub(crate) async fn serve<S: Store>(tcp: TcpStream, wiring: Arc<Wiring<S>>) {
    let Ok(address) = tcp.peer_addr() else { return };
    let _ = tcp.set_nodelay(true);
    let _counted = wiring.serving.load().meter.connection();
    let watch = Watch::new(wiring.bounds);
    match wiring.tls.load_full() {
        None => drive(tcp, None, Peer::new(address, false), watch, wiring).await,
        Some(config) => {
            let accepting = TlsAcceptor::from(config).accept(tcp);
            if let Ok(Ok(stream)) = timeout(wiring.bounds.head, accepting).await {
                let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                drive(stream, agreed, Peer::new(address, true), watch, wiring).await;
            }
        }
    }
}

/// `agreed` is what TLS found out about the protocol.
async fn drive<I, S>(
    io: I,
    agreed: Option<Vec<u8>>,
    peer: Peer,
    watch: Arc<Watch>,
    wiring: Arc<Wiring<S>>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Store,
{
    let mut draining = wiring.draining.clone();
    let handler = Handler { wiring: Arc::clone(&wiring), watch: Arc::clone(&watch), peer };
    let io = TokioIo::new(Watched::new(Lingering::new(io), Arc::clone(&watch)));
    let connection = wiring.protocols.agreed(agreed.as_deref()).serve_connection(io, handler);
    let timer = sleep(wiring.bounds.head);
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
                Standing::Good { look_again } => timer.set(sleep(look_again)),
                Standing::Overdue => return,
            },
            _ = draining.wait_for(|draining| *draining), if !told_to_end => {
                connection.as_mut().graceful_shutdown();
                told_to_end = true;
            }
        }
    }
}
