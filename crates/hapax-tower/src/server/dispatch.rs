//! What is done with a request, as far as its head says: the same for every service of the layer.

use std::sync::Arc;

use http::{Request, Response, request::Parts};

use super::{
    layer::Site,
    options::{KeyRule, Protection},
    requests::{
        caller_signals::CallerSignals,
        cors::{self, Reader},
        drain::{ConnectionReuse, UnreadBody},
        front::Front,
    },
    responses::{dialects::AnsweredRequest, problem::Problem},
    service::{Judged, pass},
    verdict::{Handled, Verdict},
};
use crate::{body::Body, http_service::HttpService};

/// A request whose route is known.
pub(crate) struct Routed<Rule> {
    pub(crate) request: (Parts, Body),
    pub(crate) route: usize,
    pub(crate) rule: Rule,
    /// Whether the route protects, so that the answer may be read by whom the layer says.
    is_protected: bool,
    /// The page of another origin that wants to read the answer, where some may.
    pub(crate) reader: Option<Reader>,
}

/// How a protected request is treated.
pub(crate) type Protected = Routed<(Arc<Protection>, CallerSignals)>;

/// Where a request goes.
pub(crate) enum Dispatch {
    /// To whoever protects it.
    Protect(Protected),
    /// Nowhere that is protected.
    Otherwise(Routed<Rule>),
}

/// What is done with a request that asks for nothing protected. Whoever asks for a page of the layer
/// gets it in any case.
pub(crate) enum Rule {
    Preflight(Response<Body>),
    Refuse(Problem),
    Pass(CallerSignals),
}

impl Front {
    /// Finds the route of a request, and what is done with it.
    pub(crate) fn dispatch(&self, request: Request<Body>) -> Dispatch {
        let (mut parts, body) = request.into_parts();
        let mut reader = None;
        if let Some(cors) = &self.cors {
            if let Some(preflight) = self.preflight(cors, &parts) {
                let (route, rule) = (self.routes.find(&parts).0, Rule::Preflight(preflight));
                let (request, is_protected) = ((parts, body), false);
                return Dispatch::Otherwise(Routed { request, route, rule, is_protected, reader });
            }
            reader = Some(cors::reader(cors, &parts));
        }
        let (route, protection) = match self.routes.admit(&mut parts) {
            Ok(found) => found,
            Err((route, problem)) => {
                let (request, rule, is_protected) = ((parts, body), Rule::Refuse(problem), true);
                return Dispatch::Otherwise(Routed { request, route, rule, is_protected, reader });
            }
        };
        let is_protected = protection.is_some();
        let reads_grpc = protection.is_some_and(|protection| protection.grpc_timeout);
        let rule = match (CallerSignals::take(&mut parts.headers, reads_grpc), protection) {
            (Ok(said), Some(protection)) if applies(protection, &parts) => {
                let (request, rule) = ((parts, body), (Arc::clone(protection), said));
                return Dispatch::Protect(Routed { request, route, rule, is_protected, reader });
            }
            (Ok(said), _) => Rule::Pass(said),
            (Err(problem), _) => Rule::Refuse(problem),
        };
        Dispatch::Otherwise(Routed { request: (parts, body), route, rule, is_protected, reader })
    }

    /// Answers a request that asks for nothing protected; with this page of the layer, if that is what
    /// it asks for.
    pub(crate) async fn otherwise<Inner: HttpService>(
        &self,
        inner: Inner,
        routed: Routed<Rule>,
        page: Option<Response<Body>>,
    ) -> Result<(Response<Body>, Handled), Inner::Error> {
        let Routed { request: (parts, body), route, rule, is_protected, reader } = routed;
        let (mut response, verdict) = match (page, rule) {
            (Some(page), _) | (None, Rule::Preflight(page)) => (page, Verdict::Page),
            (None, Rule::Refuse(problem)) => {
                let taken = self.routes.all().get(route).map(|route| &route.treated);
                let protection = taken.unwrap_or_else(|| self.routes.otherwise()).protection();
                let answered = protection.and_then(|protection| {
                    AnsweredRequest::of(&protection.dialect, &parts.headers)
                });
                let unread = UnreadBody::Unread(body);
                let (mut told, verdict) =
                    Box::pin(refuse(problem, &self.site, parts, unread)).await;
                if let Some(answered) = answered {
                    answered.tell(&mut told, &self.site, verdict, None);
                }
                (told, verdict)
            }
            (None, Rule::Pass(said)) => {
                let request = Request::from_parts(parts, body);
                (pass(inner, said, request).await?, Verdict::Passed)
            }
        };
        if is_protected || verdict == Verdict::Page {
            cors::let_read(reader.as_ref(), &mut response);
        }
        Ok((response, Handled { verdict, route, operation: None, repeated: None }))
    }
}

/// Whether a route protects this request.
pub(crate) fn applies(protection: &Protection, parts: &Parts) -> bool {
    match protection.key {
        KeyRule::Required => true,
        KeyRule::Optional => parts.headers.contains_key(protection.key_header()),
    }
}

/// Says beside the response what was done to have it.
pub(crate) fn marked((mut response, handled): (Response<Body>, Handled)) -> Response<Body> {
    response.extensions_mut().insert(handled);
    response
}

/// Refuses a request before it is known what it asks for.
async fn refuse(problem: Problem, site: &Site, parts: Parts, rest: UnreadBody) -> Judged {
    let verdict = Verdict::Refused(problem.code);
    let mut response = problem.into_response(site);
    ConnectionReuse::of(parts.version, &parts.headers).leave_clean(rest, &mut response).await;
    (response, verdict)
}
