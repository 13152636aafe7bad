//! Whose keys they are. There is no default: running unscoped must be nobody's accident.

use std::{borrow::Cow, fmt, pin::Pin, sync::Arc, time::Duration};

use hapax_core::{InvalidName, Salt, Tenant};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Uri, request::Parts};
use tokio::time::timeout;

use super::credential::{CredentialPlace, KnownCredentials};
use crate::server::responses::{code::Code, problem::Problem};

/// How the tenant of a request is found.
///
/// ```
/// use hapax_core::Tenant;
/// use hapax_tower::Tenancy;
///
/// /// What an earlier layer found out about the caller, as an extension of the request.
/// #[derive(Clone)]
/// struct Account(String);
///
/// let customers = Tenancy::from_fn(|parts| {
///     let account = parts.extensions.get::<Account>()?;
///     Tenant::parse(account.0.as_str()).ok()
/// });
/// let nightly_job = Tenancy::single("nightly")?;
/// # drop((customers, nightly_job));
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Clone)]
pub struct Tenancy {
    source: TenantSource,
    kind: TenantKind,
    /// The headers it takes credentials from.
    credentials: Vec<HeaderName>,
    challenge: HeaderValue,
}

/// In which way tenants are found. Names found in different ways never meet: each is kept with its
/// kind before it, as in `jwt:alice`.
///
/// ```
/// use hapax_tower::TenantKind;
///
/// assert_eq!(TenantKind::Jwt.tenant("alice")?.as_str(), "jwt:alice");
/// assert_ne!(TenantKind::Jwt.tenant("alice")?, TenantKind::Header.tenant("alice")?);
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TenantKind {
    /// The application says who asks.
    Application,
    /// By the hash of a credential nobody here can verify.
    Credential,
    /// A trusted proxy names it in a header.
    Header,
    /// A signed token names it.
    Jwt,
    /// There is one for everybody.
    Single,
    /// Somebody who is asked for each request names it.
    Subrequest,
    /// The certificate that the client has shown names it.
    Certificate,
}

impl TenantKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Application,
        Self::Credential,
        Self::Header,
        Self::Jwt,
        Self::Single,
        Self::Subrequest,
        Self::Certificate,
    ];

    /// The word before the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Application => "app",
            Self::Credential => "credential",
            Self::Header => "header",
            Self::Jwt => "jwt",
            Self::Single => "single",
            Self::Subrequest => "subrequest",
            Self::Certificate => "certificate",
        }
    }

    /// The tenant of this name among those found in this way: what records, listings and filters
    /// call it.
    pub fn tenant(self, name: &str) -> Result<Tenant, InvalidName> {
        Tenant::parse([self.as_str(), ":", name].concat())
    }
}

#[derive(Clone)]
enum TenantSource {
    Credential(KnownCredentials),
    Single(Tenant),
    FromFn(Arc<TenantFn>),
    FromAsyncFn(Arc<IdentifyFn>),
}

type TenantFn = dyn Fn(&Parts) -> Option<Tenant> + Send + Sync;
type IdentifyFn = dyn Fn(Caller) -> Identifying + Send + Sync;
type Identifying = Pin<Box<dyn Future<Output = Identified> + Send>>;

/// What is known about whoever asks.
///
/// ```
/// use hapax_core::Tenant;
/// use hapax_tower::{Caller, Identified, Tenancy};
///
/// # async fn owner_of(_token: &str) -> std::io::Result<Option<String>> { Ok(None) }
/// async fn identify(caller: Caller) -> Identified {
///     let token = caller.headers.get("authorization").and_then(|value| value.to_str().ok());
///     let Some(token) = token else { return Identified::Unknown };
///     match owner_of(token).await {
///         Ok(owner) => owner
///             .and_then(|owner| Tenant::parse(owner).ok())
///             .map_or(Identified::Unknown, Identified::As),
///         Err(_) => Identified::CannotAsk,
///     }
/// }
///
/// let tenancy = Tenancy::from_async_fn(identify);
/// # drop(tenancy);
/// ```
#[derive(Debug, Clone)]
pub struct Caller {
    /// The method of the request.
    pub method: Method,
    /// Its address.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its extensions, such as what an earlier layer found out.
    pub extensions: Extensions,
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identified {
    /// This tenant.
    As(Tenant),
    /// Nobody that is known: 401.
    Unknown,
    /// Somebody who may not: 403.
    Refused,
    /// That cannot be found out now: 503.
    CannotAsk,
}

impl Tenancy {
    /// One tenant per `Authorization` header, kept as a keyed hash; a request without one is
    /// refused with 401.
    ///
    /// It keeps clients apart, and proves nothing: whether the credential is good is decided by
    /// what stands in front of this layer. Clients whose tokens change between retries need
    /// [`Tenancy::from_fn`].
    pub fn credential() -> Self {
        Self::credential_in(CredentialPlace::authorization())
    }

    /// The same for a secret that callers show elsewhere: one tenant per value, kept as a keyed hash,
    /// and neither stored nor logged. A request without it, with an empty one or with more than one is
    /// refused with 401.
    ///
    /// Where that is no secret, anybody can name anybody.
    pub fn credential_in(place: CredentialPlace) -> Self {
        let (header, challenge) = (place.header().clone(), place.challenge());
        let source = TenantSource::Credential(KnownCredentials::new(place));
        Self::new(source, TenantKind::Credential).reading([header]).challenging(challenge)
    }

    /// One tenant for everybody: every client can hit every key. For services with one caller.
    pub fn single(name: &str) -> Result<Self, InvalidName> {
        let tenant = TenantKind::Single.tenant(name)?;
        Ok(Self::new(TenantSource::Single(tenant), TenantKind::Single))
    }

    /// The tenant the application found, such as the account an earlier layer verified; `None`
    /// refuses the request with 401. Its name is kept as `app:` and what is returned here.
    pub fn from_fn(tenant: impl Fn(&Parts) -> Option<Tenant> + Send + Sync + 'static) -> Self {
        Self::new(TenantSource::FromFn(Arc::new(tenant)), TenantKind::Application)
    }

    /// The tenant somebody else has to be asked for, such as whoever issued a token. Without an
    /// answer in ten seconds the request is refused with 503.
    pub fn from_async_fn<F>(identify: impl Fn(Caller) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Identified> + Send + 'static,
    {
        let identify = move |caller| -> Identifying { Box::pin(identify(caller)) };
        Self::new(TenantSource::FromAsyncFn(Arc::new(identify)), TenantKind::Application)
    }

    /// The same, telling callers with this `WWW-Authenticate` how to prove who they are. It is
    /// `Bearer` unless said otherwise.
    #[must_use]
    pub fn challenging(self, challenge: HeaderValue) -> Self {
        Self { challenge, ..self }
    }

    /// The same, with the tenants an application's own function finds counted as of this kind, so
    /// that they are other tenants than those of the same name that are found in other ways.
    ///
    /// What is found by [`Tenancy::credential`] and [`Tenancy::single`] keeps its own kind.
    #[must_use]
    pub fn of_kind(self, kind: TenantKind) -> Self {
        match self.source {
            TenantSource::FromFn(_) | TenantSource::FromAsyncFn(_) => Self { kind, ..self },
            TenantSource::Credential(_) | TenantSource::Single(_) => self,
        }
    }

    /// The same, taking credentials from these headers too: they are not stored with requests, as
    /// little as those of [`Protection::secret_headers`](crate::Protection::secret_headers).
    #[must_use]
    pub fn reading(mut self, credentials: impl IntoIterator<Item = HeaderName>) -> Self {
        self.credentials.extend(credentials);
        self
    }

    fn new(source: TenantSource, kind: TenantKind) -> Self {
        let challenge = HeaderValue::from_static("Bearer");
        Self { source, kind, credentials: Vec::new(), challenge }
    }

    /// The headers it takes credentials from.
    pub(crate) fn credentials(&self) -> &[HeaderName] {
        &self.credentials
    }

    /// Who asks, or how they are refused.
    pub(crate) async fn tenant(&self, salt: &Salt, parts: &Parts) -> Result<Tenant, Problem> {
        let known = match &self.source {
            TenantSource::Credential(credentials) => credentials.tenant(salt, parts),
            TenantSource::Single(tenant) => Some(tenant.clone()),
            TenantSource::FromFn(tenant) => tenant(parts).and_then(|tenant| self.named(&tenant)),
            TenantSource::FromAsyncFn(identify) => match in_time(identify(Caller::of(parts))).await
            {
                Identified::As(tenant) => self.named(&tenant),
                Identified::Unknown => None,
                Identified::Refused => {
                    return Err(Problem::new(Code::CallerRefused, "Nothing was run."));
                }
                Identified::CannotAsk => {
                    let problem =
                        Problem::new(Code::CallerUnverifiable, "Nothing was run. Ask again.");
                    return Err(problem.retry_after(TRY_AGAIN));
                }
            },
        };
        known.ok_or_else(|| {
            Problem::new(Code::CredentialMissing, self.wanted()).challenge(self.challenge.clone())
        })
    }

    /// What a caller has to send that nobody can be found for.
    fn wanted(&self) -> Cow<'static, str> {
        match &self.source {
            TenantSource::Credential(KnownCredentials { place, .. })
                if *place != CredentialPlace::authorization() =>
            {
                format!("Send the credential the key belongs to, once, in {place}.").into()
            }
            TenantSource::Credential(_)
            | TenantSource::Single(_)
            | TenantSource::FromFn(_)
            | TenantSource::FromAsyncFn(_) => "Send the credential the key belongs to.".into(),
        }
    }

    /// Whether all callers share their keys.
    pub fn is_shared(&self) -> bool {
        match self.source {
            TenantSource::Single(_) => true,
            TenantSource::Credential(_)
            | TenantSource::FromFn(_)
            | TenantSource::FromAsyncFn(_) => false,
        }
    }

    /// The tenant a function found, among those of its kind; `None` if the two together are longer
    /// than a name may be.
    fn named(&self, found: &Tenant) -> Option<Tenant> {
        self.kind.tenant(found.as_str()).ok()
    }

    /// Whether both find the same tenant for every request.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same_source = match (&self.source, &other.source) {
            (TenantSource::Credential(one), TenantSource::Credential(other)) => {
                one.place == other.place
            }
            (TenantSource::Single(one), TenantSource::Single(other)) => one == other,
            (TenantSource::FromFn(one), TenantSource::FromFn(other)) => Arc::ptr_eq(one, other),
            (TenantSource::FromAsyncFn(one), TenantSource::FromAsyncFn(other)) => {
                Arc::ptr_eq(one, other)
            }
            (
                TenantSource::Credential(_)
                | TenantSource::Single(_)
                | TenantSource::FromFn(_)
                | TenantSource::FromAsyncFn(_),
                _,
            ) => false,
        };
        same_source && self.kind == other.kind
    }
}

/// Longest time whoever knows the callers may take.
const IDENTIFY_TIME_MAX: Duration = Duration::from_secs(10);

async fn in_time(identifying: Identifying) -> Identified {
    timeout(IDENTIFY_TIME_MAX, identifying).await.unwrap_or(Identified::CannotAsk)
}

/// When to come back after whoever knows the callers could not be asked.
const TRY_AGAIN: Duration = Duration::from_secs(1);

impl Caller {
    pub(crate) fn of(parts: &Parts) -> Self {
        Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
            extensions: parts.extensions.clone(),
        }
    }
}

impl fmt::Debug for Tenancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            TenantSource::Credential(KnownCredentials { place, .. }) => {
                write!(f, "Tenancy::credential_in({place:?})")
            }
            TenantSource::Single(tenant) => write!(f, "Tenancy::single({tenant:?})"),
            TenantSource::FromFn(_) => write!(f, "Tenancy::from_fn(..).of_kind({:?})", self.kind),
            TenantSource::FromAsyncFn(_) => {
                write!(f, "Tenancy::from_async_fn(..).of_kind({:?})", self.kind)
            }
        }
    }
}
