//! The service behind the layer: passes a request on to the upstream.

mod call;
mod forward;
mod stall;
mod trailers;
mod turns;
mod upgrade;
mod upload;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hapax_core::Attempt;
use hapax_tower::{AnswerBy, Body, BoxError, NothingSent, is_call};
use http::{Request, Response, Uri, header::CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};
use tower_service::Service;

pub(crate) use self::{
    call::LongLivedCall,
    forward::{origin, prepare},
    upgrade::{GrantedUpgrade, UpgradeWish},
};
use self::{stall::Stalling, trailers::TrailerSupport, turns::Turns, upload::Upload};
use crate::{
    admin::{Meter, UpstreamExchange},
    client::{SendError, UpstreamClient},
    config::Upstream,
    telemetry::ClientSpan,
};

/// Passes requests on to one upstream. Clones share its connections.
#[derive(Debug, Clone)]
pub(crate) struct Proxy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: UpstreamClient,
    url: Uri,
    keep_host: bool,
    answer_timeout: Duration,
    /// How long what lasts may be silent.
    silence_max: Duration,
    turns: Turns,
    meter: Arc<Meter>,
}

impl Proxy {
    pub(crate) fn new(client: UpstreamClient, upstream: &Upstream, meter: Arc<Meter>) -> Self {
        let Upstream { keep_host, answer_timeout, silence_max, .. } = *upstream;
        let turns = Turns::new(upstream);
        let url = upstream.url.clone();
        Self(Arc::new(Inner { client, url, keep_host, answer_timeout, silence_max, turns, meter }))
    }
}

impl Inner {
    /// How long the next piece of this answer may take. Whoever tells events tells one when there is one.
    fn patience(&self, response: &Response<Body>) -> Duration {
        if is_event_stream(response) { self.silence_max } else { self.answer_timeout }
    }
}

fn is_event_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

impl Service<Request<Body>> for Proxy {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { pass_on(&inner, request).await })
    }
}

async fn pass_on(inner: &Inner, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
    // A protected attempt has a deadline of its own, and goes on when its client does not.
    let is_protected = request.extensions().get::<Attempt>().is_some();
    let host = (!inner.keep_host).then(|| inner.client.authority());
    // Whoever runs a protected call reads how it ended.
    let trailers = if is_protected {
        is_call(request.headers()).then(TrailerSupport::reading)
    } else {
        Some(TrailerSupport::of(request.headers()))
    };
    prepare(&mut request, host);
    if let Some(trailers) = trailers {
        trailers.say(request.headers_mut());
    }
    let span = ClientSpan::begin(&mut request, &inner.url);
    let counted = MeteredExchange::begin(&inner.meter);
    let answered = if is_protected {
        inner.client.send(request).await
    } else {
        match upgrade::wish(inner, &mut request) {
            // Boxed, so that requests without one do not pay for its size.
            Some(wish) => Box::pin(upgrade::pass(inner, request, wish)).await,
            None if request.extensions().get::<LongLivedCall>().is_some() => {
                Box::pin(call::pass(inner, request)).await
            }
            None => pass_unprotected(inner, request).await,
        }
    };
    let ended = exchange(&answered);
    counted.end(ended);
    if let Some(span) = span {
        span.end(ended);
    }
    let mut response = answered.map_err(|error| match error {
        SendError::NothingSent(cause) => BoxError::from(NothingSent::new(cause)),
        SendError::Unanswered(cause) => cause,
    })?;
    let trailers = (!is_protected).then(|| TrailerSupport::of(response.headers()));
    forward::strip_hops(response.headers_mut());
    if let Some(trailers) = trailers {
        trailers.say(response.headers_mut());
    }
    Ok(response)
}

/// Sends a request as its client sends it, once some of it is there and others leave room for it.
async fn pass_unprotected(
    inner: &Inner,
    request: Request<Body>,
) -> Result<Response<Body>, SendError> {
    let (mut parts, body) = request.into_parts();
    let by = parts.extensions.get_mut::<AnswerBy>().map(|by| {
        *by = by.within(inner.answer_timeout);
        *by
    });
    let (body, upload) = Upload::begin(body, &inner.turns).await?;
    let turn = inner.turns.take().await?;
    let sending = pin!(inner.client.send(Request::from_parts(parts, body)));
    let answering = upload.answer(sending, inner.answer_timeout);
    let answered = match by {
        None => answering.await,
        Some(by) => Box::pin(timeout_at(by.at(), answering)).await.unwrap_or(None),
    };
    let response = answered.unwrap_or_else(|| Err(SendError::Unanswered(Overdue.into())))?;
    if response.body().is_whole() {
        return Ok(response);
    }
    let patience = inner.patience(&response);
    Ok(response.map(|body| Body::new(Stalling::new(body, patience, turn))))
}

/// An exchange that is counted however it ends: dropped, as at the time limit of its route, it was
/// not answered.
struct MeteredExchange<'a> {
    meter: &'a Meter,
    began: Instant,
    ended: Option<UpstreamExchange>,
}

impl<'a> MeteredExchange<'a> {
    fn begin(meter: &'a Meter) -> Self {
        Self { meter, began: Instant::now(), ended: Some(UpstreamExchange::Unanswered) }
    }

    fn end(mut self, exchange: Option<UpstreamExchange>) {
        self.ended = exchange;
    }
}

impl Drop for MeteredExchange<'_> {
    fn drop(&mut self) {
        if let Some(ended) = self.ended {
            self.meter.record_exchange(ended, self.began.elapsed());
        }
    }
}

/// How the upstream did; `None` where its client did not let it.
fn exchange(answered: &Result<Response<Body>, SendError>) -> Option<UpstreamExchange> {
    match answered {
        Ok(response) => Some(UpstreamExchange::Answered(response.status())),
        Err(error) if error.is_request_broken() => None,
        Err(SendError::NothingSent(_)) => Some(UpstreamExchange::NothingSent),
        Err(SendError::Unanswered(_)) => Some(UpstreamExchange::Unanswered),
    }
}

/// The upstream took too long.
#[derive(Debug, thiserror::Error)]
#[error("the upstream did not answer in time")]
pub(crate) struct Overdue;
