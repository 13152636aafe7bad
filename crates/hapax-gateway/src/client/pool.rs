//! Connections to one origin, kept while they are useful.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_tower::{AnswerBy, Body, BoxError};
use http::{
    HeaderValue, Request, Response, StatusCode, Uri, Version, header::HOST, uri::Authority,
};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    borrowed_connection::{BorrowedConnection, Returning},
    breaking::Breaking,
    connect::{Connected, Connector},
    error::SendError,
    exclusive_connection::{AnsweredExchange, ExclusiveConnection, NoHead},
    head::{self, ExpectedAnswer, Head, HeadLimits},
    idle::IdleConnections,
    unwritten_request::UnwrittenRequest,
    upgrade_offer::{SwitchedConnection, UpgradeOffer},
};
use crate::config::Upstream;

/// How often a request is moved to another connection because the one it had turned out to be
/// closed before anything was written, or the upstream did not take it there.
const MOVES_MAX: usize = 3;

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    /// Where HTTP/2 requests are addressed to; HTTP/1.1 names only the path.
    origin: Uri,
    connect_timeout: Duration,
    limits: HeadLimits,
    /// One for each HTTP/1.1 exchange under way.
    room: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
    /// What the last new connection spoke.
    speaks_http2: AtomicBool,
    shared: tokio::sync::Mutex<Option<http2::SendRequest<Body>>>,
}

/// What became of a request that offered to go on in another protocol.
pub(crate) enum OfferAnswer {
    /// The upstream went on in it: this is its last answer, and the connection.
    TakenUp(Response<Body>, SwitchedConnection),
    /// An answer like any other.
    Declined(Response<Body>),
}

/// What a connection was made for.
enum ConnectionPurpose {
    Http1(ExclusiveConnection),
    Http2(http2::SendRequest<Body>),
}

impl Pool {
    pub(crate) fn new(connector: Connector, upstream: &Upstream) -> Self {
        Self {
            speaks_http2: AtomicBool::new(connector.is_http2()),
            connector,
            origin: upstream.url.clone(),
            connect_timeout: upstream.connect_timeout,
            limits: HeadLimits::of(upstream),
            room: Arc::new(Semaphore::new(upstream.connections_max)),
            idle: Arc::new(IdleConnections::new(upstream.idle)),
            shared: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendError> {
        for _ in 0..MOVES_MAX {
            if !self.speaks_http2.load(Relaxed) {
                let room = self.room().await?;
                if let Some(link) = self.alone().await? {
                    return self.send_alone(link, request, room).await;
                }
                continue;
            }
            // Boxed, so that HTTP/1.1 does not pay for its size.
            match Box::pin(self.send_shared(request)).await? {
                Ok(response) => return Ok(response),
                Err(unsent) => request = unsent,
            }
        }
        Err(every_one_closed())
    }

    async fn room(&self) -> Result<OwnedSemaphorePermit, SendError> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
            return Ok(room);
        }
        let waiting = timeout(self.connect_timeout, Arc::clone(&self.room).acquire_owned());
        match Box::pin(waiting).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) | Err(_) => {
                Err(SendError::NothingSent("every connection to the upstream is in use".into()))
            }
        }
    }

    /// A connection for one exchange; `None` if the upstream turned out to speak HTTP/2.
    async fn alone(&self) -> Result<Option<ExclusiveConnection>, SendError> {
        if let Some(link) = self.idle.take() {
            return Ok(Some(link));
        }
        // Boxed, as most requests find a connection.
        match Box::pin(self.make()).await? {
            ConnectionPurpose::Http1(link) => Ok(Some(link)),
            ConnectionPurpose::Http2(fresh) => {
                *self.shared.lock().await = Some(fresh);
                self.speaks_http2.store(true, Relaxed);
                Ok(None)
            }
        }
    }

    /// Sends on a connection of its own, or on another one while nothing has left.
    async fn send_alone(
        &self,
        mut link: ExclusiveConnection,
        mut request: Request<Body>,
        room: OwnedSemaphorePermit,
    ) -> Result<Response<Body>, SendError> {
        say_time_left(&mut request)?;
        let method = request.method().clone();
        let mut request = UnwrittenRequest::new(request);
        for _ in 0..MOVES_MAX {
            match link.exchange(request, ExpectedAnswer::to(&method), self.limits).await {
                Ok(AnsweredExchange { head: Head { response, framing, keeps_open }, rest }) => {
                    let idle = Arc::clone(&self.idle);
                    let lent = BorrowedConnection { link, rest, keeps_open, idle, _room: room };
                    return Ok(response.map(|()| Returning::body(framing, lent)));
                }
                Err(NoHead::Failed(error)) => return Err(error),
                Err(NoHead::NothingSent(unsent)) => request = unsent,
            }
            let another = self.alone().await?;
            link = another.ok_or_else(every_one_closed)?;
        }
        Err(every_one_closed())
    }

    /// Whether the last new connection spoke HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.speaks_http2.load(Relaxed)
    }

    /// Whether the upstream speaks HTTP/1.1, where alone a connection goes on in another protocol.
    pub(crate) fn may_switch(&self) -> bool {
        !self.connector.is_http2()
    }

    /// Sends on a new connection, which is the client's own if the upstream takes the offer up.
    pub(crate) async fn send_offering(
        &self,
        mut request: Request<Body>,
        offer: &UpgradeOffer,
    ) -> Result<OfferAnswer, SendError> {
        let room = self.room().await?;
        let io = match timeout(self.connect_timeout, self.connector.connect_http1()).await {
            Ok(Ok(io)) => io,
            Ok(Err(error)) => return Err(SendError::NothingSent(error)),
            Err(_) => return Err(no_connection_in_time()),
        };
        say_time_left(&mut request)?;
        let method = request.method().clone();
        let expected = ExpectedAnswer { method: &method, offer: Some(offer) };
        let (mut link, request) = (ExclusiveConnection::new(io), UnwrittenRequest::new(request));
        let AnsweredExchange { head, rest } =
            match link.exchange(request, expected, self.limits).await {
                Ok(answered) => answered,
                Err(NoHead::Failed(error)) => return Err(error),
                Err(NoHead::NothingSent(_)) => return Err(every_one_closed()),
            };
        let Head { response, framing, keeps_open } = head;
        if let Some(protocol) = switched_to(&response, offer) {
            let (io, read_ahead) = link.into_parts();
            let switched = SwitchedConnection { io, read_ahead, protocol };
            return Ok(OfferAnswer::TakenUp(response.map(|()| Body::empty()), switched));
        }
        // What the upstream speaks otherwise decides which connections are kept.
        let keeps_open = keeps_open && !self.speaks_http2.load(Relaxed);
        let idle = Arc::clone(&self.idle);
        let lent = BorrowedConnection { link, rest, keeps_open, idle, _room: room };
        Ok(OfferAnswer::Declined(response.map(|()| Returning::body(framing, lent))))
    }

    /// Sends beside others, on the one HTTP/2 connection.
    async fn send_shared(
        &self,
        mut request: Request<Body>,
    ) -> Result<Result<Response<Body>, Request<Body>>, SendError> {
        let Some(mut sender) = self.shared().await? else { return Ok(Err(request)) };
        if sender.ready().await.is_err() {
            return Ok(Err(request));
        }
        say_time_left(&mut request)?;
        let copy = copy(&request);
        *request.version_mut() = Version::HTTP_2;
        let host = request.headers_mut().remove(HOST);
        *request.uri_mut() = self.at_origin(request.uri(), host.as_ref())?;
        let (request, breaking) = Breaking::watch(request);
        let mut error = match sender.try_send_request(request).await {
            Ok(mut response) => {
                let length = head::length(response.headers_mut());
                length.map_err(|bad| SendError::Unanswered(bad.into()))?;
                return Ok(Ok(response.map(Body::new)));
            }
            Err(error) => error,
        };
        if let Some(blamed) = breaking.blame() {
            return Err(blamed);
        }
        // A request that hyper gives back was not written.
        if let Some(mut unsent) = error.take_message() {
            unsent.headers_mut().extend(host.map(|host| (HOST, host)));
            return Ok(Err(unsent));
        }
        let error = error.into_error();
        if !was_refused(&error) {
            return Err(SendError::Unanswered(error.into()));
        }
        copy.map(Err).ok_or_else(|| SendError::NothingSent(error.into()))
    }

    /// The connection all share; `None` if the upstream turned out to speak HTTP/1.1.
    async fn shared(&self) -> Result<Option<http2::SendRequest<Body>>, SendError> {
        let mut shared = self.shared.lock().await;
        if let Some(open) = shared.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Some(open.clone()));
        }
        match self.make().await? {
            ConnectionPurpose::Http2(fresh) => *shared = Some(fresh),
            ConnectionPurpose::Http1(link) => {
                self.idle.put_back(link);
                self.speaks_http2.store(false, Relaxed);
                *shared = None;
            }
        }
        Ok(shared.clone())
    }

    /// A new connection; one for HTTP/2 has a task that drives it.
    async fn make(&self) -> Result<ConnectionPurpose, SendError> {
        let making = async {
            let Connected { io, http2 } = self.connector.connect().await?;
            Ok::<_, BoxError>(if http2 {
                let io = TokioIo::new(io);
                let mut builder = http2::Builder::new(TokioExecutor::new());
                let head_max = u32::try_from(self.limits.bytes_max).unwrap_or(u32::MAX);
                builder.timer(TokioTimer::new()).adaptive_window(true);
                builder.max_header_list_size(head_max);
                let (sender, connection) = builder.handshake(io).await?;
                tokio::spawn(connection);
                ConnectionPurpose::Http2(sender)
            } else {
                ConnectionPurpose::Http1(ExclusiveConnection::new(io))
            })
        };
        match timeout(self.connect_timeout, making).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) => Err(SendError::NothingSent(error)),
            Err(_) => Err(no_connection_in_time()),
        }
    }

    /// The whole address of a target, for the virtual host that its `Host` header names.
    fn at_origin(&self, target: &Uri, host: Option<&HeaderValue>) -> Result<Uri, SendError> {
        let mut parts = self.origin.clone().into_parts();
        let own = parts.authority.as_ref().map_or("", Authority::as_str);
        if let Some(host) = host.filter(|host| *host != own) {
            let host = Authority::try_from(host.as_bytes());
            parts.authority = Some(host.map_err(|error| SendError::NothingSent(error.into()))?);
        }
        parts.path_and_query = path_of(target).into_parts().path_and_query;
        Uri::from_parts(parts).map_err(|error| SendError::NothingSent(error.into()))
    }
}

/// Says anew how long the caller waits, which may have been spent on waiting for a connection.
fn say_time_left(request: &mut Request<Body>) -> Result<(), SendError> {
    let Some(by) = request.extensions().get::<AnswerBy>().copied() else { return Ok(()) };
    if by.left().is_zero() {
        return Err(SendError::NothingSent("the caller's time is over".into()));
    }
    by.say(request.headers_mut());
    Ok(())
}

/// The target without scheme and authority.
fn path_of(target: &Uri) -> Uri {
    target.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()))
}

/// The same request once more, for another connection, if all of its body is in memory.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().copy()?;
    let mut copy = Request::new(body);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// The protocol that an answer switches to; every other answer has another status.
fn switched_to(response: &Response<()>, offer: &UpgradeOffer) -> Option<HeaderValue> {
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    switches.then(|| offer.taken_up(response.headers())).flatten()
}

fn no_connection_in_time() -> SendError {
    SendError::NothingSent("no connection in time".into())
}

fn every_one_closed() -> SendError {
    SendError::NothingSent("the upstream took it on no connection".into())
}

/// Whether the upstream said that it has not looked at a request and never will: it refused the
/// stream (RFC 9113, 8.7), or it is going away and the stream is above the last one it will serve.
///
/// A stream that it may have served fails otherwise when the connection ends: by what ended it.
fn was_refused(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        let is_refusal = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        cause.is_remote() && (is_refusal || cause.is_go_away())
    })
}
