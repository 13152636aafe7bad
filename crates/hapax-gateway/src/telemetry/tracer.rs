//! Who is told of spans, and how requests join traces.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::Attempt;
use hapax_engine::wall_clock;
use http::{HeaderMap, Request};

use super::{
    active_span::{ActiveSpan, BackgroundRun},
    outlet::Outlet,
    sampler::Sampler,
    span::{FinishedSpan, SpanKind},
    trace_context::{SpanId, TRACESTATE, TraceContext, TraceId},
};

/// Tells of the spans of traces that are recorded. Clones tell the same one.
#[derive(Debug, Clone)]
pub struct Tracer {
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// Who is told.
    pub spans: Outlet<FinishedSpan>,
}

/// How a request belongs to a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinedTrace {
    /// The gateway's own place in it.
    pub(crate) own: TraceContext,
    /// Its caller's.
    pub(crate) caller: Option<SpanId>,
}

impl Tracer {
    /// Joins the trace a request belongs to, or begins one, and says so to whoever gets the request next.
    pub(super) fn join(&self, headers: &mut HeaderMap) -> JoinedTrace {
        let caller = TraceContext::of(headers);
        let trace_id = caller.map_or_else(TraceId::random, |caller| caller.trace_id);
        let is_sampled = self.sampler.samples(caller, trace_id);
        match caller {
            // Nobody records it, so its caller's own words are as good as any.
            Some(caller) if !caller.is_sampled && !is_sampled => {
                return JoinedTrace { own: caller, caller: None };
            }
            Some(_) => {}
            None => {
                // What belongs to a context that could not be read says nothing to others either.
                headers.remove(&TRACESTATE);
            }
        }
        let own = TraceContext { trace_id, span_id: SpanId::random(), is_sampled };
        own.say(headers);
        JoinedTrace { own, caller: caller.map(|caller| caller.span_id) }
    }

    /// Has what is sent for a stored request belong to a trace of its own, with a link to whoever left it.
    pub(crate) fn resume(&self, request: &mut Request<Bytes>, attempt: Attempt) {
        let left_by = TraceContext::of(request.headers());
        let trace_id = TraceId::random();
        if !self.sampler.samples(left_by, trace_id) {
            return;
        }
        let context = TraceContext { trace_id, span_id: SpanId::random(), is_sampled: true };
        let name = format!("background {}", request.method());
        let run = BackgroundRun::new(
            self.spans.clone(),
            FinishedSpan {
                context,
                parent: None,
                trace_state: String::new(),
                link: left_by,
                kind: SpanKind::Consumer,
                name,
                began_at: wall_clock(),
                duration: Duration::ZERO,
                attributes: vec![
                    ("http.request.method", request.method().to_string().into()),
                    ("url.path", request.uri().path().to_owned().into()),
                    ("hapax.operation.id", attempt.id.to_string().into()),
                    ("hapax.fence", attempt.fence.get().into()),
                ],
                is_error: false,
            },
        );
        context.say(request.headers_mut());
        request.headers_mut().remove(&TRACESTATE);
        request.extensions_mut().insert(ActiveSpan::of_background(self, context, run));
    }
}
