//! The span of one sending to the upstream, told however it ends.

use std::time::{Duration, SystemTime};

use hapax_core::{Attempt, OperationId};
use hapax_engine::wall_clock;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, uri::Authority};
use tokio::time::Instant;

use super::{
    active_span::ActiveSpan,
    span::{AttributeValue, FinishedSpan, SpanKind},
    trace_context::{TRACESTATE, TraceContext},
};
use crate::admin::UpstreamExchange;

/// One sending to the upstream, for a request whose trace is recorded. Dropped, it was not answered.
#[derive(Debug)]
pub(crate) struct ClientSpan {
    active: ActiveSpan,
    context: TraceContext,
    trace_state: String,
    name: String,
    attributes: Vec<(&'static str, AttributeValue)>,
    ended: Option<UpstreamExchange>,
    began_at: SystemTime,
    began: Instant,
}

impl ClientSpan {
    /// Begins the span of sending this request to the API at this address, and says so in its head; `None` if
    /// its trace is not recorded.
    pub(crate) fn begin<B>(request: &mut Request<B>, upstream: &Uri) -> Option<Box<Self>> {
        let active = request.extensions().get::<ActiveSpan>()?.clone();
        let attempt = request.extensions().get::<Attempt>().copied();
        let mut span = Self::new(active, request.method(), request.headers());
        span.addressed_to(upstream.authority());
        let (origin, path) = (upstream.to_string(), request.uri().path());
        let full = format!("{}{path}", origin.trim_end_matches('/'));
        span.attributes.push(("url.full", full.into()));
        if let Some(attempt) = attempt {
            span.attributes.push(("hapax.operation.id", attempt.id.to_string().into()));
            span.attributes.push(("hapax.fence", attempt.fence.get().into()));
        }
        span.context.say(request.headers_mut());
        Some(Box::new(span))
    }

    /// Begins the span of asking by `question` whether `about` happened.
    pub(crate) fn probe<A, B>(
        about: &Request<A>,
        question: &mut Request<B>,
        host: &HeaderValue,
        operation: OperationId,
    ) -> Option<Box<Self>> {
        let active = about.extensions().get::<ActiveSpan>()?.clone();
        let mut span = Self::new(active, question.method(), about.headers());
        span.name = format!("probe {}", span.name);
        // Its path is made of the key, which is told nobody.
        span.addressed_to(Authority::try_from(host.as_bytes()).ok().as_ref());
        span.attributes.push(("hapax.operation.id", operation.to_string().into()));
        span.context.say(question.headers_mut());
        if let Some(state) = about.headers().get(&TRACESTATE) {
            question.headers_mut().insert(TRACESTATE.clone(), state.clone());
        }
        Some(Box::new(span))
    }

    fn new(active: ActiveSpan, method: &Method, headers: &HeaderMap) -> Self {
        let (name, trace_state) = (method.to_string(), state_of(headers));
        let attributes = vec![("http.request.method", AttributeValue::from(name.clone()))];
        Self {
            context: active.context.child(),
            active,
            trace_state,
            name,
            attributes,
            ended: Some(UpstreamExchange::Unanswered),
            began_at: wall_clock(),
            began: Instant::now(),
        }
    }

    /// Who is asked. Of the address nothing else is told but the path: nobody knows what a query holds.
    fn addressed_to(&mut self, server: Option<&Authority>) {
        let Some(server) = server else { return };
        self.attributes.push(("server.address", server.host().to_owned().into()));
        let port = server.port_u16().map(|port| ("server.port", i64::from(port).into()));
        self.attributes.extend(port);
    }

    /// How it ended; `None` where its client did not let it.
    pub(crate) fn end(mut self, ended: Option<UpstreamExchange>) {
        self.ended = ended;
    }
}

impl Drop for ClientSpan {
    fn drop(&mut self) {
        let mut attributes = std::mem::take(&mut self.attributes);
        let failed = match self.ended {
            Some(UpstreamExchange::Answered(status)) => {
                attributes.push(("http.response.status_code", i64::from(status.as_u16()).into()));
                (status.as_u16() >= 400).then(|| AttributeValue::from(status.as_u16().to_string()))
            }
            Some(UpstreamExchange::NothingSent) => Some("nothing_sent".into()),
            Some(UpstreamExchange::Unanswered) => Some("unanswered".into()),
            None => Some("request_broken".into()),
        };
        let is_error = failed.is_some();
        attributes.extend(failed.map(|failed| ("error.type", failed)));
        self.active.spans.offer(FinishedSpan {
            context: self.context,
            parent: Some(self.active.context.span_id),
            trace_state: std::mem::take(&mut self.trace_state),
            link: None,
            kind: SpanKind::Client,
            name: std::mem::take(&mut self.name),
            began_at: self.began_at,
            duration: self.began.elapsed().max(Duration::from_nanos(1)),
            attributes,
            is_error,
        });
    }
}

/// What vendors said to each other, on one line.
pub(super) fn state_of(headers: &HeaderMap) -> String {
    let lines = headers.get_all(&TRACESTATE).iter().filter_map(|line| line.to_str().ok());
    lines.collect::<Vec<_>>().join(",")
}
