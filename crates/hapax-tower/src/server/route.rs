//! Which requests are protected, and how.

use std::{sync::Arc, time::Duration};

use http::{Method, request::Parts};

use super::{
    options::{Dialect, InFlight, Protection},
    usual_time::UsualTime,
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
    /// Of what no route names.
    usual_time: Arc<UsualTime>,
}

#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) pattern: String,
    pub(crate) protection: Option<Arc<Protection>>,
    usual_time: Arc<UsualTime>,
}

impl Routes {
    /// Treats every request that changes something so, unless a route says otherwise.
    pub fn new(otherwise: Treatment) -> Result<Self, InvalidRoute> {
        let otherwise = checked(otherwise)?;
        Ok(Self { routes: Vec::new(), otherwise, usual_time: Arc::default() })
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
        let (pattern, usual_time) = (pattern.to_owned(), Arc::default());
        self.routes.push(Route { method, pattern, protection, usual_time });
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

    /// How a request of this method and path would be protected.
    pub(crate) fn protection(&self, method: &Method, path: &str) -> Option<&Arc<Protection>> {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        parts.method = method.clone();
        parts.uri = path.parse().ok()?;
        self.find(&parts).1
    }

    /// How long the work of a route usually takes, by its place.
    pub(crate) fn usual_time(&self, route: usize) -> &Arc<UsualTime> {
        self.routes.get(route).map_or(&self.usual_time, |route| &route.usual_time)
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
        self.protections().any(|route| route.in_flight == InFlight::Accept)
    }
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

/// Methods that promise to change nothing, by the registry of HTTP: a key on them is ignored.
pub const SAFE_METHODS: [&str; 8] =
    ["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"];

pub(crate) fn is_safe(method: &Method) -> bool {
    // Most requests that come here change something by POST.
    *method != Method::POST && SAFE_METHODS.contains(&method.as_str())
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
