//! Which requests are protected, and how.

use std::{sync::Arc, time::Duration};

use hapax_core::Scope;
use http::{HeaderName, Method, Uri, request::Parts};

use crate::server::{
    dialect::Dialect,
    dispatch::applies,
    execution::{revalidate::Revalidator, usual_time::UsualTime},
    options::{InFlight, Protection, Scoping},
    requests::{
        account,
        derived_key::{DerivedKey, InvalidDerivedKey, undecorated},
        target::{self, Loose, PathDoubt, PathReading, SpelledPath, plain_path},
        treatment::{Treated, Treatment},
    },
    responses::{code::Code, problem::Problem},
};

/// What requests are called that no route is written for.
const OTHERWISE: &str = "otherwise";

/// Which route is treated how. The first that matches counts.
///
/// ```
/// use hapax_tower::{Routes, Treatment};
/// use http::Method;
///
/// let routes = Routes::default()
///     .route(Method::POST, "/search/*", Treatment::PassThrough)?
///     .route(Method::DELETE, "/payments/{id}", Treatment::Refuse)?;
/// assert_eq!(routes.labels(), ["POST /search/*", "DELETE /payments/{id}", "otherwise"]);
/// # Ok::<(), hapax_tower::InvalidRoute>(())
/// ```
#[derive(Debug, Clone)]
pub struct Routes {
    routes: Vec<Route>,
    otherwise: Treated,
    /// Of what no route names.
    usual_time: Arc<UsualTime>,
    reading: PathReading,
    /// Whether there is a route for another method than POST.
    has_other_methods: bool,
    /// Whether something is observed, and everything else passes: no request is refused then.
    refuses_nothing: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) pattern: String,
    label: String,
    loose: Loose,
    pub(crate) treated: Treated,
    usual_time: Arc<UsualTime>,
}

/// Headers by which a POST asks to be taken for another method, for clients that can send no other.
static METHOD_OVERRIDES: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];

/// The number of a route, and how it protects; `None` if its requests pass.
type Found<'r> = (usize, Option<&'r Arc<Protection>>);

impl Default for Routes {
    /// Protects every request that changes something, as [`Protection::default`] says.
    fn default() -> Self {
        let protection = Protection { label: OTHERWISE.into(), ..Protection::default() };
        Self::treating(Treated::Protected(Arc::new(protection)))
    }
}

impl Routes {
    /// Treats every request that changes something so, unless a route says otherwise.
    pub fn new(otherwise: Treatment) -> Result<Self, InvalidRoute> {
        Ok(Self::treating(Treated::checked(otherwise, OTHERWISE)?))
    }

    fn treating(otherwise: Treated) -> Self {
        let (routes, reading) = (Vec::new(), PathReading::Lenient);
        let (usual_time, refuses_nothing) = (Arc::default(), otherwise.observed().is_some());
        Self { routes, otherwise, usual_time, reading, has_other_methods: false, refuses_nothing }
    }

    /// The same routes for a service that reads paths so. Unless told, it is taken to be lenient,
    /// and what it could read as the path of another route is refused.
    #[must_use]
    pub fn reading(self, reading: PathReading) -> Self {
        Self { reading, ..self }
    }

    /// Adds a route.
    ///
    /// A pattern is a path whose segments are compared as they are; `{name}` stands for any one
    /// segment, and a last `*` for whatever follows. Characters that are percent-encoded and need
    /// not be mean the same as themselves.
    pub fn route(
        mut self,
        method: Method,
        pattern: &str,
        treatment: Treatment,
    ) -> Result<Self, InvalidRoute> {
        if is_safe(&method) {
            return Err(InvalidRoute::SafeMethod { method });
        }
        let refuse = || InvalidRoute::Pattern { pattern: pattern.to_owned() };
        let pattern = plain_path(pattern).ok_or_else(refuse)?;
        let rest = pattern.strip_suffix('*').unwrap_or(&pattern);
        if rest.contains('*') {
            return Err(refuse());
        }
        let label = format!("{method} {pattern}");
        let (loose, treated) = (Loose::of(&pattern), Treated::checked(treatment, &label)?);
        self.has_other_methods |= method != Method::POST;
        let usual_time = Arc::default();
        self.routes.push(Route { method, pattern, label, loose, treated, usual_time });
        self.refuses_nothing = self.treatments().all(Treated::passes)
            && self.treatments().any(|treated| treated.observed().is_some());
        Ok(self)
    }

    /// The routes as `POST /payments`, in order, and `otherwise` at the end.
    pub fn labels(&self) -> Vec<String> {
        let routes = self.routes.iter().map(|route| label(&route.treated, &route.label));
        routes.chain([label(&self.otherwise, OTHERWISE)]).map(str::to_owned).collect()
    }

    /// The label of the route that operations of this scope came by; `None` if it was none of these.
    /// Where several share a scope, that of the first.
    pub fn label_of(&self, scope: &Scope) -> Option<&str> {
        let is_its_name = |protection: &Arc<Protection>| match &protection.scope {
            Scoping::Named(name) => name.as_str() == within_host(scope),
            Scoping::MethodAndPath | Scoping::FromFn(_) => false,
        };
        if let Some(named) = self.protections().find(|protection| is_its_name(protection)) {
            return Some(&named.label);
        }
        within_host(scope).split_once(' ').filter(|(_, path)| path.starts_with('/'))?;
        let is_its_route =
            |route: &&Route| route.treated.protection().is_some() && fits(Some(route), scope);
        let protection = match self.routes.iter().find(is_its_route) {
            Some(route) => route.treated.protection(),
            None => self.otherwise.protection(),
        };
        protection.map(|protection| &*protection.label)
    }

    /// The routes that are observed, as `POST /payments`, in order.
    ///
    /// ```
    /// use hapax_tower::{Protection, Routes, Treatment};
    /// use http::Method;
    ///
    /// let routes = Routes::new(Treatment::PassThrough)?
    ///     .route(Method::POST, "/payments", Treatment::Observe(Protection::default()))?;
    /// assert_eq!(routes.observed_labels(), ["POST /payments"]);
    /// # Ok::<(), hapax_tower::InvalidRoute>(())
    /// ```
    pub fn observed_labels(&self) -> Vec<String> {
        let observed = self.treatments().filter_map(Treated::observed);
        observed.map(|protection| protection.label.to_string()).collect()
    }

    /// How requests of this method would be protected that take this route, where it is observed.
    pub(crate) fn observed(&self, at: usize, method: &Method) -> Option<&Arc<Protection>> {
        let treated = self.routes.get(at).map_or(&self.otherwise, |route| &route.treated);
        treated.observed().filter(|_| !is_safe(method))
    }

    fn treatments(&self) -> impl Iterator<Item = &Treated> {
        self.routes.iter().map(|route| &route.treated).chain([&self.otherwise])
    }

    /// Which route a request takes, once its target has the one spelling that everything after
    /// this reads; otherwise how it is refused.
    pub(crate) fn admit(&self, parts: &mut Parts) -> Result<Found<'_>, (usize, Problem)> {
        if is_safe(&parts.method) || !self.cares() {
            return Ok(self.find(parts));
        }
        if self.refuses_nothing {
            let spelled = SpelledPath::read(parts.uri.path()).spelled;
            return Ok((self.take(&parts.method, &spelled).0, None));
        }
        let unknown = self.routes.len();
        if target::is_misspelled(&parts.method) {
            let detail = "Methods are written in capital letters.";
            return Err((unknown, Problem::new(Code::TargetUnclear, detail)));
        }
        let path = SpelledPath::read(parts.uri.path());
        let (at, treated) = self.take(&parts.method, &path.spelled);
        let found = (at, treated.protection());
        if let Some(problem) = self.unclear(parts, &path, found) {
            return Err((at, problem));
        }
        if matches!(treated, Treated::Refused) {
            let detail = "Only what a route names is served here.";
            return Err((at, Problem::new(Code::RouteUnknown, detail)));
        }
        // What is observed is passed on as it was written.
        if treated.observed().is_none() && !is_written(&parts.uri, &path.spelled) {
            let respelled = target::with_path(&parts.uri, &path.spelled).ok_or_else(|| {
                (at, Problem::new(Code::TargetUnclear, "The target is no path of a server."))
            })?;
            parts.uri = respelled;
        }
        Ok(found)
    }

    /// Which route a request that was admitted takes.
    pub(crate) fn find(&self, parts: &Parts) -> Found<'_> {
        if is_safe(&parts.method) {
            return (self.routes.len(), None);
        }
        let (at, treated) = self.take(&parts.method, parts.uri.path());
        (at, treated.protection())
    }

    fn take(&self, method: &Method, path: &str) -> (usize, &Treated) {
        let matching = self
            .routes
            .iter()
            .enumerate()
            .find(|(_, route)| route.method == *method && path_fits(&route.pattern, path));
        match matching {
            Some((at, route)) => (at, &route.treated),
            None => (self.routes.len(), &self.otherwise),
        }
    }

    /// How a request of this method and path would be protected, however the path is spelled.
    pub(crate) fn protection(&self, method: &Method, path: &str) -> Option<&Arc<Protection>> {
        if is_safe(method) {
            return None;
        }
        self.take(method, &SpelledPath::read(path).spelled).1.protection()
    }

    /// How long the work of a route usually takes, by its place.
    pub(crate) fn usual_time(&self, route: usize) -> &Arc<UsualTime> {
        self.routes.get(route).map_or(&self.usual_time, |route| &route.usual_time)
    }

    /// Whether it matters which path a request has: if nothing is protected or refused, it does not.
    fn cares(&self) -> bool {
        !self.routes.is_empty() || !matches!(self.otherwise, Treated::Passes)
    }

    /// Refuses what the service may run as something else than what it is taken for here: without
    /// protection, or as another operation than the one its key belongs to.
    fn unclear(&self, parts: &Parts, path: &SpelledPath<'_>, found: Found<'_>) -> Option<Problem> {
        let unclear = |detail: String| Some(Problem::new(Code::TargetUnclear, detail));
        let (at, protection) = found;
        let is_protected = || protection.is_some_and(|protection| applies(protection, parts));
        let counts = match (path.doubt, self.reading) {
            (None, _) | (Some(PathDoubt::Ambiguous), PathReading::Literal) => false,
            (Some(PathDoubt::Ambiguous), PathReading::Lenient) => is_protected(),
            (Some(PathDoubt::Crooked), _) => !self.routes.is_empty() || is_protected(),
        };
        if counts {
            let what = "Servers disagree about which path this is.";
            return unclear(format!("{what} Write it without what is read in two ways."));
        }
        let mistaken = match self.reading {
            PathReading::Literal => None,
            PathReading::Lenient => self.mistaken(&parts.method, path, at),
        };
        let mistaken = mistaken.or_else(|| {
            let method = self.overridden(parts)?;
            self.if_it_matters(at, self.take(&method, &path.spelled).0)
        });
        match self.routes.get(mistaken?) {
            Some(Route { method, pattern, .. }) => {
                unclear(format!("It could be read as {method} {pattern}."))
            }
            None => unclear("It could be read as what is protected here.".to_owned()),
        }
    }

    /// The route that the loosest reader of paths takes, if that is another one and it matters.
    fn mistaken(&self, method: &Method, path: &SpelledPath<'_>, at: usize) -> Option<usize> {
        // The first route is found by every reader; a path that a route spells out is meant.
        let is_spelled_out = || {
            let route = self.routes.get(at);
            route.is_some_and(|route| route.pattern == path.spelled)
        };
        if at == 0 && path.doubt.is_none() || is_spelled_out() {
            return None;
        }
        let fits = |route: &Route| route.method == *method && route.loose.fits(path.loose());
        let loose = self.routes.iter().position(fits).unwrap_or(self.routes.len());
        self.if_it_matters(at, loose)
    }

    /// The method that a service may take a POST for, because a header says so.
    fn overridden(&self, parts: &Parts) -> Option<Method> {
        if !self.has_other_methods || parts.method != Method::POST {
            return None;
        }
        let named = METHOD_OVERRIDES.iter().find_map(|name| parts.headers.get(name))?;
        Method::from_bytes(&named.as_bytes().trim_ascii().to_ascii_uppercase()).ok()
    }

    /// The other route, unless it treats its requests like the one that was found.
    fn if_it_matters(&self, at: usize, other: usize) -> Option<usize> {
        let passes = |at: usize| {
            let treated = self.routes.get(at).map_or(&self.otherwise, |route| &route.treated);
            treated.passes()
        };
        (other != at && !(passes(other) && passes(at))).then_some(other)
    }

    /// The same, with these headers kept secret on every route that has no tenancy of its own.
    pub(crate) fn with_secrets(mut routes: Arc<Self>, secrets: &[HeaderName]) -> Arc<Self> {
        let lacks = |route: &Arc<Protection>| {
            route.tenancy.is_none() && !secrets.iter().all(|name| route.is_named_secret(name))
        };
        if routes.protections().any(lacks) {
            let own = Arc::make_mut(&mut routes);
            let all = own.routes.iter_mut().map(|route| &mut route.treated);
            let all = all.chain([&mut own.otherwise]).filter_map(Treated::protection_mut);
            for protection in all {
                if lacks(protection) {
                    Arc::make_mut(protection).secret_headers.extend_from_slice(secrets);
                }
            }
        }
        routes
    }

    /// Changes how what no route names is protected.
    pub(crate) fn protect_otherwise(
        &mut self,
        change: impl FnOnce(&mut Protection),
    ) -> Result<(), InvalidRoute> {
        let protection = self.otherwise.protection_mut().ok_or(InvalidRoute::Unprotected)?;
        change(Arc::make_mut(protection));
        protection.check()
    }

    /// Who says whether a caller may still hear of an operation with this scope: whoever is asked on
    /// the routes that may have protected it.
    pub(crate) fn revalidators(&self, scope: &Scope) -> Vec<&Revalidator> {
        let mut asked = Vec::new();
        let mut is_reached = true;
        for (route, protection) in self.reachable() {
            let may_be = match protection.map(|protection| &protection.scope) {
                Some(Scoping::Named(name)) => name.as_str() == within_host(scope),
                Some(Scoping::FromFn(_)) => true,
                // As requests are: by the first route that fits.
                Some(Scoping::MethodAndPath) | None => is_reached && fits(route, scope),
            };
            is_reached &= !fits(route, scope);
            let revalidator = protection.and_then(|protection| protection.revalidate.as_ref());
            asked.extend(revalidator.filter(|_| may_be));
        }
        asked
    }

    /// Every route in the order requests meet them, and at the end what no route names.
    fn reachable(&self) -> impl Iterator<Item = (Option<&Route>, Option<&Arc<Protection>>)> {
        let routes = self.routes.iter().map(|route| (Some(route), route.treated.protection()));
        routes.chain([(None, self.otherwise.protection())])
    }

    /// How every protected route is protected, in order.
    ///
    /// ```
    /// use hapax_tower::{Routes, Treatment};
    ///
    /// assert_eq!(Routes::default().protections().count(), 1);
    /// assert_eq!(Routes::new(Treatment::Refuse)?.protections().count(), 0);
    /// # Ok::<(), hapax_tower::InvalidRoute>(())
    /// ```
    pub fn protections(&self) -> impl Iterator<Item = &Arc<Protection>> {
        self.treatments().filter_map(Treated::protection)
    }

    pub(crate) fn all(&self) -> &[Route] {
        &self.routes
    }

    pub(crate) fn otherwise(&self) -> &Treated {
        &self.otherwise
    }

    /// Refuses what a transaction cannot do.
    pub(crate) fn check_for_transactions(&self) -> Result<(), InvalidRoute> {
        let repeats = |route: &Arc<Protection>| route.dialect == Dialect::Repeatability;
        if self.accepts_for_later() || self.protections().any(repeats) {
            return Err(InvalidRoute::NotInTransaction);
        }
        let looks_back = |route: &Arc<Protection>| {
            matches!(route.derived_key, Some(DerivedKey::Fingerprint { .. }))
        };
        if self.protections().any(looks_back) {
            return Err(InvalidRoute::NoWindowInTransaction);
        }
        Ok(())
    }

    pub(crate) fn accepts_for_later(&self) -> bool {
        self.protections().any(|route| route.in_flight == InFlight::Accept || route.respond_async)
    }
}

/// Whether requests of a scope made of method and path take this route; `None` is what no route
/// names.
fn fits(route: Option<&Route>, scope: &Scope) -> bool {
    route.is_none_or(|route| {
        let named = within_host(scope).split_once(' ');
        named.is_some_and(|(method, path)| {
            route.method.as_str() == method && path_fits(&route.pattern, path)
        })
    })
}

/// The scope within its host and its account, where those are told apart, whether its key was sent or derived.
fn within_host(scope: &Scope) -> &str {
    let scope = account::left_out(undecorated(scope.as_str()).unwrap_or(scope.as_str()));
    let within = scope.strip_prefix("//").and_then(|named| named.split_once(' '));
    within.map_or(scope, |(_, within)| within)
}

/// What a route is called.
fn label<'a>(treated: &'a Treated, unprotected: &'a str) -> &'a str {
    let rule = treated.protection().or_else(|| treated.observed());
    rule.map_or(unprotected, |protection| &*protection.label)
}

/// Whether a target is written with this path; one can also have no path, which means `/`.
fn is_written(uri: &Uri, path: &str) -> bool {
    uri.path_and_query().is_some_and(|target| target.as_str().starts_with(path))
}

/// Methods that promise to change nothing, by the registry of HTTP: a key on them is ignored.
pub const SAFE_METHODS: [&str; 8] =
    ["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"];

pub(crate) fn is_safe(method: &Method) -> bool {
    // Most requests that come here change something by POST.
    *method != Method::POST && SAFE_METHODS.contains(&method.as_str())
}

/// Whether a path fits the pattern of a route, as clients that read the published policy need to know.
///
/// ```
/// use hapax_tower::path_fits;
///
/// assert!(path_fits("/payments/{id}", "/payments/17"));
/// assert!(!path_fits("/payments/{id}", "/payments/17/refund"));
/// ```
pub fn path_fits(pattern: &str, path: &str) -> bool {
    let (pattern, open) = match pattern.strip_suffix('*') {
        Some(start) => (start.strip_suffix('/').unwrap_or(start), true),
        None => (pattern, false),
    };
    let mut segments = path.split('/');
    let mut wanted = pattern.split('/');
    let fits = wanted.by_ref().all(|wanted| {
        segments.next().is_some_and(|segment| {
            let is_name = wanted.starts_with('{') && wanted.ends_with('}');
            segment == wanted || is_name && !segment.is_empty()
        })
    });
    fits && (open || segments.next().is_none())
}

/// Why a route was refused.
///
/// ```
/// use hapax_tower::{InvalidRoute, Routes, Treatment};
/// use http::Method;
///
/// let refused = Routes::default().route(Method::GET, "/payments", Treatment::Refuse).err();
/// assert_eq!(refused, Some(InvalidRoute::SafeMethod { method: Method::GET }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRoute {
    /// The pattern cannot be understood.
    #[error("`{pattern}` is not a pattern: start it with `/`, and use `*` only at its end")]
    Pattern {
        /// The pattern given.
        pattern: String,
    },
    /// The method promises to change nothing, so there is nothing to protect.
    #[error("{method} is never protected: it promises to change nothing")]
    SafeMethod {
        /// The method given.
        method: Method,
    },
    /// The service could still be at work when its lease is over.
    #[error("a timeout of {timeout:?} is not shorter than the lease of {lease:?}")]
    Timeout {
        /// The timeout asked for.
        timeout: Duration,
        /// The lease asked for.
        lease: Duration,
    },
    /// Requests as large as this cannot be stored.
    #[error("a request of {bytes} bytes cannot be stored")]
    RequestCap {
        /// The cap asked for, in bytes.
        bytes: usize,
    },
    /// Responses as large as this cannot be stored.
    #[error("a response of {bytes} bytes cannot be stored")]
    ResponseCap {
        /// The cap asked for, in bytes.
        bytes: usize,
    },
    /// Something is said about the protection of what is not protected.
    #[error("what no route names is not protected here; say it of the routes instead")]
    Unprotected,
    /// Two places would say how requests are protected.
    #[error("requests that are run later are protected as the routes of `Later` say")]
    SaidByLater,
    /// There is nobody to ask whether something happened.
    #[error(
        "the recovery `probe` needs somebody to ask; set `Protection::probe`, or choose `resend` \
         or `hold`"
    )]
    Probe,
    /// Requests are to be accepted, and nobody would run them.
    #[error("a route accepts requests for later, and nobody runs them; give the layer a `Later`")]
    NobodyForLater,
    /// A transaction cannot be waited for by somebody else.
    #[error(
        "a route that runs in a transaction cannot accept requests for later or speak the dialect \
         of repeatable requests"
    )]
    NotInTransaction,
    /// A transaction cannot look for one that began before.
    #[error(
        "a route that runs in a transaction cannot take equal requests for one within a time; make \
         its keys of values"
    )]
    NoWindowInTransaction,
    /// Keys cannot be made so.
    #[error(transparent)]
    DerivedKey(#[from] InvalidDerivedKey),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compared_segment_by_segment() {
        for (pattern, path, fits) in [
            ("/payments", "/payments", true),
            ("/payments", "/payments/", false),
            ("/payments", "/payments/7", false),
            ("/payments/{id}", "/payments/7", true),
            ("/payments/{id}", "/payments/", false),
            ("/payments/{id}", "/payments", false),
            ("/payments/{id}/refunds", "/payments/7/refunds", true),
            ("/v1/*", "/v1/a/b", true),
            ("/v1/*", "/v1", true),
            ("/v1/*", "/v10", false),
            ("/*", "/anything/at/all", true),
        ] {
            assert_eq!(path_fits(pattern, path), fits, "{pattern} {path}");
        }
    }
}
