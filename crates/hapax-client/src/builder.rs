//! How a client is put together.

use std::{path::PathBuf, sync::Arc, time::Duration};

use hapax_tower::{
    BoxError, IDEMPOTENCY_KEY,
    client::{InvalidRetry, KeySource, RetryLayer, RetryOptions},
};
use http::{HeaderMap, HeaderName, HeaderValue, header::USER_AGENT};
use tower_layer::Layer;

use crate::{
    call::{InvalidCall, header},
    client::{Client, Shared},
    journal::{Journal, JournalOptions, OpenError},
    pursuit_registry::PursuitRegistry,
    transport::{Reqwest, ReqwestOptions, Transport, TransportError},
    window::Windows,
};

/// Says how a client is to work; [`build`](Self::build) makes it.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let client = Client::builder()
///     .journal(file)
///     .header("Authorization", "Bearer sk_test")
///     .deadline(Duration::from_secs(30))
///     .build_on(app)?;
/// assert!(client.journal().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder {
    retry: RetryOptions,
    retry_is_chosen: bool,
    transport: ReqwestOptions,
    journal: Option<JournalLocation>,
    headers: HeaderMap,
    reads_windows: bool,
    refused: Option<BuildError>,
}

/// Where the journal is.
#[derive(Debug)]
enum JournalLocation {
    At(PathBuf),
    Open(Journal),
}

const AGENT: HeaderValue = HeaderValue::from_static(concat!("hapax/", env!("CARGO_PKG_VERSION")));

impl ClientBuilder {
    pub(crate) fn new() -> Self {
        Self {
            retry: RetryOptions::default(),
            retry_is_chosen: false,
            transport: ReqwestOptions::default(),
            journal: None,
            headers: HeaderMap::from_iter([(USER_AGENT, AGENT)]),
            reads_windows: true,
            refused: None,
        }
    }

    /// Keeps named operations in this file, which is made if it is not there.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(JournalLocation::At(path.into()));
        self
    }

    /// Keeps named operations in a journal that is open already.
    pub fn journal_opened(mut self, journal: Journal) -> Self {
        self.journal = Some(JournalLocation::Open(journal));
        self
    }

    /// Sends a header with every request that does not set it. It is never written to the journal.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: Into<BoxError>>,
        V: TryInto<HeaderValue, Error: Into<BoxError>>,
    {
        match header(name, value) {
            Ok((name, _)) if name == IDEMPOTENCY_KEY => self.refuse(BuildError::KeyForEverything),
            Ok((name, value)) => {
                self.headers.insert(name, value);
            }
            Err(invalid) => self.refuse(BuildError::Header(invalid)),
        }
        self
    }

    /// What the client calls itself.
    pub fn user_agent<V>(self, agent: V) -> Self
    where
        V: TryInto<HeaderValue, Error: Into<BoxError>>,
    {
        self.header(USER_AGENT, agent)
    }

    /// How long all attempts of an operation together may take, unless a call says otherwise.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.retry.deadline = deadline;
        self
    }

    /// How often, how long and how large: everything about retries.
    ///
    /// Without it a named operation is tried as often as its deadline allows, and a call without a
    /// name five times.
    pub fn retry(mut self, retry: RetryOptions) -> Self {
        self.retry = retry;
        self.retry_is_chosen = true;
        self
    }

    /// How connections are made.
    pub fn connections(mut self, options: ReqwestOptions) -> Self {
        self.transport = options;
        self
    }

    /// Never asks a server for how long it remembers keys.
    ///
    /// Then nothing keeps an operation from being sent again after its server has forgotten the key.
    pub fn ignore_published_windows(mut self) -> Self {
        self.reads_windows = false;
        self
    }

    /// A client over reqwest.
    pub fn build(self) -> Result<Client, BuildError> {
        let transport = Reqwest::new(&self.transport)?;
        self.build_on(transport)
    }

    /// A client over any transport; how connections are made is up to it.
    pub fn build_on<T: Transport>(self, transport: T) -> Result<Client<T>, BuildError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        let journal = match self.journal {
            Some(JournalLocation::At(path)) => {
                Some(Journal::open(path, JournalOptions::default())?)
            }
            Some(JournalLocation::Open(journal)) => Some(journal),
            None => None,
        };
        let layer = RetryLayer::new(self.retry.clone())?;
        let schedule = self.retry.schedule;
        Ok(Client(Arc::new(Shared {
            retry: layer.layer(transport.clone()),
            named: if self.retry_is_chosen { schedule } else { schedule.until_deadline() },
            options: self.retry,
            keys: KeySource::new(),
            headers: self.headers,
            journal,
            flights: PursuitRegistry::default(),
            windows: self.reads_windows.then(|| Windows::new(transport)),
        })))
    }

    /// The first thing that is wrong is what is told.
    fn refuse(&mut self, error: BuildError) {
        self.refused.get_or_insert(error);
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A header cannot be sent.
    #[error("a header of the client cannot be sent")]
    Header(#[source] InvalidCall),
    /// All operations would have the same key.
    #[error(
        "Idempotency-Key is set for every request, so that all would be one operation; the client \
         makes keys by itself, and `Call::key` sets one"
    )]
    KeyForEverything,
    /// The retry options are out of bounds.
    #[error("the retry options are refused")]
    Retry(#[from] InvalidRetry),
    /// The journal cannot be opened.
    #[error("the journal cannot be opened")]
    Journal(#[from] OpenError),
    /// There is no transport.
    #[error("requests could not leave")]
    Transport(#[from] TransportError),
}
