//! Connections to one origin, kept while they are useful.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use hapax_tower::{AnswerBy, Body, BoxError};
use http::{Request, Response, StatusCode, Uri, Version};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{
    connect::{Connected, Connector},
    error::SendError,
    returning::Returning,
};
use crate::config::Upstream;

/// How often a request is moved to another connection because the one it had turned out to be
/// closed before anything was written.
const MOVES_MAX: usize = 3;

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    /// Where HTTP/2 requests are addressed to; HTTP/1.1 names only the path.
    origin: Uri,
    connect_timeout: Duration,
    idle_max: Duration,
    /// One for each HTTP/1.1 exchange under way.
    room: Arc<Semaphore>,
    idle: Arc<Idle>,
    /// What the last new connection spoke.
    speaks_http2: AtomicBool,
    shared: tokio::sync::Mutex<Option<http2::SendRequest<Body>>>,
}

/// A connection nobody uses.
pub(crate) type Sender = http1::SendRequest<Body>;

/// The connections nobody uses, the last one put back on top.
#[derive(Debug, Default)]
pub(crate) struct Idle(Mutex<Vec<(Sender, Instant)>>);

impl Idle {
    fn lock(&self) -> MutexGuard<'_, Vec<(Sender, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put_back(&self, sender: Sender) {
        if !sender.is_closed() {
            self.lock().push((sender, Instant::now()));
        }
    }

    /// The one used last, unless it was closed or unused for too long; those are dropped.
    fn take(&self, idle_max: Duration) -> Option<Sender> {
        let mut idle = self.lock();
        while let Some((sender, since)) = idle.pop() {
            if since.elapsed() > idle_max {
                // Those below were put back earlier still.
                idle.clear();
            } else if !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }
}

/// What a connection was made for.
enum Link {
    Http1(Sender),
    Http2(http2::SendRequest<Body>),
}

impl Pool {
    pub(crate) fn new(connector: Connector, upstream: &Upstream) -> Self {
        Self {
            speaks_http2: AtomicBool::new(connector.is_http2()),
            connector,
            origin: upstream.url.clone(),
            connect_timeout: upstream.connect_timeout,
            idle_max: upstream.idle,
            room: Arc::new(Semaphore::new(upstream.connections_max)),
            idle: Arc::default(),
            shared: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Body>, SendError> {
        for _ in 0..MOVES_MAX {
            let sent = if self.speaks_http2.load(Relaxed) {
                self.send_shared(request).await?
            } else {
                let room = self.room().await?;
                match self.alone().await? {
                    Some(sender) => self.send_alone(sender, request, room).await?,
                    None => Err(request),
                }
            };
            match sent {
                Ok(response) => return Ok(response),
                Err(unsent) => request = unsent,
            }
        }
        Err(SendError::NothingSent("the upstream closed every connection".into()))
    }

    async fn room(&self) -> Result<OwnedSemaphorePermit, SendError> {
        if let Ok(room) = Arc::clone(&self.room).try_acquire_owned() {
            return Ok(room);
        }
        match timeout(self.connect_timeout, Arc::clone(&self.room).acquire_owned()).await {
            Ok(Ok(room)) => Ok(room),
            Ok(Err(_)) | Err(_) => {
                Err(SendError::NothingSent("every connection to the upstream is in use".into()))
            }
        }
    }

    /// A connection for one exchange; `None` if the upstream turned out to speak HTTP/2.
    async fn alone(&self) -> Result<Option<Sender>, SendError> {
        if let Some(sender) = self.idle.take(self.idle_max) {
            return Ok(Some(sender));
        }
        match self.link().await? {
            Link::Http1(sender) => Ok(Some(sender)),
            Link::Http2(fresh) => {
                *self.shared.lock().await = Some(fresh);
                self.speaks_http2.store(true, Relaxed);
                Ok(None)
            }
        }
    }

    /// Sends on a connection of its own. `Ok(Err)` gives back a request that was not sent.
    async fn send_alone(
        &self,
        mut sender: Sender,
        mut request: Request<Body>,
        room: OwnedSemaphorePermit,
    ) -> Result<Result<Response<Body>, Request<Body>>, SendError> {
        if sender.ready().await.is_err() {
            return Ok(Err(request));
        }
        say_time_left(&mut request)?;
        *request.version_mut() = Version::HTTP_11;
        if request.uri().authority().is_some() {
            *request.uri_mut() = path_of(request.uri());
        }
        match sender.try_send_request(request).await {
            // Nobody asked for it, and nobody here speaks what comes after it.
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                Err(SendError::Unanswered("the upstream switched to another protocol".into()))
            }
            Ok(response) => {
                let idle = Arc::clone(&self.idle);
                Ok(Ok(response.map(|body| Returning::body(body, sender, idle, room))))
            }
            Err(error) => unsent(error),
        }
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
        *request.version_mut() = Version::HTTP_2;
        *request.uri_mut() = self.at_origin(request.uri())?;
        request.headers_mut().remove(http::header::HOST);
        match sender.try_send_request(request).await {
            Ok(response) => Ok(Ok(response.map(Body::new))),
            Err(error) => unsent(error),
        }
    }

    /// The connection all share; `None` if the upstream turned out to speak HTTP/1.1.
    async fn shared(&self) -> Result<Option<http2::SendRequest<Body>>, SendError> {
        let mut shared = self.shared.lock().await;
        if let Some(open) = shared.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Some(open.clone()));
        }
        match self.link().await? {
            Link::Http2(fresh) => *shared = Some(fresh),
            Link::Http1(sender) => {
                self.idle.put_back(sender);
                self.speaks_http2.store(false, Relaxed);
                *shared = None;
            }
        }
        Ok(shared.clone())
    }

    /// A new connection, with the task that drives it.
    async fn link(&self) -> Result<Link, SendError> {
        let making = async {
            let Connected { io, http2 } = self.connector.connect().await?;
            let io = TokioIo::new(io);
            Ok::<_, BoxError>(if http2 {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                let (sender, connection) =
                    builder.timer(TokioTimer::new()).adaptive_window(true).handshake(io).await?;
                tokio::spawn(connection);
                Link::Http2(sender)
            } else {
                let (sender, connection) = http1::handshake(io).await?;
                tokio::spawn(connection);
                Link::Http1(sender)
            })
        };
        match timeout(self.connect_timeout, making).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(error)) => Err(SendError::NothingSent(error)),
            Err(_) => Err(SendError::NothingSent("no connection in time".into())),
        }
    }

    fn at_origin(&self, target: &Uri) -> Result<Uri, SendError> {
        let mut parts = self.origin.clone().into_parts();
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

/// A request that hyper gives back was not written; one that it keeps may have been.
fn unsent<T>(
    mut error: TrySendError<Request<Body>>,
) -> Result<Result<T, Request<Body>>, SendError> {
    match error.take_message() {
        Some(request) => Ok(Err(request)),
        None => Err(SendError::Unanswered(error.into_error().into())),
    }
}
