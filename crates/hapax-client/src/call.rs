//! A request, put together step by step.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{InvalidName, Key};
use hapax_tower::{BoxError, IDEMPOTENCY_KEY, client::Watch, signal};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{CONTENT_TYPE, Entry},
};
use reqwest::Url;
use serde::Serialize;

use crate::{
    answer::Answer,
    client::Client,
    error::{CallError, LoggedAddress},
    journal::{JournalCredentials, Name},
    send,
    transport::{Reqwest, Transport},
};

/// A request that is not sent yet.
///
/// What is wrong with it is said by [`send`](Self::send), which sends nothing then.
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
/// let client = Client::builder().build_on(app)?;
/// let call = client.post("https://api.example.com/charges");
/// let call = call.json(&serde_json::json!({ "amount": 100 })).deadline(Duration::from_secs(5));
/// assert_eq!(call.send().await?.status(), 200);
/// # Ok(())
/// # }
/// ```
#[must_use = "a call does nothing until it is sent"]
pub struct Call<T = Reqwest> {
    client: Client<T>,
    asked: Result<RequestDraft, InvalidCall>,
}

/// Everything a caller said about a request.
pub(crate) struct RequestDraft {
    pub(crate) name: Option<Name>,
    pub(crate) method: Method,
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) key: Option<Key>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) credentials: JournalCredentials,
    /// What whoever called us said about time and retries.
    pub(crate) inherited: HeaderMap,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

/// An operation with a name, of which the journal keeps track. Say what to send.
///
/// ```
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let client = Client::builder().journal(file).build_on(app)?;
/// for is_recorded in [false, true] {
///     let charge = client.operation("charge-order-42").post("https://api.example.com/charges");
///     assert_eq!(charge.body("amount=100").send().await?.recorded(), is_recorded);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "an operation does nothing until it is sent"]
pub struct NamedOperation<T = Reqwest> {
    client: Client<T>,
    name: String,
}

impl<T: Transport> NamedOperation<T> {
    pub(crate) fn new(client: Client<T>, name: String) -> Self {
        Self { client, name }
    }

    /// A `POST`.
    pub fn post(self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::POST, url)
    }

    /// A `PUT`.
    pub fn put(self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::PUT, url)
    }

    /// A `PATCH`.
    pub fn patch(self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::PATCH, url)
    }

    /// A `DELETE`.
    pub fn delete(self, url: impl AsRef<str>) -> Call<T> {
        self.request(Method::DELETE, url)
    }

    /// Any method.
    pub fn request(self, method: Method, url: impl AsRef<str>) -> Call<T> {
        let mut call = Call::new(self.client, method, url.as_ref());
        call.asked = call.asked.and_then(|mut asked| {
            asked.name = Some(Name::parse(&self.name).map_err(InvalidCall::Name)?);
            Ok(asked)
        });
        call
    }
}

impl<T: Transport> Call<T> {
    pub(crate) fn new(client: Client<T>, method: Method, url: &str) -> Self {
        let asked = parse_url(url).map(|url| RequestDraft {
            name: None,
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            key: None,
            deadline: None,
            credentials: JournalCredentials::Withhold,
            inherited: HeaderMap::new(),
            watch: None,
        });
        Self { client, asked }
    }

    /// Sends a header, instead of the client's own of that name.
    ///
    /// `Authorization`, `Cookie` and `Proxy-Authorization` are not written to the journal unless
    /// [`keep_credentials`](Self::keep_credentials) says so.
    pub fn header<N, V>(self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: Into<BoxError>>,
        V: TryInto<HeaderValue, Error: Into<BoxError>>,
    {
        self.with(|asked| {
            let (name, value) = header(name, value)?;
            if name == IDEMPOTENCY_KEY {
                return Err(InvalidCall::KeyAsHeader);
            }
            asked.headers.append(name, value);
            Ok(())
        })
    }

    /// Sends all of these headers.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.with(|asked| {
            if headers.contains_key(IDEMPOTENCY_KEY) {
                return Err(InvalidCall::KeyAsHeader);
            }
            asked.headers.extend(headers);
            Ok(())
        })
    }

    /// Adds parameters to the query of the URL.
    pub fn query<K: AsRef<str>, V: AsRef<str>>(
        self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.with(|asked| {
            let mut url = Url::parse(&asked.url.to_string()).map_err(InvalidCall::url)?;
            url.query_pairs_mut().extend_pairs(pairs);
            asked.url = parse_url(url.as_str())?;
            Ok(())
        })
    }

    /// Sends a body of JSON, and says so in `Content-Type` unless that is set.
    pub fn json<B: Serialize + ?Sized>(self, body: &B) -> Self {
        self.with(|asked| {
            asked.body = serde_json::to_vec(body).map_err(InvalidCall::Json)?.into();
            if let Entry::Vacant(kind) = asked.headers.entry(CONTENT_TYPE) {
                kind.insert(HeaderValue::from_static("application/json"));
            }
            Ok(())
        })
    }

    /// Sends a body as it is.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        self.with(|asked| {
            asked.body = body.into();
            Ok(())
        })
    }

    /// Sends this key instead of a new one: for an operation that has a name of its own on the
    /// server, or that somebody else began.
    pub fn key(self, key: impl AsRef<[u8]>) -> Self {
        self.with(|asked| {
            asked.key = Some(Key::parse(key).map_err(InvalidCall::Key)?);
            Ok(())
        })
    }

    /// How long all attempts together may take, instead of what the client was built with.
    pub fn deadline(self, deadline: Duration) -> Self {
        self.with(|asked| {
            asked.deadline = Some(deadline);
            Ok(())
        })
    }

    /// Writes the headers that say who asks to the journal, in plain text, so that the operation
    /// can be resumed by a client that does not have them.
    pub fn keep_credentials(self) -> Self {
        self.with(|asked| {
            asked.credentials = JournalCredentials::Keep;
            Ok(())
        })
    }

    /// Obeys what the request being served says about time and retries.
    ///
    /// `Hapax-Deadline` shortens the deadline, and with `Hapax-Retry: never` there is one attempt:
    /// whoever sent it repeats the whole.
    pub fn inherit(self, headers: &HeaderMap) -> Self {
        self.with(|asked| {
            for name in [signal::DEADLINE, signal::RETRY] {
                if let Some(value) = headers.get(&name) {
                    asked.inherited.insert(name, value.clone());
                }
            }
            Ok(())
        })
    }

    /// Tells somebody of every attempt while it is made.
    pub fn watch(self, watch: Arc<dyn Watch>) -> Self {
        self.with(|asked| {
            asked.watch = Some(watch);
            Ok(())
        })
    }

    /// Sends it, and again where that is safe, until there is an answer or the deadline is over.
    ///
    /// A named operation is in the journal before its first byte leaves. If this future is dropped,
    /// nothing is sent any more; a named operation stays in the journal as pending.
    pub async fn send(self) -> Result<Answer, CallError> {
        let asked = self.asked.map_err(CallError::Invalid)?;
        Box::pin(send::send(self.client, asked)).await
    }

    fn with(mut self, say: impl FnOnce(&mut RequestDraft) -> Result<(), InvalidCall>) -> Self {
        self.asked = self.asked.and_then(|mut asked| say(&mut asked).map(|()| asked));
        self
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.asked {
            Ok(asked) => write!(f, "Call({} {})", asked.method, LoggedAddress(&asked.url)),
            Err(invalid) => write!(f, "Call({invalid:?})"),
        }
    }
}

/// Names and values that can be sent.
pub(crate) fn header<N, V>(name: N, value: V) -> Result<(HeaderName, HeaderValue), InvalidCall>
where
    N: TryInto<HeaderName, Error: Into<BoxError>>,
    V: TryInto<HeaderValue, Error: Into<BoxError>>,
{
    let name = name.try_into().map_err(|error| InvalidCall::Header(error.into()))?;
    let value = value.try_into().map_err(|error| InvalidCall::Header(error.into()))?;
    Ok((name, value))
}

fn parse_url(text: &str) -> Result<Uri, InvalidCall> {
    let url = Url::parse(text).map_err(InvalidCall::url)?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(InvalidCall::url("it is neither http:// nor https:// and a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidCall::CredentialsInUrl);
    }
    let mut url = url;
    url.set_fragment(None);
    url.as_str().parse().map_err(InvalidCall::url)
}

/// Why a call cannot be sent as it was put together. Nothing was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCall {
    /// The address cannot be understood.
    #[error("the URL cannot be used; write it in full, as in https://api.example.com/charges")]
    Url(#[source] BoxError),
    /// The address names a user, which would be written to the journal and to logs.
    #[error("the URL holds a user or a password; send them in the header Authorization")]
    CredentialsInUrl,
    /// A header cannot be sent.
    #[error("a header cannot be sent")]
    Header(#[source] BoxError),
    /// The key was given as a header.
    #[error("Idempotency-Key is set as a header; give the key with `key`, once per operation")]
    KeyAsHeader,
    /// The key cannot be sent.
    #[error("the key cannot be sent")]
    Key(#[source] InvalidName),
    /// The name cannot be kept.
    #[error("the name of the operation cannot be kept")]
    Name(#[source] InvalidName),
    /// The body is no JSON.
    #[error("the body cannot be written as JSON")]
    Json(#[source] serde_json::Error),
    /// A named operation needs a journal.
    #[error(
        "the operation has a name, and the client has no journal to keep it in; give the builder \
         one with `journal`"
    )]
    NoJournal,
    /// The request is over a limit of the journal.
    #[error("the request cannot be kept in the journal")]
    NotKept(#[source] crate::journal::InvalidJournalRequest),
    /// The request cannot be sent as often as needed.
    #[error("the request cannot be sent")]
    Request(#[source] hapax_tower::client::InvalidRequest),
}

impl InvalidCall {
    fn url(error: impl Into<BoxError>) -> Self {
        Self::Url(error.into())
    }
}
