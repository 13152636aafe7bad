//! The client.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::retry::Schedule;
use hapax_tower::client::{KeySource, Retry, RetryOptions};
use http::{HeaderMap, Method};

use crate::{
    builder::{BuildError, ClientBuilder},
    call::{Call, InvalidCall, NamedOperation},
    error::CallError,
    journal::Journal,
    pursuit_registry::PursuitRegistry,
    resume::{self, ResumeReport, Resumption},
    resumer::Resumer,
    transport::{Reqwest, Transport},
    window::Windows,
};

/// An HTTP client that finishes the job. Clones share everything.
///
/// ```
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// // Any tower service carries the requests; `build` makes a client over reqwest.
/// let client = Client::builder().build_on(app)?;
/// let answer = client.post("https://api.example.com/charges").body("amount=100").send().await?;
/// assert_eq!((answer.text().as_str(), answer.attempts()), ("charged", 1));
/// # Ok(())
/// # }
/// ```
pub struct Client<T = Reqwest>(pub(crate) Arc<Shared<T>>);

/// What all clones of a client share.
pub(crate) struct Shared<T> {
    pub(crate) retry: Retry<T>,
    pub(crate) options: RetryOptions,
    /// When operations with a name are tried again.
    pub(crate) named: Schedule,
    pub(crate) keys: KeySource,
    /// Sent with every request, never journalled.
    pub(crate) headers: HeaderMap,
    pub(crate) journal: Option<Journal>,
    pub(crate) flights: PursuitRegistry,
    pub(crate) windows: Option<Windows<T>>,
}

impl Client {
    /// A client without a journal: keys, retries and deadlines as they are by default.
    pub fn new() -> Result<Self, BuildError> {
        Self::builder().build()
    }

    /// Says how a client is to work.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }
}

impl<T: Transport> Client<T> {
    /// An operation with a name, of which the journal keeps track.
    ///
    /// The name is the operation: sent again under the same name, also by another process or after
    /// a restart, it has the same key. If it has been answered, the recorded answer is returned and
    /// nothing is sent. While another task of this process pursues it, its end is waited for.
    pub fn operation(&self, name: impl Into<String>) -> NamedOperation<T> {
        NamedOperation::new(self.clone(), name.into())
    }

    /// A `GET`.
    pub fn get(&self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::GET, url)
    }

    /// A `POST`, under a key that is made here and lives in memory.
    pub fn post(&self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::POST, url)
    }

    /// A `PUT`.
    pub fn put(&self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::PUT, url)
    }

    /// A `PATCH`, under a key that is made here and lives in memory.
    pub fn patch(&self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::PATCH, url)
    }

    /// A `DELETE`.
    pub fn delete(&self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::DELETE, url)
    }

    /// Any method.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> Call<T> {
        Call::new(self.clone(), method, url.as_ref())
    }

    /// Finishes every pending operation of the journal that nobody pursues, and says what they came
    /// to.
    ///
    /// Each is sent with the key it was begun with, for what is left of its deadline; one whose
    /// deadline has passed meanwhile is asked for once more.
    pub async fn resume(&self) -> Result<ResumeReport, CallError> {
        Box::pin(resume::all(self)).await
    }

    /// Finishes pending operations now, and again after each such pause, until it is stopped or
    /// dropped.
    pub fn resumer(&self, every: Duration) -> Resumer {
        Resumer::start(self.clone(), every)
    }

    /// Asks again for one operation of the journal: one that is pending, unknown or given up.
    pub fn take_up(&self, name: impl Into<String>) -> Resumption<T> {
        Resumption::new(self.clone(), name.into())
    }

    /// The journal, if the client was built with one.
    pub fn journal(&self) -> Result<&Journal, CallError> {
        self.0.journal.as_ref().ok_or(CallError::Invalid(InvalidCall::NoJournal))
    }
}

impl<T> Clone for Client<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("options", &self.0.options)
            .field("journal", &self.0.journal.is_some())
            .finish_non_exhaustive()
    }
}
