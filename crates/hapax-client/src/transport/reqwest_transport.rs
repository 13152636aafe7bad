//! The transport over reqwest.

use std::{
    fmt,
    path::PathBuf,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hapax_tower::{Body, BoxError, NothingSent};
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tower_service::Service;

use super::tls;

/// The transport over reqwest: HTTP/1.1 and HTTP/2, TLS by rustls, proxies from the environment.
///
/// It follows no redirect and repeats nothing by itself: whoever repeats a request has to know its
/// key, and that is the client around it. Answers are handed on as they came, never decompressed.
///
/// ```no_run
/// use hapax_client::{Client, Reqwest};
///
/// // Connections set up by hand: here over HTTP/2 alone.
/// let transport = Reqwest::from_builder(reqwest::Client::builder().http2_prior_knowledge())?;
/// let client = Client::builder().build_on(transport)?;
/// # drop(client);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reqwest(reqwest::Client);

/// How [`Reqwest`] makes connections.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_client::{Client, Proxies, ReqwestOptions};
///
/// let connect_timeout = Duration::from_secs(2);
/// let options =
///     ReqwestOptions { connect_timeout, proxies: Proxies::Never, ..ReqwestOptions::default() };
/// let builder = Client::builder().connections(options);
/// # drop(builder);
/// ```
#[derive(Debug, Clone)]
pub struct ReqwestOptions {
    /// How long a connection may take, name resolution and TLS included. Keep it shorter than one
    /// attempt: what fails while connecting was certainly not carried out.
    pub connect_timeout: Duration,
    /// A file of certificates (PEM) to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Whether `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are obeyed.
    pub proxies: Proxies,
}

/// Where proxies are named.
///
/// ```
/// use hapax_client::{Proxies, ReqwestOptions};
///
/// assert_eq!(ReqwestOptions::default().proxies, Proxies::FromEnvironment);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Proxies {
    /// In the variables of the environment, as curl reads them.
    FromEnvironment,
    /// Nowhere: every connection is direct.
    Never,
}

impl Default for ReqwestOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            ca: None,
            proxies: Proxies::FromEnvironment,
        }
    }
}

impl Reqwest {
    /// A transport of its own connections.
    pub fn new(options: &ReqwestOptions) -> Result<Self, TransportError> {
        let builder = reqwest::Client::builder()
            .connect_timeout(options.connect_timeout)
            .tls_backend_preconfigured(tls::config(options.ca.as_deref())?);
        Self::from_builder(match options.proxies {
            Proxies::FromEnvironment => builder,
            Proxies::Never => builder.no_proxy(),
        })
    }

    /// A transport configured by hand, with TLS of its own.
    ///
    /// Redirects and reqwest's retries are turned off, whatever the builder says.
    pub fn from_builder(builder: reqwest::ClientBuilder) -> Result<Self, TransportError> {
        let builder =
            builder.redirect(reqwest::redirect::Policy::none()).retry(reqwest::retry::never());
        builder.build().map(Self).map_err(TransportError::Unusable)
    }
}

type Pending = <reqwest::Client as Service<reqwest::Request>>::Future;

impl Service<Request<Body>> for Reqwest {
    type Response = Response<reqwest::Body>;
    type Error = BoxError;
    type Future = ReqwestExchange;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ReqwestExchange {
        let request = request.map(|body| reqwest::Body::wrap(OutgoingBody(Mutex::new(body))));
        match reqwest::Request::try_from(request) {
            Ok(request) => {
                ReqwestExchange(ExchangeStage::Sent(Service::call(&mut self.0, request)))
            }
            Err(error) => ReqwestExchange(ExchangeStage::Unsent(Some(error))),
        }
    }
}

/// A request on its way.
#[must_use = "futures do nothing unless polled"]
pub struct ReqwestExchange(ExchangeStage);

enum ExchangeStage {
    Sent(Pending),
    /// It could not even be written; taken when told.
    Unsent(Option<reqwest::Error>),
}

impl Future for ReqwestExchange {
    type Output = Result<Response<reqwest::Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let error = match &mut self.0 {
            ExchangeStage::Sent(pending) => match ready!(Pin::new(pending).poll(cx)) {
                Ok(response) => return Poll::Ready(Ok(response.into())),
                Err(error) => error,
            },
            ExchangeStage::Unsent(error) => match error.take() {
                Some(error) => error,
                None => return Poll::Pending,
            },
        };
        // The address is in the error of the client, without its query.
        let error = error.without_url();
        let unsent = error.is_connect() || error.is_builder();
        Poll::Ready(Err(if unsent { NothingSent::new(error).into() } else { error.into() }))
    }
}

impl fmt::Debug for ReqwestExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReqwestExchange(..)")
    }
}

/// reqwest wants bodies that may be shared; nobody shares this one, so the lock is never waited for.
struct OutgoingBody(Mutex<Body>);

impl OutgoingBody {
    fn body(&mut self) -> Pin<&mut Body> {
        Pin::new(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    fn look<R>(&self, at: impl FnOnce(&Body) -> R) -> R {
        at(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl http_body::Body for OutgoingBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.body().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.look(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.look(http_body::Body::size_hint)
    }
}

/// Why there is no transport.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The certificates to trust cannot be read.
    #[error("{} holds no usable certificates; give a PEM file with at least one", file.display())]
    Certificates {
        /// The file given.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: BoxError,
    },
    /// The TLS library refused its settings.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// reqwest refused its settings.
    #[error("the HTTP client cannot be set up")]
    Unusable(#[source] reqwest::Error),
}
