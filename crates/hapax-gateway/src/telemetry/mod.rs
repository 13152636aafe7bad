//! What a gateway tells about each request: spans for traces, lines for an access log.
//!
//! The gateway decides, while a request comes, whether anybody wants to hear of it, and hands what is known at
//! its end to whoever listens, without ever waiting. Who that is, and what is made of it, is up to whoever runs
//! the gateway: nothing here knows a collector, a file or a wire format.
//!
//! - [`Telemetry`] is given to the gateway: a [`Tracer`], a place for [`AccessRecord`]s, both or neither;
//! - [`TraceContext`] is what callers and services are told of a trace, [`Sampler`] decides which are recorded;
//! - [`Outlet`] hands over and counts what nobody had room for.

mod access_record;
mod active_span;
mod client_span;
mod outlet;
mod request_observation;
mod sampler;
mod span;
mod trace_context;
mod tracer;

use std::sync::Arc;

use http::Request;

pub use self::{
    access_record::AccessRecord,
    outlet::{LossCounter, Outlet},
    sampler::Sampler,
    span::{AttributeValue, FinishedSpan, SpanKind},
    trace_context::{SpanId, TraceContext, TraceId},
    tracer::Tracer,
};
pub(crate) use self::{client_span::ClientSpan, request_observation::RequestObservation};
use crate::server::Peer;

/// Where a gateway tells what it does, request by request; by default nowhere.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    /// Who is told of spans, and of which.
    pub tracer: Option<Tracer>,
    /// Who is told of every request.
    pub access_log: Option<Outlet<AccessRecord>>,
}

impl Telemetry {
    /// Looks at a request as it comes; `None` if nobody wants to hear what becomes of it.
    pub(crate) fn arrives<B>(
        self: &Arc<Self>,
        request: &mut Request<B>,
        peer: &Peer,
    ) -> Option<Box<RequestObservation>> {
        let joined = match &self.tracer {
            Some(tracer) => Some(tracer.join(request.headers_mut())),
            None if self.access_log.is_none() => return None,
            None => None,
        };
        if self.access_log.is_none() && !joined.is_some_and(|joined| joined.own.is_sampled) {
            return None;
        }
        Some(RequestObservation::begin(self, request, joined, peer))
    }
}
