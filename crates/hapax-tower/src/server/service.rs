//! The service: what passes, what is answered here, what asks the engine.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_core::{Operation, Store};
use http::{Request, Response, request::Parts};
use tower_service::Service;
use tracing::Instrument;

use super::{
    answer,
    arrival::{self, Arrival, arrive},
    ask::ask,
    cors::{self, Reader},
    drain::{Rest, Wire},
    handled::{Handled, Verdict},
    layer::{Shared, Site},
    options::{Dialect, KeyRule, Protection},
    problem::Problem,
    receive::Refused,
    repeatability,
    revalidate::Listener,
    said::Said,
    wellknown,
};
use crate::{
    body::{Body, BoxError},
    http_service::HttpService,
};

/// A protected service. Made by [`IdempotencyLayer`](crate::IdempotencyLayer).
pub struct Idempotency<Inner, S: Store> {
    inner: Inner,
    shared: Arc<Shared<S>>,
}

impl<Inner, S: Store> Idempotency<Inner, S> {
    pub(crate) fn new(inner: Inner, shared: Arc<Shared<S>>) -> Self {
        Self { inner, shared }
    }
}

impl<Inner: HttpService, S: Store> Idempotency<Inner, S> {
    /// Answers a request as [`Service::call`] does, and says what was done beside the response
    /// instead of in its extensions: for servers that count.
    pub fn handle(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<(Response<Body>, Handled), Inner::Error>> + Send + use<Inner, S>
    {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        async move {
            match course(&shared, request) {
                // Boxed, so that what passes does not pay for its size.
                Course::Protect(asked) => Box::pin(protect(inner, &shared, asked)).await,
                Course::Otherwise(asked) => otherwise(inner, &shared, asked).await,
            }
        }
    }
}

impl<Inner: Clone, S: Store> Clone for Idempotency<Inner, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<Inner: fmt::Debug, S: Store> fmt::Debug for Idempotency<Inner, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<Inner, S, B, R> Service<Request<B>> for Idempotency<Inner, S>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    S: Store,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Inner::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Inner::Error>> + Send>>;

    /// Always ready: a replay must not wait for a service that is busy or limited.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Inner::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        match course(&shared, request.map(Body::new)) {
            Course::Protect(asked) => {
                Box::pin(async move { Ok(marked(protect(inner, &shared, asked).await?)) })
            }
            Course::Otherwise(asked) => {
                Box::pin(async move { Ok(marked(otherwise(inner, &shared, asked).await?)) })
            }
        }
    }
}

fn marked((mut response, handled): (Response<Body>, Handled)) -> Response<Body> {
    response.extensions_mut().insert(handled);
    response
}

/// A response, and what was done to have it.
pub(crate) type Judged = (Response<Body>, Verdict);

/// A request whose route is known.
struct Asked<Rule> {
    request: (Parts, Body),
    route: usize,
    rule: Rule,
    /// The page of another origin that wants to read the answer, where some may.
    reader: Option<Reader>,
}

/// What is done with a request, as far as its head says.
enum Course {
    Protect(Asked<(Arc<Protection>, Said)>),
    Otherwise(Asked<Rule>),
}

/// What is done with a request that asks for nothing protected. Whoever asks for a page of the layer
/// gets it in any case.
enum Rule {
    Preflight(Response<Body>),
    Refuse(Problem),
    Pass {
        said: Said,
        /// Whether the route protects those that have a key.
        is_protected: bool,
    },
}

fn course<S: Store>(shared: &Shared<S>, request: Request<Body>) -> Course {
    let (mut parts, body) = request.into_parts();
    let mut reader = None;
    if let Some(cors) = &shared.front.cors {
        if let Some(preflight) = shared.front.preflight(cors, &parts) {
            let (route, rule) = (shared.front.routes.find(&parts).0, Rule::Preflight(preflight));
            return Course::Otherwise(Asked { request: (parts, body), route, rule, reader });
        }
        reader = Some(cors::reader(cors, &parts));
    }
    let (route, rule) = match shared.front.routes.admit(&mut parts) {
        Err((route, problem)) => (route, Rule::Refuse(problem)),
        Ok((route, protection)) => {
            let rule = match Said::take(&mut parts.headers, reads_grpc(protection)) {
                Err(problem) => Rule::Refuse(problem),
                Ok(said) => match protection {
                    Some(protection) if applies(protection, &parts) => {
                        let rule = (Arc::clone(protection), said);
                        let request = (parts, body);
                        return Course::Protect(Asked { request, route, rule, reader });
                    }
                    Some(_) | None => Rule::Pass { said, is_protected: protection.is_some() },
                },
            };
            (route, rule)
        }
    };
    Course::Otherwise(Asked { request: (parts, body), route, rule, reader })
}

/// Answers a request that asks for nothing protected.
async fn otherwise<Inner, S>(
    inner: Inner,
    shared: &Shared<S>,
    asked: Asked<Rule>,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    S: Store,
{
    let Asked { request: (parts, body), route, rule, reader } = asked;
    let page = wellknown::serve(shared, &parts).await.map(|page| (page, Verdict::Page));
    let (mut response, verdict, is_ours) = match (page, rule) {
        (_, Rule::Preflight(answer)) => (answer, Verdict::Page, false),
        (Some((page, verdict)), _) => (page, verdict, true),
        (None, Rule::Refuse(problem)) => {
            let refused = refuse(problem, &shared.front.site, parts, Rest::Unread(body));
            let (response, verdict) = Box::pin(refused).await;
            (response, verdict, true)
        }
        (None, Rule::Pass { said, is_protected }) => {
            let response = pass(inner, said, Request::from_parts(parts, body)).await?;
            (response, Verdict::Passed, is_protected)
        }
    };
    if is_ours {
        cors::let_read(reader.as_ref(), &mut response);
    }
    Ok((response, Handled { verdict, route }))
}

pub(crate) fn applies(protection: &Protection, parts: &Parts) -> bool {
    match protection.key {
        KeyRule::Required => true,
        KeyRule::Optional => parts.headers.contains_key(protection.key_header()),
    }
}

/// Whether callers of this route also say their time in the words of gRPC.
pub(crate) fn reads_grpc(protection: Option<&Arc<Protection>>) -> bool {
    protection.is_some_and(|protection| protection.grpc_timeout)
}

/// Refuses a request before it is known what it asks for.
pub(crate) async fn refuse(problem: Problem, site: &Site, parts: Parts, rest: Rest) -> Judged {
    let verdict = Verdict::Refused(problem.code);
    let mut response = problem.into_response(site);
    Wire::of(parts.version, &parts.headers).leave_clean(rest, &mut response).await;
    (response, verdict)
}

async fn protect<Inner, S>(
    inner: Inner,
    shared: &Arc<Shared<S>>,
    asked: Asked<(Arc<Protection>, Said)>,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    S: Store,
{
    let Asked { request, route, rule: (protection, said), reader } = asked;
    let wire = Wire::of(request.0.version, &request.0.headers);
    let arrived = arrived(shared, &protection, said, request).await;
    let (mut response, verdict) = match arrived {
        Ok(arrival) => {
            let (span, listener) = (arrival.span.clone(), Listener::of(&arrival));
            let usual_time = shared.front.routes.usual_time(route);
            let judged = ask(inner, shared, usual_time, arrival).instrument(span).await?;
            match listener {
                // Boxed, so that only routes that ask pay for its size.
                Some(listener) => Box::pin(listener.hear(judged, &shared.front.site)).await,
                None => judged,
            }
        }
        Err((problem, rest)) => {
            let verdict = Verdict::Refused(problem.code);
            let mut response = problem.into_response(&shared.front.site);
            wire.leave_clean(rest, &mut response).await;
            (response, verdict)
        }
    };
    if protection.dialect == Dialect::Repeatability {
        repeatability::add_result(&mut response, verdict);
    }
    cors::let_read(reader.as_ref(), &mut response);
    Ok((response, Handled { verdict, route }))
}

/// Reads what the engine must know, or refuses the request.
async fn arrived<S: Store>(
    shared: &Shared<S>,
    protection: &Arc<Protection>,
    said: Said,
    (parts, body): (Parts, Body),
) -> Result<Arrival, Refused> {
    let named = match arrival::name(&shared.front, protection, &parts).await {
        Ok(operation) => remembered(shared, protection, &parts, operation).await,
        Err(problem) => Err(problem),
    };
    match named {
        Ok(operation) => {
            let request = (parts, body);
            arrive(&shared.front, shared.has_later, protection, said, operation, request).await
        }
        Err(problem) => Err((problem, Rest::Unread(body))),
    }
}

/// The operation, unless it may have been done and forgotten since it was first asked for.
async fn remembered<S: Store>(
    shared: &Shared<S>,
    protection: &Protection,
    parts: &Parts,
    operation: Operation,
) -> Result<Operation, Problem> {
    if let Dialect::Header(_) = protection.dialect {
        return Ok(operation);
    }
    let first_sent = repeatability::first_sent(&parts.headers)?;
    let retention = protection.policy.retention();
    let checked = repeatability::check(&shared.engine, operation.id(), first_sent, retention).await;
    match checked {
        Ok(None) => Ok(operation),
        Ok(Some(problem)) => Err(problem),
        Err(error) => Err(answer::store_failed(&error)),
    }
}

/// Hands a request to the service as it is, with what its caller says.
pub(crate) async fn pass<Inner>(
    mut inner: Inner,
    said: Said,
    mut request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: HttpService,
{
    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
    said.tell(&mut request);
    Ok(inner.call(request).await?.map(Body::new))
}
