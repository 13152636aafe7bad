//! How one route is protected.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::{
    Policy, Recovery, Scope,
    limits::{OUTCOME_BODY_BYTES_MAX, REQUEST_BYTES_MAX},
};
use http::{HeaderName, Method, header::HOST, request::Parts, uri::Authority};

use super::{
    comparison::compared_headers::ComparedHeaders,
    dialect::Dialect,
    execution::{
        probe::Prober, rate_limit::RateLimit, revalidate::Revalidator, status_meaning::ResultPolicy,
    },
    requests::{
        account,
        derived_key::{DerivedKey, undecorated},
        route::InvalidRoute,
        tenancy::Tenancy,
        worth::WorthRule,
    },
};
use crate::{header_names::IDEMPOTENCY_KEY, secret_header::is_secret_header};

/// How the requests of one route are protected.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{InFlight, Protection, ResultPolicy, Routes, Treatment};
/// use http::Method;
///
/// let payments = Protection {
///     results: ResultPolicy::SuccessOnly,
///     in_flight: InFlight::Wait(Duration::from_secs(5)),
///     ..Protection::default()
/// };
/// let routes = Routes::default().route(Method::POST, "/payments", Treatment::Protect(payments))?;
/// assert_eq!(routes.labels(), ["POST /payments", "otherwise"]);
/// # Ok::<(), hapax_tower::InvalidRoute>(())
/// ```
#[derive(Debug, Clone)]
pub struct Protection {
    /// What the route is called in logs and metrics; as `POST /payments` where it is empty.
    pub label: Arc<str>,
    /// Leases, retention, what recovery may do.
    pub policy: Policy,
    /// What a result means.
    pub results: ResultPolicy,
    /// Whose keys they are, where it is not as the layer says.
    pub tenancy: Option<Tenancy>,
    /// Whether a request without a key is refused: one that is not sent, and cannot be derived either.
    pub key: KeyRule,
    /// What a key is made of where a client sends none; only keys that are sent count without it.
    pub derived_key: Option<DerivedKey>,
    /// How a key may be written.
    pub key_form: KeyForm,
    /// Which header carries the key.
    pub dialect: Dialect,
    /// How the key is written to the service, however the client wrote it.
    pub key_spelling: KeySpelling,
    /// Within what a key is unique.
    pub scope: Scoping,
    /// Whether the same request to another host is another operation.
    pub hosts: Hosts,
    /// What a duplicate hears while the first request is at work.
    pub in_flight: InFlight,
    /// Whether a client may ask for 202 and an address to look at by `Prefer: respond-async`. Needs
    /// [`Later`](crate::Later).
    pub respond_async: bool,
    /// The longest wait a client may ask for by `Prefer: wait=N`.
    pub wait_max: Duration,
    /// How long the service may work, and how long its body or its reader may stall; shorter than
    /// the lease.
    pub timeout: Duration,
    /// Whether callers say how long they wait in `grpc-timeout`, and the service is told so; it is
    /// passed on as it is otherwise. `Hapax-Deadline` is always read.
    pub grpc_timeout: bool,
    /// How long an attempt that nobody answered is looked after by itself: sent again under
    /// [`Recovery::Resend`], asked about under [`Recovery::Probe`]. Zero for not at all.
    pub recover_for: Duration,
    /// Whom to ask whether an operation happened; needed for [`Recovery::Probe`].
    pub probe: Option<Prober>,
    /// Who is asked, before anything is told from the store, whether its caller may still hear it.
    /// Without one a stored answer is for whoever shows the credential it was stored under, as long
    /// as it is kept.
    pub revalidate: Option<Revalidator>,
    /// How many new operations each caller may begin; as many as it likes without one.
    pub limit: Option<RateLimit>,
    /// How bodies are compared.
    pub body: BodyForm,
    /// Headers that tell requests apart.
    pub compared_headers: ComparedHeaders,
    /// Headers of a response that are not stored, beside those that never are.
    pub unstored_headers: Vec<HeaderName>,
    /// Headers of a response that are stored although they usually are not, such as `Set-Cookie`.
    pub stored_headers: Vec<HeaderName>,
    /// How long a request body may take to come.
    pub receive_within: Duration,
    /// Largest request body, in bytes; a larger one is refused before anything is claimed.
    pub request_bytes_max: usize,
    /// Largest response body that is stored, in bytes; a larger one is passed on, not kept.
    pub response_bytes_max: usize,
    /// Whether the body of a response is stored at all.
    pub kept_body: KeptBody,
    /// What happens while the store cannot be asked.
    pub store_down: StoreDown,
    /// Where a request says what it is worth, so that those who count can say what was not done twice.
    pub worth: Option<WorthRule>,
    /// Headers that carry secrets, beside those whose name says so
    /// ([`is_secret_header`](crate::is_secret_header)) and those the tenancy takes credentials from.
    /// They are not stored: neither with an answer, unless [`Protection::stored_headers`] names them,
    /// nor with a request, unless it keeps its credentials.
    pub secret_headers: Vec<HeaderName>,
    /// Whether a request that is kept, to be run later or by somebody else, keeps its credentials.
    pub credentials: KeptCredentials,
}

impl Default for Protection {
    /// A required key in either form, 409 while in flight, `terminal` results, bodies compared by
    /// their media type, 1 MiB each way, 30 s to come and 25 s to be answered.
    fn default() -> Self {
        Self {
            label: Arc::default(),
            policy: Policy::default(),
            results: ResultPolicy::Terminal,
            tenancy: None,
            key: KeyRule::Required,
            derived_key: None,
            key_form: KeyForm::QuotedOrBare,
            dialect: Dialect::Header(IDEMPOTENCY_KEY),
            key_spelling: KeySpelling::OfTheHeader,
            scope: Scoping::MethodAndPath,
            hosts: Hosts::Alike,
            in_flight: InFlight::Reject,
            respond_async: false,
            wait_max: Duration::from_secs(30),
            timeout: Duration::from_secs(25),
            grpc_timeout: false,
            recover_for: Duration::from_secs(60),
            probe: None,
            revalidate: None,
            limit: None,
            body: BodyForm::Auto { ignored: Vec::new() },
            compared_headers: ComparedHeaders::Usual,
            unstored_headers: Vec::new(),
            stored_headers: Vec::new(),
            receive_within: Duration::from_secs(30),
            request_bytes_max: 1 << 20,
            response_bytes_max: 1 << 20,
            kept_body: KeptBody::WithinLimit,
            store_down: StoreDown::Refuse,
            worth: None,
            secret_headers: Vec::new(),
            credentials: KeptCredentials::LeaveOut,
        }
    }
}

/// Most room a stored request takes beside its body, in bytes: what servers read as a head.
const HEAD_BYTES_MAX: usize = 1 << 20;

impl Protection {
    /// The usual protection for clients that speak a dialect, with [what results mean](Dialect::results)
    /// in it.
    ///
    /// ```
    /// use hapax_tower::{Dialect, Protection, ResultPolicy};
    ///
    /// let charges = Protection::in_dialect(Dialect::Stripe);
    /// assert_eq!(charges.results, ResultPolicy::Stripe);
    /// ```
    pub fn in_dialect(dialect: Dialect) -> Self {
        Self { results: dialect.results(), dialect, ..Self::default() }
    }

    /// Refuses what contradicts itself.
    pub(crate) fn check(&self) -> Result<(), InvalidRoute> {
        if self.timeout >= self.policy.lease() {
            let (timeout, lease) = (self.timeout, self.policy.lease());
            return Err(InvalidRoute::Timeout { timeout, lease });
        }
        if self.response_bytes_max > OUTCOME_BODY_BYTES_MAX {
            return Err(InvalidRoute::ResponseCap { bytes: self.response_bytes_max });
        }
        if self.request_bytes_max > REQUEST_BYTES_MAX - HEAD_BYTES_MAX {
            return Err(InvalidRoute::RequestCap { bytes: self.request_bytes_max });
        }
        if self.policy.recovery() == Recovery::Probe && self.probe.is_none() {
            return Err(InvalidRoute::Probe);
        }
        if let Some(derived) = &self.derived_key {
            derived.check(self)?;
        }
        Ok(())
    }

    /// Whether somebody else may finish what an owner left behind.
    pub(crate) fn can_be_finished(&self) -> bool {
        match self.policy.recovery() {
            Recovery::Resend | Recovery::Probe => true,
            Recovery::Hold => false,
        }
    }

    /// Within what a key that is sent with this request is unique; `None` refuses it.
    pub(crate) fn scope_of(&self, parts: &Parts) -> Option<Scope> {
        // Derived keys have scopes of their own.
        let scope = self.scope.of(parts).filter(|scope| undecorated(scope.as_str()).is_none())?;
        let scope = match self.hosts {
            Hosts::Alike => scope,
            Hosts::Apart => match host_of(parts)? {
                host if host.is_empty() => scope,
                host => Scope::parse(["//", &host, " ", scope.as_str()].concat()).ok()?,
            },
        };
        account::within(&self.dialect, &parts.headers, scope)
    }

    /// Whether a request's header is left out when the request is kept.
    pub(crate) fn leaves_out(&self, name: &HeaderName) -> bool {
        match self.credentials {
            KeptCredentials::Keep => false,
            KeptCredentials::LeaveOut => {
                let secret = is_secret_header(name) || self.is_named_secret(name);
                secret && name != self.key_header()
            }
        }
    }

    /// Whether a header carries a secret because somebody said so.
    pub(crate) fn is_named_secret(&self, name: &HeaderName) -> bool {
        let of_tenancy = self.tenancy.as_ref().is_some_and(|own| own.credentials().contains(name));
        of_tenancy || self.secret_headers.contains(name)
    }

    /// The header that carries the key.
    pub(crate) fn key_header(&self) -> &HeaderName {
        self.dialect.key_header()
    }

    /// How keys are read: vendors take the value of the header as it is.
    pub(crate) fn read_as(&self) -> KeyForm {
        match self.dialect {
            Dialect::Header(_) | Dialect::Repeatability => self.key_form,
            Dialect::Stripe | Dialect::Paypal | Dialect::Adyen => KeyForm::AsItIs,
        }
    }
}

/// Whether a request without a key is refused.
///
/// ```
/// use hapax_tower::{KeyRule, Protection};
///
/// let gentle = Protection { key: KeyRule::Optional, ..Protection::default() };
/// # drop(gentle);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// It is refused.
    Required,
    /// It passes, without protection.
    Optional,
}

/// How a key may be written.
///
/// ```
/// use hapax_tower::{Code, KeyForm, parse_key};
///
/// assert_eq!(parse_key(b"order-17", KeyForm::QuotedOrBare)?.as_str(), "order-17");
/// assert_eq!(parse_key(b"order-17", KeyForm::Quoted), Err(Code::KeyNotQuoted));
/// # Ok::<(), Code>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// As a quoted string, or bare as most clients send it; both are the same key.
    QuotedOrBare,
    /// As a quoted string of RFC 9651 alone.
    Quoted,
    /// As any text: the whole value of the header, quotes included. The dialects of vendors read keys
    /// so, whatever the form says.
    AsItIs,
}

/// How a key is written to the service: alike for every attempt, so that a service that compares
/// the header itself sees one key.
///
/// ```
/// use hapax_tower::{KeySpelling, Protection};
///
/// // The service behind it reads the key without quotes.
/// let protection = Protection { key_spelling: KeySpelling::Bare, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeySpelling {
    /// Quoted in `Idempotency-Key`, as its standard says; bare in any other header; as it came where
    /// the dialect is a vendor's.
    OfTheHeader,
    /// As a quoted string of RFC 9651.
    Quoted,
    /// Without quotes, unless it could not be told from something else then; as it came where the
    /// dialect is a vendor's.
    Bare,
}

/// Whether requests to different hosts are different operations.
///
/// ```
/// use hapax_tower::{Hosts, Protection};
///
/// // One service for many shops, each under a name of its own.
/// let protection = Protection { hosts: Hosts::Apart, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hosts {
    /// They are the same: the service does not look at its name.
    Alike,
    /// They are different: each host has keys of its own.
    Apart,
}

/// Within what a key is unique, beside its tenant.
///
/// ```
/// use hapax_core::Scope;
/// use hapax_tower::{Protection, Scoping};
///
/// // `/v1/payments` and `/v2/payments` share their keys.
/// let scope = Scoping::Named(Scope::parse("payments")?);
/// let protection = Protection { scope, ..Protection::default() };
/// # drop(protection);
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Clone)]
pub enum Scoping {
    /// The method and the concrete path.
    MethodAndPath,
    /// One name for the whole route: the same key on another path of it is refused.
    Named(Scope),
    /// What the application says; `None` refuses the request.
    FromFn(Arc<ScopeFn>),
}

/// Names the scope of a request.
pub(crate) type ScopeFn = dyn Fn(&Parts) -> Option<Scope> + Send + Sync;

impl Scoping {
    /// Asks the application for the scope of each request.
    pub fn from_fn(scope: impl Fn(&Parts) -> Option<Scope> + Send + Sync + 'static) -> Self {
        Self::FromFn(Arc::new(scope))
    }

    pub(crate) fn of(&self, parts: &Parts) -> Option<Scope> {
        match self {
            Self::MethodAndPath => Self::method_and_path(&parts.method, parts.uri.path()),
            Self::Named(scope) => Some(scope.clone()),
            Self::FromFn(scope) => scope(parts),
        }
    }

    fn method_and_path(method: &Method, path: &str) -> Option<Scope> {
        Scope::parse([method.as_str(), " ", path].concat()).ok()
    }
}

/// The host a request is for in its one spelling, empty if it names none; `None` if that is unclear.
fn host_of(parts: &Parts) -> Option<String> {
    let mut lines = parts.headers.get_all(HOST).iter();
    let host = match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok()?,
        (None, _) => parts.uri.authority().map_or("", Authority::as_str),
        (Some(_), Some(_)) => return None,
    };
    let host = host.strip_suffix(":80").or_else(|| host.strip_suffix(":443")).unwrap_or(host);
    Some(host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase())
}

impl fmt::Debug for Scoping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MethodAndPath => f.write_str("MethodAndPath"),
            Self::Named(scope) => f.debug_tuple("Named").field(scope).finish(),
            Self::FromFn(_) => f.write_str("FromFn(..)"),
        }
    }
}

/// What a duplicate hears while the first request is at work.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{InFlight, Protection};
///
/// let in_flight = InFlight::Wait(Duration::from_secs(5));
/// let protection = Protection { in_flight, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFlight {
    /// 409, with the time the present lease lasts.
    Reject,
    /// It waits this long for the answer, then hears 409.
    Wait(Duration),
    /// The first request and its duplicates are answered 202 with an address to look at, and the
    /// request is run later. Needs [`Later`](crate::Later).
    Accept,
}

/// How bodies are compared.
///
/// ```
/// use hapax_tower::{BodyForm, Protection};
///
/// let body = BodyForm::Json { ignored: vec!["/sent_at".to_owned()] };
/// let protection = Protection { body, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyForm {
    /// By what `Content-Type` says it is: JSON as values, forms as fields, multipart as parts, each
    /// also within gzip, and everything else byte by byte. What is not what it says it is, or has no
    /// single meaning, is compared byte by byte too.
    ///
    /// The same content with and without gzip is two requests: the service is sent what came.
    Auto {
        /// JSON pointers of members that do not tell requests apart, such as `/sent_at`.
        ignored: Vec<String>,
    },
    /// Byte by byte.
    Raw,
    /// As JSON values: order and spelling of members do not matter. What is not JSON is refused.
    Json {
        /// JSON pointers of members that do not tell requests apart, such as `/sent_at`.
        ignored: Vec<String>,
    },
    /// As the parts of a multipart body: the boundary between them does not matter, their order,
    /// headers and bytes do, and what is written around them. What is not multipart is refused.
    Multipart,
}

/// What happens while the store cannot be asked.
///
/// ```
/// use hapax_tower::{Protection, StoreDown};
///
/// // For what is better done twice than not at all.
/// let protection = Protection { store_down: StoreDown::RunUnprotected, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreDown {
    /// 503: nothing runs unprotected.
    Refuse,
    /// The request runs **without protection**: a retry runs it again. Each time is logged as an
    /// error and the answer carries `Hapax-Unprotected: true`.
    RunUnprotected,
}

/// Whether the body of a response is stored.
///
/// ```
/// use hapax_tower::{KeptBody, Protection};
///
/// // A replay tells that it was done and with which status, not what it said.
/// let protection = Protection { kept_body: KeptBody::Never, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptBody {
    /// It is, up to [`Protection::response_bytes_max`].
    WithinLimit,
    /// It is not: status and headers alone are.
    Never,
}

/// Whether a kept request keeps the headers that carry secrets.
///
/// ```
/// use hapax_tower::{KeptCredentials, Protection};
///
/// // What is run later is run with the credentials it came with.
/// let protection = Protection { credentials: KeptCredentials::Keep, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptCredentials {
    /// It does not: nobody can read them in the store, and a service that asks for them refuses
    /// the request when it is run.
    LeaveOut,
    /// It does: whoever can read the store can read them.
    Keep,
}
