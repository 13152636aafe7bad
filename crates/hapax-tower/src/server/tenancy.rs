//! Whose keys they are. There is no default: running unscoped must be nobody's accident.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use hapax_core::{Fingerprint, InvalidName, RequestParts, Salt, Tenant};
use http::{HeaderMap, HeaderValue, Method, Uri, header::AUTHORIZATION, request::Parts};
use quick_cache::sync;
use tokio::time::timeout;

use super::{code::Code, problem::Problem};

/// How the tenant of a request is found.
#[derive(Clone)]
pub struct Tenancy {
    kind: Kind,
    challenge: HeaderValue,
}

#[derive(Clone)]
enum Kind {
    Credential(Arc<Hashes>),
    Single(Tenant),
    FromFn(Arc<TenantFn>),
    FromAsyncFn(Arc<IdentifyFn>),
}

type TenantFn = dyn Fn(&Parts) -> Option<Tenant> + Send + Sync;
type IdentifyFn = dyn Fn(Caller) -> Identifying + Send + Sync;
type Identifying = Pin<Box<dyn Future<Output = Identified> + Send>>;

/// What is known about whoever asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The method of the request.
    pub method: Method,
    /// Its address.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
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
        Self::of_kind(Kind::Credential(Arc::new(Hashes::new(KNOWN_MAX))))
    }

    /// One tenant for everybody: every client can hit every key. For services with one caller.
    pub fn single(name: &str) -> Result<Self, InvalidName> {
        Tenant::parse(name).map(|tenant| Self::of_kind(Kind::Single(tenant)))
    }

    /// The tenant the application found, such as the account an earlier layer verified; `None`
    /// refuses the request with 401.
    pub fn from_fn(tenant: impl Fn(&Parts) -> Option<Tenant> + Send + Sync + 'static) -> Self {
        Self::of_kind(Kind::FromFn(Arc::new(tenant)))
    }

    /// The tenant somebody else has to be asked for, such as whoever issued a token. Without an
    /// answer in ten seconds the request is refused with 503.
    pub fn from_async_fn<F>(identify: impl Fn(Caller) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Identified> + Send + 'static,
    {
        let identify = move |caller| -> Identifying { Box::pin(identify(caller)) };
        Self::of_kind(Kind::FromAsyncFn(Arc::new(identify)))
    }

    /// The same, telling callers with this `WWW-Authenticate` how to prove who they are. It is
    /// `Bearer` unless said otherwise.
    #[must_use]
    pub fn challenging(self, challenge: HeaderValue) -> Self {
        Self { challenge, ..self }
    }

    fn of_kind(kind: Kind) -> Self {
        Self { kind, challenge: HeaderValue::from_static("Bearer") }
    }

    /// Who asks, or how they are refused.
    pub(crate) async fn tenant(&self, salt: &Salt, parts: &Parts) -> Result<Tenant, Problem> {
        let known = match &self.kind {
            Kind::Credential(hashes) => from_credential(hashes, salt, parts),
            Kind::Single(tenant) => Some(tenant.clone()),
            Kind::FromFn(tenant) => tenant(parts),
            Kind::FromAsyncFn(identify) => match in_time(identify(Caller::of(parts))).await {
                Identified::As(tenant) => Some(tenant),
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
            let detail = "Send the credential the key belongs to.";
            Problem::new(Code::CredentialMissing, detail).challenge(self.challenge.clone())
        })
    }

    /// Whether all callers share their keys.
    pub(crate) fn is_shared(&self) -> bool {
        match self.kind {
            Kind::Single(_) => true,
            Kind::Credential(_) | Kind::FromFn(_) | Kind::FromAsyncFn(_) => false,
        }
    }

    /// Whether both find the same tenant for every request.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Credential(_), Kind::Credential(_)) => true,
            (Kind::Single(one), Kind::Single(other)) => one == other,
            (Kind::FromFn(one), Kind::FromFn(other)) => Arc::ptr_eq(one, other),
            (Kind::FromAsyncFn(one), Kind::FromAsyncFn(other)) => Arc::ptr_eq(one, other),
            (Kind::Credential(_) | Kind::Single(_) | Kind::FromFn(_) | Kind::FromAsyncFn(_), _) => {
                false
            }
        }
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
    fn of(parts: &Parts) -> Self {
        Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        }
    }
}

/// Tenants by credential, under the salt they were hashed with: hashing costs more than looking.
type Hashes = sync::Cache<HeaderValue, (Salt, Tenant)>;

/// Most callers whose hashes are kept in memory.
pub(crate) const KNOWN_MAX: usize = 4096;

fn from_credential(hashes: &Hashes, salt: &Salt, parts: &Parts) -> Option<Tenant> {
    let mut lines = parts.headers.get_all(AUTHORIZATION).iter();
    let (credential, None) = (lines.next()?, lines.next()) else { return None };
    if let Some((hashed_with, tenant)) = hashes.get(credential)
        && hashed_with == *salt
    {
        return Some(tenant);
    }
    let tenant = hashed(salt, credential)?;
    hashes.insert(credential.clone(), (*salt, tenant.clone()));
    Some(tenant)
}

fn hashed(salt: &Salt, credential: &HeaderValue) -> Option<Tenant> {
    let headers = [(AUTHORIZATION.as_str(), credential.as_bytes())];
    let all_credentials = Tenant::parse("credential").ok()?;
    let request = RequestParts { headers: &headers, ..RequestParts::default() };
    let hash = salt.tenant_key(&all_credentials).fingerprint(&request);
    Tenant::parse(format!("credential-{}", hex(&hash))).ok()
}

/// The deciding bytes of a keyed hash, as text.
pub(crate) fn hex(hash: &Fingerprint) -> String {
    hash.as_bytes()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Debug for Tenancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Credential(_) => f.write_str("Tenancy::credential()"),
            Kind::Single(tenant) => write!(f, "Tenancy::single({tenant:?})"),
            Kind::FromFn(_) => f.write_str("Tenancy::from_fn(..)"),
            Kind::FromAsyncFn(_) => f.write_str("Tenancy::from_async_fn(..)"),
        }
    }
}
