//! How one route is protected.

use std::{fmt, sync::Arc, time::Duration};

use hapax_core::{
    Policy, Recovery, Scope,
    limits::{OUTCOME_BODY_BYTES_MAX, REQUEST_BYTES_MAX},
};
use http::{HeaderName, Method, request::Parts};

use super::{
    compared_headers::ComparedHeaders, probe::Prober, rate_limit::RateLimit, route::InvalidRoute,
    tenancy::Tenancy,
};

/// How the requests of one route are protected.
#[derive(Debug, Clone)]
pub struct Protection {
    /// Leases, retention, what a result means, what recovery may do.
    pub policy: Policy,
    /// Whose keys they are, where it is not as the layer says.
    pub tenancy: Option<Tenancy>,
    /// Whether a request without a key is refused.
    pub key: KeyRule,
    /// How a key may be written.
    pub key_form: KeyForm,
    /// Which header carries the key.
    pub dialect: Dialect,
    /// Within what a key is unique.
    pub scope: Scoping,
    /// What a duplicate hears while the first request is at work.
    pub in_flight: InFlight,
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
    /// How many new operations each caller may begin; as many as it likes without one. Requests
    /// accepted for later are not counted.
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
    /// What happens while the store cannot be asked.
    pub store_down: StoreDown,
    /// Whether a request that is kept, to be run later or by somebody else, keeps its credentials.
    pub credentials: Credentials,
}

impl Default for Protection {
    /// A required key in either form, 409 while in flight, bodies compared by their media type,
    /// 1 MiB each way, 30 s to come and 25 s to be answered.
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            tenancy: None,
            key: KeyRule::Required,
            key_form: KeyForm::QuotedOrBare,
            dialect: Dialect::Header(IDEMPOTENCY_KEY),
            scope: Scoping::MethodAndPath,
            in_flight: InFlight::Reject,
            wait_max: Duration::from_secs(30),
            timeout: Duration::from_secs(25),
            grpc_timeout: false,
            recover_for: Duration::from_secs(60),
            probe: None,
            limit: None,
            body: BodyForm::Auto { ignored: Vec::new() },
            compared_headers: ComparedHeaders::Usual,
            unstored_headers: Vec::new(),
            stored_headers: Vec::new(),
            receive_within: Duration::from_secs(30),
            request_bytes_max: 1 << 20,
            response_bytes_max: 1 << 20,
            store_down: StoreDown::Refuse,
            credentials: Credentials::LeaveOut,
        }
    }
}

/// The header of the standard.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The header of OASIS Repeatable Requests that carries the key.
pub(crate) static REPEATABILITY_REQUEST_ID: HeaderName =
    HeaderName::from_static("repeatability-request-id");

/// Most room a stored request takes beside its body, in bytes: what servers read as a head.
const HEAD_BYTES_MAX: usize = 1 << 20;

impl Protection {
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
        Ok(())
    }

    /// Whether somebody else may finish what an owner left behind.
    pub(crate) fn can_be_finished(&self) -> bool {
        match self.policy.recovery() {
            Recovery::Resend | Recovery::Probe => true,
            Recovery::Hold => false,
        }
    }

    /// The header that carries the key.
    pub(crate) fn key_header(&self) -> &HeaderName {
        match &self.dialect {
            Dialect::Header(name) => name,
            Dialect::Repeatability => &REPEATABILITY_REQUEST_ID,
        }
    }
}

/// Whether a request without a key is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRule {
    /// It is refused.
    Required,
    /// It passes, without protection.
    Optional,
}

/// How a key may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// As a quoted string, or bare as most clients send it; both are the same key.
    QuotedOrBare,
    /// As a quoted string of RFC 9651 alone.
    Quoted,
}

/// Which header carries the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// A header of this name.
    Header(HeaderName),
    /// `Repeatability-Request-ID` and `Repeatability-First-Sent`, as OASIS Repeatable Requests say.
    Repeatability,
}

/// Within what a key is unique, beside its tenant.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreDown {
    /// 503: nothing runs unprotected.
    Refuse,
    /// The request runs **without protection**: a retry runs it again. Each time is logged as an
    /// error and the answer carries `Hapax-Unprotected: true`.
    RunUnprotected,
}

/// Whether a kept request keeps `Authorization` and `Cookie`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// It does not: nobody can read them in the store, and a service that asks for them refuses
    /// the request when it is run.
    LeaveOut,
    /// It does: whoever can read the store can read them.
    Keep,
}
