//! Which requests are protected, and how.

use std::{sync::Arc, time::Duration};

use hapax_core::Scope;
use http::{HeaderName, Method, request::Parts};

use super::{
    options::{Dialect, InFlight, Protection, Scoping},
    revalidate::Revalidator,
};

/// What happens to the requests of a route.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one per route, made at the start")]
pub enum Treatment {
    /// They are protected so.
    Protect(Protection),
    /// They pass; a key on them is ignored.
    PassThrough,
}

/// Which route is treated how. The first that matches counts.
#[derive(Debug, Clone)]
pub struct Routes {
    routes: Vec<Route>,
    otherwise: Option<Arc<Protection>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) pattern: String,
    pub(crate) protection: Option<Arc<Protection>>,
}

impl Routes {
    /// Treats every request that changes something so, unless a route says otherwise.
    pub fn new(otherwise: Treatment) -> Result<Self, InvalidRoute> {
        Ok(Self { routes: Vec::new(), otherwise: checked(otherwise)? })
    }

    /// Adds a route.
    ///
    /// A pattern is a path whose segments are compared as they are; `{name}` stands for any one
    /// segment, and a last `*` for whatever follows.
    pub fn route(
        mut self,
        method: Method,
        pattern: &str,
        treatment: Treatment,
    ) -> Result<Self, InvalidRoute> {
        if is_safe(&method) {
            return Err(InvalidRoute::SafeMethod { method });
        }
        let rest = pattern.strip_suffix('*').unwrap_or(pattern);
        if !pattern.starts_with('/') || rest.contains('*') {
            return Err(InvalidRoute::Pattern { pattern: pattern.to_owned() });
        }
        let protection = checked(treatment)?;
        self.routes.push(Route { method, pattern: pattern.to_owned(), protection });
        Ok(self)
    }

    /// The routes as `POST /payments`, in order, and `otherwise` at the end.
    pub fn labels(&self) -> Vec<String> {
        let routes = self.routes.iter().map(|route| format!("{} {}", route.method, route.pattern));
        routes.chain(["otherwise".to_owned()]).collect()
    }

    /// Which route this request takes, and how it is protected; `None` if it passes.
    pub(crate) fn find(&self, parts: &Parts) -> (usize, Option<&Arc<Protection>>) {
        if is_safe(&parts.method) {
            return (self.routes.len(), None);
        }
        let matching = self.routes.iter().enumerate().find(|(_, route)| {
            route.method == parts.method && path_fits(&route.pattern, parts.uri.path())
        });
        match matching {
            Some((at, route)) => (at, route.protection.as_ref()),
            None => (self.routes.len(), self.otherwise.as_ref()),
        }
    }

    /// The same, with these headers kept secret on every route that has no tenancy of its own.
    pub(crate) fn with_secrets(mut routes: Arc<Self>, secrets: &[HeaderName]) -> Arc<Self> {
        let lacks = |route: &Arc<Protection>| {
            route.tenancy.is_none() && !secrets.iter().all(|name| route.is_named_secret(name))
        };
        if routes.protections().any(lacks) {
            let own = Arc::make_mut(&mut routes);
            let all = own.routes.iter_mut().filter_map(|route| route.protection.as_mut());
            for protection in all.chain(&mut own.otherwise) {
                if lacks(protection) {
                    Arc::make_mut(protection).secret_headers.extend_from_slice(secrets);
                }
            }
        }
        routes
    }

    /// Who says whether a caller may still hear of an operation with this scope: whoever is asked on
    /// the routes that may have protected it.
    pub(crate) fn revalidators(&self, scope: &Scope) -> Vec<&Revalidator> {
        let mut asked = Vec::new();
        let mut is_reached = true;
        for (route, protection) in self.reachable() {
            let may_be = match protection.map(|protection| &protection.scope) {
                Some(Scoping::Named(name)) => name == scope,
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
        let routes = self.routes.iter().map(|route| (Some(route), route.protection.as_ref()));
        routes.chain([(None, self.otherwise.as_ref())])
    }

    /// How every protected route is protected.
    pub(crate) fn protections(&self) -> impl Iterator<Item = &Arc<Protection>> {
        let all = self.routes.iter().filter_map(|route| route.protection.as_ref());
        all.chain(&self.otherwise)
    }

    pub(crate) fn all(&self) -> &[Route] {
        &self.routes
    }

    pub(crate) fn otherwise(&self) -> Option<&Arc<Protection>> {
        self.otherwise.as_ref()
    }

    /// Refuses what a transaction cannot do.
    pub(crate) fn check_for_transactions(&self) -> Result<(), InvalidRoute> {
        let repeats = |route: &Arc<Protection>| route.dialect == Dialect::Repeatability;
        if self.accepts_for_later() || self.protections().any(repeats) {
            return Err(InvalidRoute::NotInTransaction);
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
        let named = scope.as_str().split_once(' ');
        named.is_some_and(|(method, path)| {
            route.method.as_str() == method && path_fits(&route.pattern, path)
        })
    })
}

fn checked(treatment: Treatment) -> Result<Option<Arc<Protection>>, InvalidRoute> {
    match treatment {
        Treatment::Protect(protection) => {
            protection.check()?;
            Ok(Some(Arc::new(protection)))
        }
        Treatment::PassThrough => Ok(None),
    }
}

/// Methods that promise to change nothing.
pub(crate) fn is_safe(method: &Method) -> bool {
    *method == Method::GET
        || *method == Method::HEAD
        || *method == Method::OPTIONS
        || *method == Method::TRACE
}

/// Whether a path fits the pattern of a route, as clients that read the published policy need to know.
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
