//! The service: what passes, what is answered here, what is run.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_core::RequestParts;
use http::{Request, Response, StatusCode, request::Parts};
use tower_service::Service;
use tracing::Instrument;

use super::{
    calls::{in_words_of_calls, is_call},
    dialect::Dialect,
    dispatch::{Dispatch, Protected, Routed, Rule, marked},
    execution::revalidate::ReplayListener,
    layer::Shared,
    mode::{Leased, Mode},
    options::Protection,
    requests::{
        arrival::{self, ArrivedRequest, KeyedRequest, NamedRequest, arrive},
        caller_signals::CallerSignals,
        cors,
        drain::{ConnectionReuse, UnreadBody},
        front::Front,
        repeatability,
        request_body::Refused,
    },
    responses::{dialects::AnsweredRequest, wellknown},
    verdict::{Handled, HandledOperation, Verdict, WantsTenant},
};
use crate::{
    body::{Body, BoxError},
    http_service::HttpService,
};

/// A protected service. Made by [`IdempotencyLayer`](crate::IdempotencyLayer).
pub struct Idempotency<Inner, M = Leased> {
    inner: Inner,
    shared: Arc<Shared<M>>,
}

impl<Inner, M> Idempotency<Inner, M> {
    pub(crate) fn new(inner: Inner, shared: Arc<Shared<M>>) -> Self {
        Self { inner, shared }
    }
}

impl<Inner: HttpService, M: Mode> Idempotency<Inner, M> {
    /// Answers a request as [`Service::call`] does, and says what was done beside the response
    /// instead of in its extensions: for servers that count.
    pub fn handle(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<(Response<Body>, Handled), Inner::Error>> + Send + use<Inner, M>
    {
        let (inner, shared) = (self.inner.clone(), Arc::clone(&self.shared));
        let is_call = is_call(request.headers());
        async move {
            let answered = match shared.front.dispatch(request) {
                // Boxed, so that what passes does not pay for its size.
                Dispatch::Protect(routed) => Box::pin(protect(inner, &shared, routed)).await,
                Dispatch::Otherwise(routed) => otherwise(inner, &shared, routed).await,
            };
            if is_call { answered.map(understood) } else { answered }
        }
    }
}

impl<Inner: Clone, M> Clone for Idempotency<Inner, M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<Inner: fmt::Debug, M> fmt::Debug for Idempotency<Inner, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<Inner, M, B, R> Service<Request<B>> for Idempotency<Inner, M>
where
    Inner: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    Inner::Future: Send,
    Inner::Error: Into<BoxError> + Send,
    M: Mode,
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
        let is_call = is_call(request.headers());
        let told = move |answered| marked(if is_call { understood(answered) } else { answered });
        match shared.front.dispatch(request.map(Body::new)) {
            Dispatch::Protect(routed) => {
                Box::pin(async move { Ok(told(protect(inner, &shared, routed).await?)) })
            }
            Dispatch::Otherwise(routed) => {
                Box::pin(async move { Ok(told(otherwise(inner, &shared, routed).await?)) })
            }
        }
    }
}

/// The same answer to a call, in words that its client understands.
fn understood((response, handled): (Response<Body>, Handled)) -> (Response<Body>, Handled) {
    (in_words_of_calls(response), handled)
}

/// A response, and what was done to have it.
pub(crate) type Judged = (Response<Body>, Verdict);

/// Answers a request that asks for nothing protected.
async fn otherwise<Inner, M>(
    inner: Inner,
    shared: &Shared<M>,
    routed: Routed<Rule>,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    M: Mode,
{
    let page = wellknown::serve(&shared.mode, &shared.front, &routed.request.0).await;
    shared.front.otherwise(inner, routed, page).await
}

async fn protect<Inner, M>(
    inner: Inner,
    shared: &Shared<M>,
    routed: Protected,
) -> Result<(Response<Body>, Handled), Inner::Error>
where
    Inner: HttpService,
    M: Mode,
{
    let Routed { request, route, rule: (protection, said), reader, .. } = routed;
    let (wire, front) = (ConnectionReuse::of(request.0.version, &request.0.headers), &shared.front);
    let answered = AnsweredRequest::of(&protection.dialect, &request.0.headers);
    let arrived = arrived(shared, &protection, said, request).await;
    let (mut operation, mut repeatable) = (None, None);
    let (mut response, verdict) = match arrived {
        Ok(ArrivedRequest::Keyless(parts, body)) => {
            let request = Request::from_parts(parts, body);
            // Boxed, as what few requests need is.
            (Box::pin(pass(inner, said, request)).await?, Verdict::PassedKeyless)
        }
        Ok(ArrivedRequest::Keyed(arrival)) => {
            operation = Some(handled_operation(front, &arrival));
            repeatable = protection.worth.as_ref().map(|worth| (worth, arrival.body.clone()));
            let (span, listener) = (arrival.span.clone(), ReplayListener::of(&arrival));
            let usual_time = front.routes.usual_time(route);
            let judged =
                shared.mode.run(front, inner, usual_time, arrival).instrument(span).await?;
            match listener {
                // Boxed, so that only routes that ask pay for its size.
                Some(listener) => Box::pin(listener.hear(judged, &front.site)).await,
                None => judged,
            }
        }
        Err((problem, rest)) => {
            let verdict = Verdict::Refused(problem.code);
            let mut response = problem.into_response(&front.site);
            wire.leave_clean(rest, &mut response).await;
            (response, verdict)
        }
    };
    let repeated = repeatable.filter(|_| is_stored_success(verdict, &response));
    let repeated = repeated.map(|(worth, body)| worth.of(&body));
    if protection.dialect == Dialect::Repeatability {
        repeatability::add_result(&mut response, verdict);
    }
    if let Some(answered) = answered {
        answered.tell(&mut response, &front.site, verdict, operation.map(|known| known.id));
    }
    cors::let_read(reader.as_ref(), &mut response);
    Ok((response, Handled { verdict, route, operation, repeated }))
}

/// Whether this tells once more what was done before.
fn is_stored_success(verdict: Verdict, response: &Response<Body>) -> bool {
    verdict == Verdict::Replayed && !is_error(response.status())
}

fn is_error(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Which operation a request asks for, as logs name it.
fn handled_operation(front: &Front, arrival: &KeyedRequest) -> HandledOperation {
    let operation = &arrival.ask.operation;
    let wants_tenant = arrival.parts.extensions.get::<WantsTenant>().is_some();
    let tenant = wants_tenant.then(|| {
        let key = front.tenant_keys.get(operation.tenant());
        key.fingerprint(&RequestParts::default())
    });
    HandledOperation { id: operation.id(), tenant }
}

/// Reads what must be known before anything is run, or refuses the request.
async fn arrived<M: Mode>(
    shared: &Shared<M>,
    protection: &Arc<Protection>,
    said: CallerSignals,
    (parts, body): (Parts, Body),
) -> Result<ArrivedRequest, Refused> {
    let (front, mode) = (&shared.front, &shared.mode);
    let named = match arrival::name(front, protection, &parts).await {
        Ok(NamedRequest::Operation(operation)) => {
            mode.recall(protection, &parts, operation).await.map(NamedRequest::Operation)
        }
        named => named,
    };
    match named {
        Ok(named) => arrive(front, mode, protection, said, named, (parts, body)).await,
        Err(problem) => Err((problem, UnreadBody::Unread(body))),
    }
}

/// Hands a request to the service as it is, with what its caller says.
pub(crate) async fn pass<Inner>(
    mut inner: Inner,
    said: CallerSignals,
    mut request: Request<Body>,
) -> Result<Response<Body>, Inner::Error>
where
    Inner: HttpService,
{
    std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
    said.tell(&mut request);
    Ok(inner.call(request).await?.map(Body::new))
}
